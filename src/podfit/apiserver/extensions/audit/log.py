"""The file of the audit log.

Lines are written by a thread, in batches, so that no request waits for the disk. The file is opened for each batch: it
may be moved away, as log rotation does, and the next batch begins a new one. What cannot be written is dropped and
counted, which the server's own log says once when it begins and once when it is over; requests go on.
"""

import asyncio
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from podfit.api.audit.v1.types import AuditPolicy
from podfit.api.meta.base import Document
from podfit.core.clock import Clock
from podfit.net.supervisor import Supervisor

log = logging.getLogger(__name__)

MODE = 0o600
LARGEST = 64 * 2**20  # bytes that may wait for the disk


class AuditLog:
    """Raises OSError when the file cannot be made."""

    def __init__(self, path: Path, policy: AuditPolicy, clock: Clock) -> None:
        self.policy, self.clock = policy, clock
        self.dropped = 0
        self._path = path
        self._waiting: list[bytes] = []
        self._size = 0
        self._failing = False
        self._writer = ThreadPoolExecutor(1, "audit-log")
        self.supervisor = Supervisor("audit log")
        self._writing = False
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._append([])

    def write(self, event: Document) -> None:
        line = msgspec.json.encode(event) + b"\n"
        if self._size + len(line) > LARGEST:
            self.dropped += 1
            return
        self._waiting.append(line)
        self._size += len(line)
        if not self._writing:
            self._writing = True
            self.supervisor.begin(self._write(), name="audit log")

    async def close(self) -> None:
        """Write what waits."""
        await self.supervisor.finish()
        self._writer.shutdown()

    async def _write(self) -> None:
        while self._waiting:
            lines, self._waiting, self._size = self._waiting, [], 0
            try:
                await asyncio.get_running_loop().run_in_executor(self._writer, self._append, lines)
            except OSError as error:
                self._failed(len(lines), error)
            else:
                self._recovered()
        self._writing = False

    def _append(self, lines: list[bytes]) -> None:
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, MODE)
        try:
            os.fchmod(handle, MODE)
            left = memoryview(b"".join(lines))
            while left:
                left = left[os.write(handle, left) :]
        finally:
            os.close(handle)

    def _failed(self, lines: int, error: OSError) -> None:
        self.dropped += lines
        if not self._failing:
            log.error("audit log cannot be written file=%s error=%s", self._path, error)
        self._failing = True

    def _recovered(self) -> None:
        if self._failing:
            log.warning("audit log is written again file=%s dropped=%d", self._path, self.dropped)
        self._failing = False
