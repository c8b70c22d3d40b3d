"""Loading image archives into the private containerd.

CRI has no call for it, so containerd's own `ctr` does it: it comes with containerd, takes docker-save and OCI
archives, and normalises names as Docker does (`busybox:1.36` becomes `docker.io/library/busybox:1.36`).
"""

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path

from podfit.kubelet.runtime.errors import CRIError

NAMESPACE = "k8s.io"  # where the CRI plugin looks
_UNPACKING = re.compile(r"^unpacking (\S+)")


@dataclass(frozen=True, slots=True)
class Importer:
    """`ctr` is the program, `socket` that of containerd."""

    ctr: str
    socket: Path

    async def load(self, archive: Path) -> tuple[str, ...]:
        """The names of the images that the archive held. CRIError with ctr's words when it cannot be read."""
        process = await asyncio.create_subprocess_exec(
            self.ctr, "--address", str(self.socket), "--namespace", NAMESPACE, "images", "import",
            str(archive), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await process.communicate()
        if process.returncode:
            raise CRIError(f"cannot load {archive}: {err.decode(errors='replace').strip()}")
        found = (_UNPACKING.match(line) for line in out.decode().splitlines())
        return tuple(match[1] for match in found if match)
