"""Shared informers: one cache of a kind for all components of a process.

informers = Informers(client, clock)
pods = informers.of(Pod)                 # the same informer for whoever asks
pods.add_index("node", lambda pod: [pod.spec.node_name])
await informers.run()                    # all that were asked for, and those asked for later
"""

import asyncio
from typing import Any, TypeVar

from podfit.api.meta.resource_info import ResourceInfo
from podfit.client.informer import Informer
from podfit.client.resource import Kind, resource_of
from podfit.client.rest import Client
from podfit.core.clock import Clock

T = TypeVar("T")


class Informers:
    """`client` lists and watches; who may write is another matter."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._shared: dict[tuple[str, str, str, str], Informer[Any]] = {}
        self._waiting: list[Informer[Any]] = []
        self._asked = asyncio.Event()

    def of(self, kind: Kind[T], *, namespace: str = "", fields: str = "") -> Informer[T]:
        """The one of this kind, or of the part of it that is selected."""
        info = resource_of(kind).info
        key = info.group, info.resource, namespace, fields
        if key not in self._shared:
            self._shared[key] = Informer(self._client, kind, clock=self._clock, namespace=namespace, fields=fields)
            self._waiting.append(self._shared[key])
            self._asked.set()
        return self._shared[key]

    def whole(self, info: ResourceInfo) -> Informer[Any] | None:
        """The one that follows every object of a kind, if somebody asked for it."""
        return self._shared.get((info.group, info.resource, "", ""))

    async def run(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._asked.clear()
                while self._waiting:
                    group.create_task(self._waiting.pop().run())
                await self._asked.wait()
