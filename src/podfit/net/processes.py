"""Processes of this machine, by /proc; and returning this process's free memory."""

import ctypes
from pathlib import Path


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when there is none, or only its remains. An id is given
    again after a while, an id together with a start time is not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else int(fields[19])


def give_back() -> None:
    """Give pages that the C library keeps for later back to the machine; nothing where it has no such call."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
