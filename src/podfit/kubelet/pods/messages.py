"""Why a container ended, in its own words: the termination message file, or the end of its log.

File                    what it wrote to its termination message path, the last 4096 bytes of it
FallbackToLogsOnError   the same; if that is empty and it failed, its last 80 lines of log, at most 2048 bytes
"""

import os
from pathlib import Path

from podfit.kubelet.disk.safe_paths import open_regular
from podfit.kubelet.runtime.logs import tail_text

FILE_BYTES = 4096
LOG_BYTES = 2048
LOG_LINES = 80


def read_message(file: Path, policy: str, *, log: Path, failed: bool) -> str:
    """Empty when the container said nothing, or its files are gone."""
    text = _tail(file) if file.name else ""
    if not text and failed and policy == "FallbackToLogsOnError":
        return tail_text(log, lines=LOG_LINES, limit=LOG_BYTES)
    return text


def _tail(file: Path) -> str:
    try:
        with open(open_regular(file), "rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - FILE_BYTES))
            return stream.read(FILE_BYTES).decode(errors="replace")
    except OSError:
        return ""
