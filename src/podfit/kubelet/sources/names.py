"""The node's own /etc/hosts and resolv.conf, from which those of pods are made."""

import asyncio
from pathlib import Path

import msgspec

MOST_BYTES = 256 * 1024  # of either; what is beyond is left out


class NodeNames(msgspec.Struct, frozen=True):
    """Both files may be missing, and are empty then; a simulated node has neither."""

    hosts: Path | None = Path("/etc/hosts")
    resolver: Path | None = Path("/etc/resolv.conf")

    async def hosts_file(self) -> str:
        return await _text(self.hosts)

    async def resolver_file(self) -> str:
        return await _text(self.resolver)


NO_NAMES = NodeNames(None, None)


async def _text(path: Path | None) -> str:
    return "" if path is None else await asyncio.to_thread(_read, path)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""
