"""What the kernel counts of one cgroup, read a few times a second through files that stay open.

A read through an open file is one system call; opening it each time would cost three, and a hundred containers are
looked at four times a second. On a hybrid host pressure is in the unified tree, whose directories the runtime makes
beside those of v1.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from podfit.decide.autoscaling.burst import Sample, is_near
from podfit.kubelet.cgroup import files
from podfit.kubelet.cgroup.protocol import Missing

PIECE = 8192
"""Bytes; each of these files is shorter."""


class Files(dict[str, int]):
    """Open files by what they tell; those that this kernel does not have are left out."""


def opened(paths: Mapping[str, Path], needed: str) -> Files:
    """Raises CgroupError when the one that is `needed` cannot be opened."""
    found = Files()
    for name, path in paths.items():
        try:
            found[name] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            if name == needed:
                close(found)
                raise files.failed(f"opening {path}", error) from error
    return found


def close(found: Files) -> None:
    for handle in found.values():
        os.close(handle)
    found.clear()


class Counters:
    """The counters of one cgroup, until `close`. `cpu` reads what was used in seconds, `idle` is the name of idle cache
    in it."""

    def __init__(self, found: Files, *, cpu: Callable[[Files], float | None], idle: bytes) -> None:
        self._files, self._cpu, self._idle = found, cpu, idle

    def read(self, limit: int | None) -> Sample:
        """Idle cache and waits for memory are read only near its `limit`. Raises Missing when the cgroup is gone."""
        try:
            return self._read(limit)
        except OSError as error:
            raise Missing(f"reading counters: {error.strerror}") from error

    def _read(self, limit: int | None) -> Sample:
        found = self._files
        stat = text(found, "cpu.stat")
        memory = whole(text(found, "memory"))
        stalls = b""
        if memory is not None and is_near(memory, limit):
            memory -= named(text(found, "memory.stat"), self._idle) or 0
            stalls = text(found, "pressure")
        return Sample(
            cpu=self._cpu(found),
            periods=named(stat, b"nr_periods"),
            throttled=named(stat, b"nr_throttled") or 0,
            memory=memory,
            waited=waited(stalls),
        )

    def close(self) -> None:
        close(self._files)


def text(found: Files, name: str) -> bytes:
    """Empty where there is no such file."""
    handle = found.get(name)
    return b"" if handle is None else os.pread(handle, PIECE, 0)


def whole(content: bytes) -> int | None:
    return int(content) if content else None


def named(content: bytes, name: bytes) -> int | None:
    """The number behind a name at the beginning of a line; None where there is none."""
    start = 0 if content.startswith(name + b" ") else content.find(b"\n" + name + b" ") + 1
    if start == 0 and not content.startswith(name + b" "):
        return None
    start += len(name) + 1
    end = content.find(b"\n", start)
    return int(content[start:] if end < 0 else content[start:end])


def waited(content: bytes) -> float | None:
    """Seconds in which anything of it waited, from the first line of a pressure file."""
    line = content.partition(b"\n")[0]
    if not line.startswith(b"some "):
        return None
    return int(line.rpartition(b"total=")[2]) / 1e6
