"""Programs of this machine that a node is made of, and where they lie."""

import shutil
from pathlib import Path

CNI_FOLDERS = ("/usr/lib/cni", "/opt/cni/bin")


class MissingProgram(Exception):
    """A program is not installed; the text says which package has it."""


def static_busybox() -> Path:
    """The static busybox; a dynamic one would not run without its libraries. Raises MissingProgram."""
    for candidate in ("/bin/busybox", "/usr/bin/busybox", shutil.which("busybox") or ""):
        if candidate and Path(candidate).exists() and b"/ld-linux" not in Path(candidate).read_bytes()[:8192]:
            return Path(candidate).resolve()
    raise MissingProgram("no static busybox: install the package busybox-static")
