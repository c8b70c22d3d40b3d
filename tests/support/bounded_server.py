"""podfit's command line in a process whose event loop is measured and whose memory is limited.

    python bounded_server.py SHARED MEMORY_BYTES up --node none …

SHARED is a file that the measuring process reads: four numbers (`RECORD`), and after them where the loop's thread was
when it had not turned for a while.
"""

import asyncio
import mmap
import os
import resource
import signal
import struct
import sys
import threading
import time
import traceback
from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.turns import TICK_SECONDS, Turns

RECORD = struct.Struct("<qqdq")
"""The round that was asked for, the round that is measured, the worst turn in seconds, how often was looked."""
ANSWER, ANSWER_AT = struct.Struct("<qdq"), 8
"""All but the first, which is the other process's: written back, it would undo what was asked for meanwhile."""
CLOCK = struct.Struct("<d")  # seconds by which the time of day is set
SIZE, WHERE, CLOCK_AT = 16 * 1024, 64, 32
SUSPICIOUS_SECONDS = 0.06
HANGING = ".hanging"  # the ending of a file beside SHARED: while it is there, the kubelet's disk does not answer


class Told(Turns):
    """Writes what it measures where another process sees it, and begins anew when that process asks for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, shared: mmap.mmap) -> None:
        super().__init__(loop)
        self._shared = shared
        self._round, self._looks = 0, 0
        self.turned = time.monotonic()

    def note(self) -> None:
        super().note()
        self.turned = time.monotonic()
        asked, *_ = RECORD.unpack_from(self._shared)
        if asked != self._round:
            self._round = asked
            self.reset()
            self.say_where("")
        self._looks += 1
        ANSWER.pack_into(self._shared, ANSWER_AT, self._round, self.worst, self._looks)

    def say_where(self, text: str) -> None:
        self._shared[WHERE:SIZE] = text.encode()[-(SIZE - WHERE) :].ljust(SIZE - WHERE, b"\0")


def watch(told: Told, thread: int) -> None:
    """Say where the loop's thread is when a turn is long; of the longest turn the latest place."""
    longest = SUSPICIOUS_SECONDS
    while True:
        time.sleep(10 * TICK_SECONDS)
        late = time.monotonic() - told.turned
        frame = sys._current_frames().get(thread)
        if late > longest and frame is not None:
            longest = late
            told.say_where("".join(traceback.format_stack(frame)[-12:]))
        elif told.worst < SUSPICIOUS_SECONDS:
            longest = SUSPICIOUS_SECONDS


def _set_clock(shared: mmap.mmap) -> None:
    """Have the process's time of day follow what SHARED says."""
    from podfit.net.system import SystemClock

    now = SystemClock.now
    SystemClock.now = lambda self: now(self) + timedelta(seconds=CLOCK.unpack_from(shared, CLOCK_AT)[0])  # type: ignore[method-assign]  # a fault put in


def _let_disk_hang(sign: Path) -> None:
    """Have the kubelet's writes wait as long as there is such a file."""
    from podfit.kubelet.disk.writer import DiskWriter

    run = DiskWriter.run

    async def waiting(self: DiskWriter, path: Path, work: Any) -> Any:
        def late() -> Any:
            while sign.exists():
                time.sleep(TICK_SECONDS)
            return work()

        return await run(self, path, late)

    DiskWriter.run = waiting  # type: ignore[method-assign]  # a fault put in


def _have_files() -> None:
    """Have a simulated node write its pods' files as a real one does."""
    from podfit.process.node import cluster_node as node
    from podfit.process.node import kubelet_config

    made = kubelet_config.kubelet_config
    node.kubelet_config = lambda *args, **more: replace(made(*args, **more), files=True)  # type: ignore[attr-defined]  # put in


def _end_at(name: str) -> None:
    """Have the process end, as by the kernel, when its node works on the pod of this name."""
    from podfit.kubelet.sources import environment

    words = environment.words

    async def ending(pod: Any, *args: Any, **more: Any) -> Any:
        if pod.metadata.name == name:
            os.kill(os.getpid(), signal.SIGKILL)
        return await words(pod, *args, **more)

    environment.words = ending


def main() -> None:
    path, memory, *arguments = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    import uvloop

    from podfit.process import run_cluster

    with Path(path).open("r+b") as file:
        shared = mmap.mmap(file.fileno(), SIZE)
    _set_clock(shared)
    _let_disk_hang(Path(path + HANGING))
    _have_files()
    if bomb := os.environ.get("PODFIT_TEST_BOMB"):
        _end_at(bomb)
    make = uvloop.new_event_loop

    def measured_loop() -> Any:
        loop = make()
        told = Told(loop, shared)
        loop.call_soon(told.start)
        threading.Thread(target=watch, args=(told, threading.get_ident()), daemon=True).start()
        return loop

    uvloop.new_event_loop = measured_loop
    run_cluster.SETTLE_SECONDS = 0.0  # looking through what the start has made is no attack's turn
    sys.argv = ["podfit", *arguments]
    from podfit.cli.app import main as podfit

    podfit()


if __name__ == "__main__":
    main()
