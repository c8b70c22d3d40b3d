"""A file whose disk does not answer: in its place is a pipe that nobody reads, so who opens it to write waits.

hanging = Hanging(path)
clock.hanging = partial(being_written, writer, path)      the clock does not wait for its thread
hanging.answer()                                          who waits goes on, and finds that the pipe is no file
"""

import asyncio
import os
from pathlib import Path

from podfit.kubelet.disk.writer import DiskWriter


def being_written(writer: DiskWriter, *paths: Path) -> set[asyncio.Future[object]]:
    """The work in threads on these files."""
    return writer.at_disk(*paths)


class Hanging:
    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        self._path = path
        self._reader = -1

    def answer(self) -> None:
        """Who has found the pipe but not opened it yet goes on as well, until `close`."""
        if self._path.is_fifo():
            aside = self._path.with_name(f"{self._path.name}.pipe")
            self._path.rename(aside)
            self._reader = os.open(aside, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            aside.unlink()

    def close(self) -> None:
        """At the end of the test, when all threads are through."""
        self.answer()
        if self._reader >= 0:
            os.close(self._reader)
            self._reader = -1
