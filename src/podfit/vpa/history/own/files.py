"""The directory of the history: its files, who may read them, and what becomes of a damaged one.

The directory has mode 0700 and its files 0600: who may read the history is whoever may read the data directory.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from podfit.decide.history.retention import HistoryFile, Level, counted, file_of
from podfit.net.files import sync_directory

DAMAGED, NEW = ".damaged", ".new"
MOST_DAMAGED = 10
"""Files that are set aside; the oldest of more are removed."""
CHUNK = 1 << 20


class Readable(NamedTuple):
    """`damaged` are names of files that were left out, each with what is wrong with it."""

    segments: list[HistoryFile]
    journals: list[HistoryFile]
    damaged: list[str]


class HistoryDirectory:
    def __init__(self, root: Path) -> None:
        self.root = root

    def create(self) -> None:
        """Raises OSError."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.root.chmod(0o700)

    def path(self, file: HistoryFile) -> Path:
        return self.root / file.name

    def files(self) -> list[HistoryFile]:
        """Raises OSError."""
        listed = list[HistoryFile]()
        with os.scandir(self.root) as entries:
            for entry in entries:
                if (file := file_of(entry.name)) is not None and entry.is_file(follow_symlinks=False):
                    with suppress(FileNotFoundError):
                        listed.append(replace(file, size=entry.stat(follow_symlinks=False).st_size))
        return listed

    def began(self) -> float | None:
        """Seconds since 1970 of the oldest file; None for none, or where they cannot be listed."""
        try:
            return min((float(file.begin) for file in self.files()), default=None)
        except OSError:
            return None

    def readable(self, since: float) -> Readable:
        """What counts of the time since then, in its order. Damaged segments are set aside. Raises OSError."""
        segments, journals, damaged = list[HistoryFile](), list[HistoryFile](), list[str]()
        for file in counted(self.files()):
            if file.until <= since:
                continue
            if file.level is Level.JOURNAL:
                journals.append(file)
            elif self.whole(file):
                segments.append(file)
            else:
                damaged.append(f"{file.name}: its bytes are not those that were written")
                self.set_aside(file)
        return Readable(segments, journals, damaged)

    def whole(self, file: HistoryFile) -> bool:
        """Whether a segment has the bytes that were written; one that is gone was replaced, and is whole."""
        try:
            return sum_of(self.path(file)) == file.sum
        except FileNotFoundError:
            return True

    def set_aside(self, file: HistoryFile) -> None:
        """Kept under another name, where that may be done, for whoever wants to look at it."""
        path = self.path(file)
        with suppress(OSError):
            path.rename(path.with_name(file.name + DAMAGED))
        for old in sorted(self.root.glob(f"*{DAMAGED}"), key=lambda path: path.name.partition("-")[2])[:-MOST_DAMAGED]:
            with suppress(OSError):
                old.unlink()

    def remove(self, files: Iterable[HistoryFile]) -> None:
        for file in files:
            self.path(file).unlink(missing_ok=True)

    def publish(self, file: HistoryFile, write: Callable[[Path], None]) -> HistoryFile:
        """A segment that `write` makes, whole and durable before it has its name. Raises OSError."""
        neighbour = self.root / f"{file.level.name.lower()}-{file.begin}-{file.serial}{NEW}"
        try:
            write(neighbour)
            neighbour.chmod(0o600)
            handle = os.open(neighbour, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
            made = replace(file, sum=sum_of(neighbour), size=neighbour.stat().st_size)
            neighbour.rename(self.path(made))
        finally:
            neighbour.unlink(missing_ok=True)
        sync_directory(self.root)
        return made


def sum_of(path: Path) -> str:
    """Raises OSError."""
    total = blake2b(digest_size=8)
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            total.update(chunk)
    return total.hexdigest()
