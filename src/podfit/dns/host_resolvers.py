"""The resolvers of this machine, as /etc/resolv.conf names them: read anew when it is old."""

import asyncio
from collections.abc import Collection
from pathlib import Path

from podfit.core.clock import Clock
from podfit.decide.dns.records import is_address
from podfit.decide.pod.resolver import parse
from podfit.dns.forwarder import Resolver

FRESH_SECONDS = 5.0
MOST_BYTES = 64 * 1024
RESOLV_CONF = Path("/etc/resolv.conf")


class HostResolvers:
    """`own` are addresses at which the name server itself answers: it does not ask itself."""

    def __init__(self, clock: Clock, file: Path = RESOLV_CONF, own: Collection[str] = ()) -> None:
        self._clock, self._file, self._own = clock, file, own
        self._known: tuple[Resolver, ...] = ()
        self._until = float("-inf")

    async def __call__(self) -> tuple[Resolver, ...]:
        """None where there is no such file."""
        now = self._clock.monotonic()
        if now >= self._until:
            self._until = now + FRESH_SECONDS
            text = await asyncio.to_thread(_read, self._file)
            servers = [server for server in parse(text).servers if is_address(server.partition("%")[0])]
            self._known = tuple(Resolver(server) for server in servers if server not in self._own)
        return self._known


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""
