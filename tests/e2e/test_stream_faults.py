"""What goes wrong with probes and streams on a real node, and what is then left: processes, descriptors and sockets of
`podfit up` and of containerd, processes in the containers.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import pytest

from support.eventually import PATIENCE, eventually
from support.machine import Snapshot
from support.up import Up, manifest, running

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]
SERVES = "mkdir -p /w; echo hello >/w/index.html; exec httpd -f -p 28473 -h /w"
FORWARDS = 50
SLACK = 3
"""Descriptors that come and go by themselves: connections between the parts, a log that is written."""


class Held(NamedTuple):
    """Open descriptors, sockets among them, of the server and of its containerd; processes in the pod's containers."""

    server: int
    server_sockets: int
    containerd: int
    containerd_sockets: int
    inside: int

    def within(self, before: "Held") -> bool:
        return all(now <= then + SLACK for now, then in zip(self[:4], before[:4], strict=True)) and (
            self.inside <= before.inside
        )


def held(up: Up, *pods: str) -> Held:
    state = up.state()
    inside = sum(len(processes_of(up, pod)) for pod in pods)
    return Held(*_open(state["pid"]), *_open(state["nodes"][0]["containerd_pid"]), inside)


def as_before(up: Up, before: Held) -> None:
    eventually(lambda: held(up, "box"), lambda now: now.within(before), within=30, what=f"no more than {before}")


def _open(pid: int) -> tuple[int, int]:
    links = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(os.readlink(path))
        except FileNotFoundError:  # closed meanwhile
            continue
    return len(links), sum(link.startswith("socket:") for link in links)


def processes_of(up: Up, pod: str) -> list[int]:
    """Of its containers and its sandbox, by the kernel's word."""
    uid = up.get("pod", pod)["metadata"]["uid"]
    found = []
    for path in Path("/proc").glob("[0-9]*/cgroup"):
        try:
            if uid in path.read_text():
                found.append(int(path.parent.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


@pytest.fixture
def box(cluster: Up) -> Iterator[Up]:
    """A cluster in which the pod `box` serves HTTP on port 28473."""
    cluster.apply(manifest("box", {"name": "c", "command": ["sh", "-c", SERVES], "stdin": True}))
    cluster.pod_when("box", running, "ran")
    yield cluster
    cluster.ok("delete", "pod", "box", "forks", "--now", "--ignore-not-found")


@contextmanager
def begun(up: Up, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """kubectl, killed in the end if it has not ended by then. Nobody reads what it writes."""
    with subprocess.Popen(
        up.kubectl_command(*arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line_of(process: "subprocess.Popen[bytes]", text: bytes) -> bytes:
    assert process.stdout is not None
    return next(line for line in process.stdout if text in line)


def gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_probe_that_forks_and_commands_that_hang_end_with_their_pod(box: Up) -> None:
    """The children of a probe's command outlive it, as do commands whose client has left: like anywhere else with
    Kubernetes. They are the pod's, and go with it.
    """
    before = held(box, "box")
    probe = {"exec": {"command": ["sh", "-c", "sleep 3000 & sleep 3000 & exit 0"]}, "timeoutSeconds": 1}
    box.apply(manifest("forks", {"name": "c", "readinessProbe": {**probe, "periodSeconds": 1}}))
    box.pod_when("forks", lambda pod: pod["status"]["phase"] == "Running", "ran")
    with (
        begun(box, "exec", "forks", "--", "sh", "-c", "echo begun; sleep 3000; true") as hung,
        begun(box, "exec", "forks", "--", "cat", "/dev/zero"),
    ):
        line_of(hung, b"begun")
        eventually(lambda: processes_of(box, "forks"), lambda forked: len(forked) >= 7, within=30, what="it forks")
    left = processes_of(box, "forks")
    box.ok("delete", "pod", "forks", "--now")
    eventually(lambda: gone(left), within=30, what=f"{left} are gone")
    as_before(box, before)


def test_what_ends_and_what_goes_on_when_containerd_is_killed(box: Up) -> None:
    before, machine = held(box, "box"), Snapshot.take()
    writes = "while :; do echo line; sleep 1; done"
    box.apply(manifest("forks", {"name": "c", "command": ["sh", "-c", writes]}))
    box.pod_when("forks", running, "ran")
    with (
        begun(box, "exec", "box", "--", "sh", "-c", "echo begun; read x") as command,
        begun(box, "attach", "-i", "box") as attached,
        begun(box, "port-forward", "pod/box", ":28473") as forwarded,
        begun(box, "logs", "-f", "forks") as log,
    ):
        line_of(command, b"begun")
        line_of(forwarded, b"127.0.0.1:")
        line_of(log, b"line")
        eventually(
            lambda: held(box).server, lambda server: server >= before.server + 4, within=30, what=f"more than {before}"
        )
        os.kill(box.state()["nodes"][0]["containerd_pid"], signal.SIGKILL)
        assert [process.wait(30 * PATIENCE) for process in (command, attached, forwarded)] == [1, 1, 1]
        run = ("exec", "box", "--", "true")
        eventually(lambda: box.kubectl(*run).code == 0, within=30, what="containerd comes back")
        for _ in range(5):
            line_of(log, b"line")  # of the container, which ran on
        box.ok("delete", "pod", "forks", "--now")
        assert log.wait(30 * PATIENCE) == 0
    as_before(box, before)
    eventually(
        lambda: Snapshot.take().since(machine).get("processes", []),
        lambda processes: len(processes) <= 1,
        within=30,
        what="the processes end",
    )


def test_fifty_kubectl_port_forwards_at_once_leave_nothing(box: Up) -> None:
    before = held(box, "box")
    with ExitStack() as stack:
        forwards = [stack.enter_context(begun(box, "port-forward", "pod/box", ":28473")) for _ in range(FORWARDS)]
        ports = [int(line_of(forward, b"127.0.0.1:").split(b":")[1].split()[0]) for forward in forwards]
        for port in ports:
            with urlopen(f"http://127.0.0.1:{port}/index.html", timeout=20 * PATIENCE) as answer:
                assert answer.read() == b"hello\n"
        assert held(box).server_sockets >= before.server_sockets + FORWARDS
    as_before(box, before)
