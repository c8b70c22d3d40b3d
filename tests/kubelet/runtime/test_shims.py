"""Leaked shims are ended, and no others."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from podfit.kubelet.runtime.shims import LeakedShims, Shim, end, end_childless, shims

SLEEP = "echo ready; read line"
PARENT = """sleep 60 & until [ "$(cat /proc/$!/comm)" = sleep ]; do :; done; echo ready; read line"""
"""Until it runs its own program, a child is another shim by its command line."""

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def socket(tmp_path: Path) -> Path:
    return tmp_path / "containerd.sock"


@pytest.fixture
def start(socket: Path) -> Iterator[Start]:
    """Processes with a shim's command line."""
    with ExitStack() as stack:

        def started(sandbox: str, *, script: str = SLEEP, address: Path = socket) -> "subprocess.Popen[bytes]":
            options = ["-namespace", "k8s.io", "-id", sandbox, "-address", str(address)]
            process = stack.enter_context(
                subprocess.Popen(
                    ["containerd-shim-runc-v2", "-c", script, *options],
                    executable="/bin/sh",
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    start_new_session=True,
                )
            )
            assert process.stdout is not None
            process.stdout.readline()
            stack.callback(_end_all, process)
            return process

        yield started


def _end_all(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def test_one_that_serves_nothing_is_ended_at_the_second_look(socket: Path, start: Start, tmp_path: Path) -> None:
    leaked, serving, busy = start("gone"), start("here"), start("gone-too", script=PARENT)
    foreign = start("gone", address=tmp_path / "other.sock")
    look = LeakedShims(socket)
    assert look.look({"here"}) == ()
    assert [shim.pid for shim in look.look({"here"})] == [leaked.pid]
    assert leaked.wait() == -9
    assert look.look({"here"}) == ()
    assert [process.poll() for process in (serving, busy, foreign)] == [None, None, None]


def test_one_whose_sandbox_appears_meanwhile_is_new(socket: Path, start: Start) -> None:
    process, look = start("late"), LeakedShims(socket)
    assert look.look(set()) == look.look({"late"}) == look.look(set()) == ()
    assert process.poll() is None


def test_after_containerd_all_that_serve_nothing_are_ended(socket: Path, start: Start, tmp_path: Path) -> None:
    childless, busy = start("a"), start("b", script=PARENT)
    foreign = start("c", address=tmp_path / "other.sock")
    end_childless(socket)
    assert childless.wait() == -9
    assert [process.poll() for process in (busy, foreign)] == [None, None]


def test_another_process_with_the_same_id_is_left_alone(socket: Path, start: Start) -> None:
    process = start("a")
    (shim,) = shims(socket)
    assert not end(Shim(shim.pid, shim.start + 1, "a"), socket)
    assert not end(Shim(shim.pid, shim.start, "b"), socket)
    assert process.poll() is None
