"""Processes of this machine, by /proc; where its programs lie; and returning this process's free memory."""

import ctypes
import shutil
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


CNI_FOLDERS = ("/usr/lib/cni", "/opt/cni/bin")


class MissingProgram(Exception):
    """A program is not installed; the text says which package has it."""


def static_busybox() -> Path:
    """The static busybox; a dynamic one would not run without its libraries. Raises MissingProgram."""
    for candidate in ("/bin/busybox", "/usr/bin/busybox", shutil.which("busybox") or ""):
        if candidate and Path(candidate).exists() and b"/ld-linux" not in Path(candidate).read_bytes()[:8192]:
            return Path(candidate).resolve()
    raise MissingProgram("no static busybox: install the package busybox-static")
