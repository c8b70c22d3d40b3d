"""kubectl exec, attach, cp, debug and port-forward on a real node, and what is left when something ends badly."""

import hashlib
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import pytest

from support.eventually import PATIENCE, Steady, eventually
from support.machine import Snapshot
from support.up import Up, manifest

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]
SERVES = "mkdir -p /w; echo hello >/w/index.html; exec httpd -f -p 28471 -h /w"
READS = "while read line; do echo got $line; done"
MEGABYTES = 100
FORWARDS = 50


@pytest.fixture(scope="module")
def pods(cluster: Up) -> Iterator[Up]:
    """`box` waits, `server` serves HTTP on port 28471, `ear` answers each line that it is told."""
    cluster.apply(
        manifest("box", {"name": "c"}),
        manifest("server", {"name": "c", "command": ["sh", "-c", SERVES]}),
        manifest("ear", {"name": "c", "command": ["sh", "-c", READS], "stdin": True}),
    )
    cluster.ok("wait", "--for=condition=Ready", "pod/box", "pod/server", "pod/ear", "--timeout=60s")
    yield cluster
    cluster.ok("delete", "pod", "box", "server", "ear", "--now", "--ignore-not-found")


def descriptors(up: Up) -> int:
    """Open in the server."""
    return len(os.listdir(f"/proc/{up.state()['pid']}/fd"))


