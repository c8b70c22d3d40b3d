"""All nodes, for whoever needs what they have and not every heartbeat: one list, good for a while."""

import asyncio
import logging
from collections.abc import Mapping

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
        self._until = float("-inf")
        self._found: Mapping[str, Node] = {}
        self._reading = asyncio.Lock()

    async def all(self) -> Mapping[str, Node]:
        """By name."""
        async with self._reading:
            if self._until <= self._clock.monotonic():
                self._found = await self._read()
                self._until = self._clock.monotonic() + LASTING
        return self._found

    async def _read(self) -> dict[str, Node]:
        try:
            return {node.metadata.name: node for node in (await self._client.list(Node)).items}
        except (ApiError, ConnectionError, ValueError) as error:
            log.warning("nodes not read, no pod is taken for one that can grow error=%s", error)
            return {}
