"""Nodes, for whoever needs what they have and not every heartbeat: one list, good for a while."""

import asyncio
import logging
from collections.abc import Collection, Mapping

from podfit.api.core.v1.nodes.types import Node
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError

LASTING = 60.0
"""Seconds."""
log = logging.getLogger(__name__)


class Nodes:
    """None where they may not be read."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._read_at = float("-inf")
        self._found: Mapping[str, Node] = {}
        self._reading = asyncio.Lock()

    async def by_name(self, wanted: Collection[str], *, at_most_every: float) -> Mapping[str, Node]:
        """All of them. One of these that is not among them may be new: then they are read again, but not more often
        than every so many seconds."""
        async with self._reading:
            known = all(name in self._found for name in wanted)
            if self._read_at + (LASTING if known else at_most_every) <= self._clock.monotonic():
                self._found = await self._read()
                self._read_at = self._clock.monotonic()
        return self._found

    async def _read(self) -> dict[str, Node]:
        try:
            return {node.metadata.name: node for node in (await self._client.list(Node)).items}
        except (ApiError, ConnectionError, ValueError) as error:
            log.warning("nodes not read, no pod is taken for one that can grow error=%s", error)
            return {}
