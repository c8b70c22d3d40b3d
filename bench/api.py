"""The API server under load: CPU for each request first, then rates, watches and memory.

    python bench/api.py [--requests 4000] [--profile create|get|list|resize]

The server is a process of its own (`api_server`): the handler behind HTTPS with client certificates, on a store that
syncs every write to disk before it answers. No controllers, no scheduler, no nodes. The load comes from another process
(`api_client`), whose own share of a CPU is printed. The two share the machine's cores, so CPU per request of the
server's process is the figure that counts. The peer is Kubernetes 1.36 with etcd; its rates were measured with a client
in Python.
"""

import argparse
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from api_client import FanOut, Load, Run, encoded
from api_server import memory_of, server
from measure import judge, machine, percentile, table
from objects import PODS, STRATEGIC, pod, resize

LISTED, STORED, WATCHERS, EVENTS = 1000, 10_000, 100, 100
WATCH_GOALS = {"the first": (1.0, "4.6"), "the last": (5.0, "10")}  # milliseconds, and the peer's
MEMORY_GOAL = 60.0  # megabytes for 10,000 pods
HEADER = ("request", "CPU", "goal", "", "per s", "goal", "peer", "p50", "p99", "client's CPU")
CPU_GOALS = {"create": 300.0, "get": 60.0, "list of 1,000": 3000.0, "resize": 500.0}  # microseconds
RATE_GOALS = {("create", 32): "3,000", ("get", 32): "15,000", ("list of 1,000", 8): "300", ("resize", 32): "2,000"}
PEER = {
    ("create", 8): "310",
    ("create", 32): "449",
    ("get", 8): "827",
    ("get", 32): "1,221",
    ("list of 1,000", 8): "22",
    ("resize", 8): "237",
    ("resize", 32): "373",
}


# ---------------------------------------------------------------------- the load


def creations(prefix: str, count: int) -> Iterator[bytes]:
    return iter([encoded("POST", PODS, pod(f"{prefix}-{number}")) for number in range(count)])


def gets(count: int) -> Iterator[bytes]:
    return iter([encoded("GET", f"{PODS}/listed-{number % LISTED}") for number in range(count)])


def lists(count: int) -> Iterator[bytes]:
    return iter([encoded("GET", f"{PODS}?limit={LISTED}")] * count)


