"""The node's own /etc/hosts and resolv.conf, from which those of pods are made."""

import asyncio
from pathlib import Path

import msgspec

from podfit.decide.pod.resolver import Resolver, parse

USUAL = Path("/etc/resolv.conf")
STUB, BEHIND = "127.0.0.53", Path("/run/systemd/resolve/resolv.conf")
MOST_BYTES = 256 * 1024  # of either; what is beyond is left out


class NodeNames(msgspec.Struct, frozen=True):
    """Both files may be missing, and are empty then; a simulated node has neither."""

    hosts: Path | None = Path("/etc/hosts")
    resolver: Path | None = USUAL

    async def hosts_file(self) -> str:
        return await _text(self.hosts)

    async def resolvers(self) -> tuple[Resolver, bool]:
        """What the second says, and whether that is what a runtime gives pods by itself. Where systemd-resolved answers
        on the loopback of the host, which pods do not reach, it is the servers behind it.
        """
        found = parse(await _text(self.resolver))
        if self.resolver == USUAL and found.servers == (STUB,) and (behind := await _text(BEHIND)):
            return parse(behind), False
        return found, self.resolver in (USUAL, None)


NO_NAMES = NodeNames(None, None)


async def _text(path: Path | None) -> str:
    return "" if path is None else await asyncio.to_thread(_read, path)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""