@contextmanager
def begun(pods: Up, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """kubectl, killed in the end if it has not ended by then."""
    with subprocess.Popen(
        pods.kubectl_command(*arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line_of(process: "subprocess.Popen[bytes]", text: bytes) -> bytes:
    """The next line that has the text in it."""
    assert process.stdout is not None
    return next(line for line in process.stdout if text in line)


def test_a_command_says_how_it_ended(pods: Up) -> None:
    assert pods.ok("exec", "box", "--", "echo", "hello") == "hello\n"
    failed = pods.kubectl("exec", "box", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (failed.code, failed.out) == (7, "out\n")
    said = [line for line in failed.err.splitlines() if "Unknown stream id" not in line]  # kubectl's, on a slow machine
    assert said == ["err", "command terminated with exit code 7"]
    missing = pods.kubectl("exec", "box", "--", "nosuch")
    assert missing.code == 1
    assert "executable file not found" in missing.err


def test_the_end_of_stdin_ends_the_command(pods: Up) -> None:
    assert pods.kubectl("exec", "-i", "box", "--", "cat", stdin="x", timeout=20).out == "x"


def test_a_terminal(pods: Up) -> None:
    command = " ".join(pods.kubectl_command("exec", "-it", "box", "--", "tty"))
    typed = ("script", "-qec", command, "/dev/null")
    said = subprocess.run(typed, capture_output=True, text=True, timeout=30 * PATIENCE, check=False)
    assert "/dev/pts/0" in said.stdout


def test_files_are_copied_both_ways(pods: Up, tmp_path: Path) -> None:
    there, back = tmp_path / "there", tmp_path / "back"
    there.write_bytes(os.urandom(MEGABYTES << 20))
    pods.ok("cp", str(there), "box:/tmp/file", timeout=90)
    pods.ok("cp", "box:/tmp/file", str(back), timeout=90)
    assert hashlib.sha256(back.read_bytes()).digest() == hashlib.sha256(there.read_bytes()).digest()


def test_attach_speaks_to_the_process_itself(pods: Up) -> None:
    with begun(pods, "attach", "-i", "ear") as attached:
        assert attached.stdin is not None
        attached.stdin.write(b"one\n")
        attached.stdin.flush()
        assert line_of(attached, b"got") == b"got one\n"
    assert "got one" in pods.ok("logs", "ear")


def test_a_guest_of_a_debug_session_is_attached_to(pods: Up) -> None:
    image = pods.get("pod", "box")["spec"]["containers"][0]["image"]
    options = ("--image", image, "--image-pull-policy=Never", "-c", "guest", "--profile=general")
    script = "read word; echo $word; sleep 1"
    with begun(pods, "debug", "box", "-i", *options, "--", "sh", "-c", script) as guest:
        assert guest.stdin is not None
        guest.stdin.write(b"hi\n")  # containerd ends a session whose stdin ends, unless the container has stdinOnce
        guest.stdin.flush()
        assert line_of(guest, b"hi") == b"hi\n"


def test_fifty_ports_forwarded_at_once_leave_nothing(pods: Up) -> None:
    before = descriptors(pods)
    with begun(pods, "port-forward", "pod/server", ":28471") as forwarded, ExitStack() as stack:
        found = re.search(rb"127.0.0.1:(\d+)", line_of(forwarded, b"127.0.0.1:"))
        assert found is not None
        port = int(found[1])
        with urlopen(f"http://127.0.0.1:{port}/index.html", timeout=10 * PATIENCE) as answer:
            assert answer.read() == b"hello\n"
        clients = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(FORWARDS)]
        for client in clients:
            client.settimeout(20 * PATIENCE)
            client.sendall(b"GET /index.html HTTP/1.0\r\n\r\n")
        for client in clients:
            text = b""
            while piece := client.recv(4096):
                text += piece
            assert text.endswith(b"hello\n")
    eventually(partial(descriptors, pods), lambda held: held <= before + 2, within=20, what="connections close")


def test_a_client_that_never_reads_and_one_that_hangs_leave_nothing(pods: Up) -> None:
    before, machine = descriptors(pods), Snapshot.take()
    flood = begun(pods, "exec", "box", "-c", "c", "--", "sh", "-c", "exec cat /dev/zero")
    hung = begun(pods, "exec", "-i", "box", "-c", "c", "--", "sh", "-c", "read x")
    with flood, hung:
        eventually(partial(descriptors, pods), lambda held: held > before, within=20, what="connections open")
        held = memory(pods)
        eventually(written, within=20, what="it is flooded")
        eventually(written, Steady(10), within=20, what="the flood is held back", every=0.1)
        assert memory(pods) < held + (32 << 20)
    eventually(partial(descriptors, pods), lambda held: held <= before + 2, within=20, what="connections close")
    eventually(
        lambda: Snapshot.take().since(machine).get("processes", []),
        lambda left: not left,
        within=20,
        what="processes end",
    )


def written() -> int:
    """What the flooding process has written, by the kernel's count."""
    return sum(map(written_by, Path("/proc").glob("[0-9]*")))


def written_by(process: Path) -> int:
    try:
        if (process / "cmdline").read_bytes() != b"cat\0/dev/zero\0":
            return 0
        return int(re.findall(r"wchar: (\d+)", (process / "io").read_text())[0])
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return 0


def memory(up: Up) -> int:
    """Bytes that the server holds."""
    return int(Path(f"/proc/{up.state()['pid']}/statm").read_text().split()[1]) * 4096


def test_streams_end_with_containerd(pods: Up) -> None:
    before = descriptors(pods)
    waits = ("sh", "-c", "echo begun; exec sleep 60")
    with (
        begun(pods, "exec", "box", "-c", "c", "--", *waits) as waiting,
        begun(pods, "port-forward", "pod/server", ":28471") as forwarded,
    ):
        line_of(waiting, b"begun")
        line_of(forwarded, b"127.0.0.1:")
        os.kill(pods.state()["nodes"][0]["containerd_pid"], signal.SIGKILL)
        assert waiting.wait(30 * PATIENCE) == 1
        assert line_of(waiting, b"the container runtime has ended the connection")
        assert forwarded.wait(30 * PATIENCE) == 1
    run = ("exec", "box", "-c", "c", "--", "true")
    eventually(lambda: pods.kubectl(*run).code == 0, within=30, what="containerd comes back")
    eventually(partial(descriptors, pods), lambda held: held <= before + 4, within=20, what="connections close")


def test_streams_end_with_their_pod(pods: Up) -> None:
    pods.apply(manifest("short", {"name": "c"}))
    pods.ok("wait", "--for=condition=Ready", "pod/short", "--timeout=30s")
    with begun(pods, "exec", "short", "--", "sh", "-c", "echo begun; exec sleep 60") as waiting:
        line_of(waiting, b"begun")
        pods.ok("delete", "pod", "short", "--now")
        assert waiting.wait(30 * PATIENCE) == 137