def resizes(count: int, *, start: int = 0) -> Iterator[bytes]:
    return iter(
        [
            encoded("PATCH", f"{PODS}/listed-{number % LISTED}/resize", resize(number // LISTED + start), STRATEGIC)
            for number in range(count)
        ]
    )


def row(name: str, connections: int, run: Run) -> tuple[str, ...]:
    cpu, key = 1e6 * run.server / run.requests, (name, connections)
    goal, milliseconds = CPU_GOALS[name], [1000 * latency for latency in run.latencies]
    return (
        f"{name}, {connections} connections",
        f"{cpu:.0f} us",
        f"{goal:.0f}",
        judge(cpu, goal),
        f"{run.requests / run.seconds:,.0f}",
        RATE_GOALS.get(key, ""),
        PEER.get(key, ""),
        f"{percentile(milliseconds, 50):.1f} ms",
        f"{percentile(milliseconds, 99):.1f} ms",
        f"{100 * run.own / run.seconds:.0f} %",
    )


def prepare(load: Load) -> None:
    """A node with room, and the pods that are read and resized."""
    status = b'{"status":{"allocatable":{"cpu":"9k","memory":"9Ti","pods":"99k"}}}'
    requests = [
        encoded("POST", "/api/v1/nodes", b'{"metadata":{"name":"n1"}}'),
        encoded("PATCH", "/api/v1/nodes/n1/status", status, STRATEGIC),
    ]
    load.run(iter(requests), connections=1)
    load.run(creations("listed", LISTED), connections=8)


def measure(load: Load, pid: int, requests: int) -> None:
    prepare(load)
    load.run(gets(200), connections=8)
    print("requests: CPU of the server's process for each, then how many a second")
    rows = [HEADER]
    for connections in (8, 32):
        rows.append(row("get", connections, load.run(gets(2 * requests), connections=connections)))
        rows.append(row("list of 1,000", connections, load.run(lists(requests // 20), connections=connections)))
        rows.append(
            row("resize", connections, load.run(resizes(requests, start=100 + connections), connections=connections))
        )
        rows.append(
            row("create", connections, load.run(creations(f"c{connections}", requests), connections=connections))
        )
    table(rows)
    watch_rows(load)


def watch_rows(load: Load) -> None:
    """A watcher's share of the CPU is what a hundred of them cost more than one."""

    def fan_out(watchers: int, start: int) -> FanOut:
        watching = encoded("GET", f"{PODS}?watch=1&resourceVersion={version(load)}")
        return load.fan_out(watching, list(resizes(EVENTS, start=start)), watchers=watchers)

    fan_out(WATCHERS, 708)
    one, many = fan_out(1, 810), fan_out(WATCHERS, 911)
    each_event = 1e6 * (many.server - one.server) / (EVENTS * (WATCHERS - 1))
    print(
        f"\nwatch, {WATCHERS} watchers, {EVENTS} resizes one after the other, milliseconds from sending the PATCH; "
        f"{each_event:.1f} us of the server's CPU\n"
        f"for each event and watcher, client's CPU {100 * many.own / many.seconds:.0f} %"
    )
    table(
        [
            ("receives", "p50", "goal", "", "peer", "p99", "with one watcher p50"),
            *(_watch_row(name, which, one, many) for which, name in enumerate(WATCH_GOALS)),
        ]
    )


def _watch_row(name: str, which: int, one: FanOut, many: FanOut) -> tuple[str, ...]:
    goal, peer = WATCH_GOALS[name]
    alone, found = ([1000 * seconds for seconds in run[which]] for run in (one, many))
    p50 = percentile(found, 50)
    return (
        name,
        f"{p50:.1f}",
        f"{goal:.0f}",
        judge(p50, goal),
        peer,
        f"{percentile(found, 99):.1f}",
        f"{percentile(alone, 50):.1f}",
    )


def version(load: Load) -> str:
    """The resource version of now."""
    client = load.connect()
    client.sock.sendall(encoded("GET", f"{PODS}?limit=1"))
    text = client.sock.recv(1 << 16)
    while b"resourceVersion" not in text:
        text += client.sock.recv(1 << 16)
    client.sock.close()
    return text.partition(b'"resourceVersion":"')[2].partition(b'"')[0].decode()


def weigh(load: Load, pid: int) -> None:
    before = memory_of(pid)
    load.run(creations("stored", STORED), connections=8)
    grown = memory_of(pid) - before
    size = len(pod("stored-0"))
    print(f"\nmemory, proportional: pods of {size / 1000:.1f} KB as sent, {grown / STORED / 1000:.1f} KB each")
    table(
        [
            ("megabytes", "", "goal", "", "peer"),
            ("empty", f"{before / 1e6:.0f}", "", "", "271"),
            (
                f"{STORED:,} pods more",
                f"{grown / 1e6:.0f}",
                f"{MEMORY_GOAL:.0f}",
                judge(grown / 1e6, MEMORY_GOAL),
                "not measured",
            ),
        ]
    )


def profile(load: Load, pid: int, what: str, requests: int) -> None:
    prepare(load)
    os.kill(pid, signal.SIGUSR1)
    wanted: dict[str, Any] = {"get": gets, "list": lists, "resize": resizes, "create": lambda n: creations("c", n)}
    load.run(wanted[what](requests), connections=8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--profile", default="", help="what the server does for one kind of request, by function")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    wanted = bool(options.profile)
    with tempfile.TemporaryDirectory(prefix="podfit-bench-") as made, server(Path(made), profile=wanted) as (pid, load):
        if wanted:
            profile(load, pid, options.profile, options.requests)
            return
        print(f"API server: {machine()}")
        measure(load, pid, options.requests)
    with tempfile.TemporaryDirectory(prefix="podfit-bench-") as made, server(Path(made)) as (pid, load):
        weigh(load, pid)


if __name__ == "__main__":
    main()
