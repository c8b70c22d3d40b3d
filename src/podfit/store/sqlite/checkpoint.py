"""WAL checkpoints off the commit path: inside a commit one costs 20 to 160 ms.

It happens when writing has paused or the log has grown large, on a connection and a thread of its own. SQLite starts
the log afresh only when all of it has been copied, and under steady load a pass never quite catches up; the last, short
pass therefore holds the writer back. Without it the log would grow for as long as the load lasts.

Once all has been copied the log's file is made AHEAD bytes long. A commit then overwrites what is there: to make a file
longer is a change of the file system as well, for which the disk is waited for once more.
"""

import contextlib
import logging
import os
import sqlite3
import threading

from podfit.store.sqlite.file import StoreFile
from podfit.store.sqlite.reserve import PLENTY, Reserve

logger = logging.getLogger(__name__)

LARGE = 32 * 2**20  # bytes written since the last pass
SMALL = 2**20  # on a disk that is nearly full: copying takes as much room once more
SHORT = 2 * 2**20  # bytes whose copying the writer may wait for
PASSES = 2  # without holding the writer
PAUSE = 1.0  # seconds without a write
AHEAD = 4 * 2**20  # bytes of the log's file
PIECE = 256 * 2**10  # bytes of it that are written while commits wait


class Checkpointer:
    """`writing` is held by the writer during a commit; `left` is the size of the log that an earlier process left. The
    disk's reserve is taken here, too: that is nothing a start has to wait for."""

    def __init__(self, file: StoreFile, writing: threading.Lock, reserve: Reserve, left: int) -> None:
        self._file = file
        self._reserve = reserve
        self._large = LARGE
        self._writing = writing
        self._changed = threading.Condition()
        self._written = left  # bytes, estimated, since the last pass began
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="store-checkpoint", daemon=True)
        self._thread.start()

    def wrote(self, size: int) -> None:
        """A commit has added so much to the log. Wakes the thread only when that changes what it waits for."""
        large = min(LARGE, max(SMALL, self._reserve.free() // 16))
        with self._changed:
            self._large = large
            before, self._written = self._written, self._written + size
            if before == 0 or before < large <= self._written:
                self._changed.notify()

    def empty(self) -> bool:
        """Copy all of the log now and give its room back, for a writer that found the disk full and holds `writing`.
        Whether that was done."""
        try:
            return self._pass("TRUNCATE")
        except sqlite3.Error as error:
            logger.warning("checkpoint failed error=%s", error)
            return False

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        try:
            if not self._reserve.take():
                logger.warning("the disk has no room for the reserve that deletions need when it is full")
        except OSError as error:
            logger.warning("no reserve for a full disk error=%s", error)
        while self._due():
            try:
                self._copy()
                self._lengthen()
            except (sqlite3.Error, OSError) as error:  # it is tried again after the next writes
                logger.warning("checkpoint failed error=%s", error)

    def _due(self) -> bool:
        """Wait until there is something to copy; False when closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._written)
            seen = 0
            while not self._closed and seen != self._written < self._large:
                seen = self._written
                self._changed.wait_for(lambda: self._closed or self._written >= self._large, PAUSE)
            return not self._closed

    def _copy(self) -> None:
        for _ in range(PASSES):
            self._pass()
            if self._written <= SHORT:
                break
        with self._writing:  # always: a commit may have ended within the pass and not be counted yet
            self._pass()

    def _pass(self, mode: str = "PASSIVE") -> bool:
        """Whether nothing is left to copy."""
        with self._changed:
            self._written = 0
        with contextlib.closing(self._file.copier.execute(f"PRAGMA wal_checkpoint({mode})")) as result:
            busy, frames, done = result.fetchone()
        return not busy and frames == done

    def _lengthen(self) -> None:
        """Zeros behind the log, which SQLite takes for its end; none where the disk has little room. Raises OSError."""
        while not self._closed and self._file.log_size() < AHEAD and self._reserve.free() >= PLENTY + AHEAD:
            handle = os.open(self._file.log_path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                with self._writing:  # or a commit might write in the same place
                    size = self._file.log_size()
                    os.pwrite(handle, bytes(max(0, min(PIECE, AHEAD - size))), size)
                os.fdatasync(handle)
            finally:
                os.close(handle)
