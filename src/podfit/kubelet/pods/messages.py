"""Why a container ended, in its own words: the termination message file, or the end of its log.

    File                    what it wrote to its termination message path, at most 4096 bytes
    FallbackToLogsOnError   the same; if that is empty and it failed, its last 80 lines of log, at most 2048 bytes
"""

from pathlib import Path

from podfit.kubelet.server.logs import tail_text

FILE_BYTES = 4096
LOG_BYTES = 2048
LOG_LINES = 80


def read_message(file: Path, policy: str, *, log: Path, failed: bool) -> str:
    """Empty when the container said nothing, or its files are gone."""
    text = _head(file) if file.name else ""
    if not text and failed and policy == "FallbackToLogsOnError":
        return tail_text(log, lines=LOG_LINES, limit=LOG_BYTES)
    return text


def _head(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return stream.read(FILE_BYTES).decode(errors="replace")
    except OSError:
        return ""
