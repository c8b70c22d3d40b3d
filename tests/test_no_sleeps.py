"""No test sleeps and none reads a clock: time of this process is a clock's, and what others do is waited for by
`support.eventually`. What a busy machine makes slower is measured by `bench/check.py`, or as `support.turns` does."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
CALLS = ("time.sleep(", "asyncio.sleep(", "SystemClock().sleep(")
WAITING = {"support/eventually.py"}
"""Where waiting is done, once for all."""
SLEEPING = {
    "e2e/test_bounds.py": "between two slices of work, so that the timer which measures turns comes in between",
    "e2e/test_bursts_on_a_node.py": "the moment of a burst at which all is killed",
    "e2e/test_crash.py": "so long containerd stands still",
    "e2e/test_forced_deletions.py": "the moments of a kubelet's start at which pods are deleted",
    "e2e/test_hostile_connections.py": "so long they stay, and so long the process has to give back what they took",
    "e2e/test_rollout_in_place.py": "the moment of a rollout at which all is killed",
    "e2e/test_shared_etcd.py": "so long the servers and the writers run between two kills",
    "support/attacks.py": "so long scheduler and kubelet have large pods, while their cost is measured",
    "support/bounded.py": "so long others have what an attack has left, while its cost is measured",
    "support/bounded_neighbour.py": "the pace of a client",
    "support/bounded_server.py": "a thread that looks where a loop stands still, and a disk that does",
    "support/guestbook.py": "a program in a pod, until the one that it copies is there",
    "support/hostile_connections.py": "until nothing more is taken of what a thread sends on thousands of connections",
    "support/latency.py": "a server that is asked at fixed moments",
    "support/spoofed_answers.py": "a server that sends a byte now and then",
    "testing/test_loop.py": "a timer of real time, which the loop's rest does not wait for",
}
"""Who else sleeps, and why: the time that passes is what the test is about, and no fact would say that it has."""
READING = re.compile(r"\btime\.(monotonic|perf_counter|process_time|thread_time)(_ns)?\(")
CLOCKS = {
    "apiserver/test_flood.py": "CPU of requests in a flood, in proportion to CPU of the same requests without",
    "e2e/storm.py": "a figure that it tells",
    "e2e/test_bursts_on_a_node.py": "a figure that it tells",
    "e2e/test_floods.py": "a figure that it tells",
    "e2e/test_hostile_connections.py": "until when memory has to be given back",
    "e2e/test_hpa_on_a_node.py": "so long load comes and goes",
    "e2e/test_hpa_specs_on_a_node.py": "figures that it tells, and until when memory has been given back",
    "e2e/test_java.py": "a figure that it tells",
    "e2e/test_many_sessions.py": "so long another user asks, and figures that it tells",
    "e2e/test_postgresql.py": "a figure that it tells",
    "e2e/test_scale.py": "figures that it tells",
    "e2e/test_shared_etcd.py": "a figure that it tells",
    "e2e/test_spoofed_backends.py": "a webhook that trickles is given up after its timeout, in real time",
    "e2e/test_vpa_on_a_node.py": "a figure that it tells",
    "e2e/test_vpa_seconds_on_a_node.py": "figures that it tells",
    "e2e/test_vpa_workloads_on_a_node.py": "so long a workload is watched",
    "kubelet/test_bursts_on_containerd.py": "figures that it tells, and so long a load is watched",
    "kubelet/test_containment_on_containerd.py": "so long pods come and go",
    "kubelet/volumes/test_sub_paths.py": "so long a link is swapped, against the kernel",
    "support/bounded.py": "until when memory has to be given back",
    "support/bounded_neighbour.py": "a figure that it tells",
    "support/bounded_server.py": "where a loop stands still",
    "support/eventually.py": "how long it waits at most",
    "support/hostile_connections.py": "until nothing more is taken",
    "support/latency.py": "latencies and shares of a CPU, which a campaign is about",
    "support/slow_clients.py": "how long a server lets a connection be, in its own real time",
    "support/turns.py": "CPU of a thread, at the machine's pace",
}
"""Who reads a clock, and why."""


def test_only_these_read_a_clock() -> None:
    reading = {str(path.relative_to(TESTS)) for path in TESTS.rglob("*.py") if READING.search(path.read_text())}
    assert sorted(reading - CLOCKS.keys()) == [], "a test that bounds time fails on a busy machine"
    assert sorted(CLOCKS.keys() - reading) == [], "these read none any more"


def test_only_one_place_waits_by_sleeping() -> None:
    sleeping = {
        str(path.relative_to(TESTS)): lines
        for path in TESTS.rglob("*.py")
        if "sleep" in (text := path.read_text()) and (lines := list(sleeps(ast.parse(text))))
    }
    assert {name: lines for name, lines in sleeping.items() if name not in WAITING | set(SLEEPING)} == {}, (
        "wait for the fact with support.eventually, or let a VirtualClock pass the time"
    )
    assert set(SLEEPING) <= set(sleeping), "these sleep no more"


def sleeps(tree: ast.Module) -> Iterator[int]:
    """Lines that sleep in real time. `asyncio.sleep(0)` only lets others have their turn."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node)
            if called.startswith(CALLS) and called != "asyncio.sleep(0)":
                yield node.lineno
        elif isinstance(node, ast.ImportFrom):
            imported = {f"{node.module}.{name.name}(" for name in node.names}
            if imported & set(CALLS):
                yield node.lineno


def test_what_counts_as_sleeping() -> None:
    for line in ("time.sleep(1)", "task = asyncio.sleep(0.1)", "SystemClock().sleep(1)", "from time import sleep"):
        assert list(sleeps(ast.parse(line))) == [1], line
    for line in ("asyncio.sleep(0)", "clock.sleep(1)", "'time.sleep(60)'", "from time import monotonic"):
        assert list(sleeps(ast.parse(line))) == [], line
