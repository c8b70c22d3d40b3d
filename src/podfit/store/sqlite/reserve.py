"""Reserved disk space for deletions: a deletion is a write, which a full disk would refuse.

`store.reserve` is a file that holds nothing. When a write finds the disk full the file is removed, and until there is
room for it again only what makes room is written.
"""

import errno
import logging
import os
import threading
from pathlib import Path

logger = logging.getLogger(__name__)

SIZE = 8 * 2**20
MARGIN = 256 * 2**10
PLENTY = 64 * 2**20  # bytes free beyond which nothing is counted
SHARE = 16  # of a small file system no more than this part


class Reserve:
    """May be used by several threads."""

    def __init__(self, store: Path) -> None:
        self._path = store.with_name(f"{store.stem}.reserve")
        self._folder = str(self._path.parent)
        self._lock = threading.Lock()

    @property
    def held(self) -> bool:
        return self._path.exists()

    def free(self) -> int:
        """Bytes that may still be written beside it."""
        disk = os.statvfs(self._folder)
        return disk.f_bavail * disk.f_frsize

    def room(self, more: int = 0) -> bool:
        """Whether there is room for it and a little besides; `more` bytes could be freed."""
        return self.free() + more >= self.size() + MARGIN

    def slack(self, spare: int) -> int:
        """Bytes that creations leave free, for what is not counted; fewer when the store has `spare` ones in itself."""
        return max(MARGIN // 2, self.size() // 2 - spare)

    def take(self) -> bool:
        """Have it on the disk; False when there is no room."""
        with self._lock:
            if self.held:
                return True
            if not self.room():
                return False
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(handle, 0, self.size())
            except OSError as error:
                self._path.unlink()
                if error.errno != errno.ENOSPC:
                    raise
                return False
            finally:
                os.close(handle)
            return True

    def give_up(self) -> bool:
        """False when there is none to give up."""
        with self._lock:
            try:
                self._path.unlink()
            except FileNotFoundError:
                return False
            logger.warning("disk full, reserve given up for deletions file=%s", self._path)
            return True

    def size(self) -> int:
        disk = os.statvfs(self._folder)
        return min(SIZE, disk.f_blocks * disk.f_frsize // SHARE)
