"""A file whose disk does not answer: in its place is a pipe that nobody reads, so who opens it to write waits.

hanging = Hanging(path)
hanging.answer()          who waits goes on, and finds that the pipe is no file
"""

import os
from pathlib import Path


class Hanging:
    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        self._path = path

    def answer(self) -> None:
        if self._path.is_fifo():
            aside = self._path.with_name(f"{self._path.name}.pipe")
            self._path.rename(aside)
            os.close(os.open(aside, os.O_RDONLY | os.O_NONBLOCK))
            aside.unlink()
