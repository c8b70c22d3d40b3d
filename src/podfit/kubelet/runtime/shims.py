"""Leaked shims of the private containerd, which outlived their sandbox.

containerd starts a shim for each sandbox, which ends when the sandbox is removed. Under fast creation and deletion some
do not (containerd 1.6.20: 3 of 400). A shim is ended here only if it names the socket of this containerd, has no child
process, and serves no sandbox that the runtime knows, and only if all that was so at two looks: a shim that has just
been started looks the same for a moment.
"""

import logging
import os
import signal
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from podfit.net.processes import start_ticks

log = logging.getLogger(__name__)

PROGRAM = "containerd-shim"


class Shim(msgspec.Struct, frozen=True):
    """`start` tells the process from a later one with its id; `sandbox` is what it was started for."""

    pid: int
    start: int
    sandbox: str


class LeakedShims:
    """Those of the containerd on one socket. `look` is to be called again and again."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._suspects: frozenset[Shim] = frozenset()

    def look(self, known: Collection[str]) -> tuple[Shim, ...]:
        """End the shims that are leaked for the second time; `known` are the sandboxes that the runtime has."""
        unknown = (shim for shim in shims(self._socket) if shim.sandbox not in known)
        leaked = frozenset(shim for shim in unknown if not _children(shim.pid))
        ended = tuple(shim for shim in leaked & self._suspects if end(shim, self._socket))
        self._suspects = leaked - frozenset(ended)
        return ended


def end_childless(socket: Path) -> None:
    """End every shim without a child. Only after containerd has ended: nobody starts one any more."""
    for shim in shims(socket):
        if not _children(shim.pid):
            end(shim, socket)


def shims(socket: Path) -> Iterator[Shim]:
    """Those that were started with the address of this containerd."""
    for directory in Path("/proc").glob("[0-9]*"):
        sandbox = _sandbox(int(directory.name), socket)
        start = start_ticks(int(directory.name)) if sandbox is not None else None
        if sandbox is not None and start is not None:
            yield Shim(int(directory.name), start, sandbox)


def end(shim: Shim, socket: Path) -> bool:
    """Kill it, if it is still the same process. False when it is gone already."""
    try:
        descriptor = os.pidfd_open(shim.pid)
    except ProcessLookupError:
        return False
    try:
        if start_ticks(shim.pid) != shim.start or _sandbox(shim.pid, socket) != shim.sandbox:
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    log.warning("leaked shim ended pid=%d sandbox=%s", shim.pid, shim.sandbox)
    return True


def _sandbox(pid: int, socket: Path) -> str | None:
    """What this process is a shim of; None when it is none of this containerd's."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
    except OSError:
        return None
    if not Path(words[0]).name.startswith(PROGRAM) or _option(words, "-address") != str(socket):
        return None
    return _option(words, "-id")


def _option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1] if name in words[:-1] else ""


def _children(pid: int) -> bool:
    """Whether it has any, or cannot be asked."""
    try:
        return any((task / "children").read_text().strip() for task in Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return True
