"""The garbage collector's watches, one for each kind that the server has.

A kind that the process follows anyway has its watch already, which is used; no other copy of it is kept.

Kinds come and go with their definitions, so the server's own list of them is read again whenever a definition changes;
nothing is asked for on a timer, but what another component serves that was away. Objects come whole, but only the marks
of their metadata are decoded: in one process the line of a watch is encoded once for everybody who watches the kind,
while metadata alone would be made for us.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from podfit.client.informer import Informer
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.garbage.graph import Item, Marked
from podfit.controllers.served_kinds import Inventory, Served, served
from podfit.core.clock import Clock
from podfit.core.errors import ApiError

log = logging.getLogger(__name__)

IGNORED = "events"  # in whichever group: they belong to nobody, and are many
DEFINITIONS = ("apiextensions.k8s.io", "customresourcedefinitions")
PAUSE = 1.0  # seconds, after a definition changed or the server could not be asked
ASK_AGAIN = 30.0  # seconds, while a component that serves kinds does not answer
VERBS = ("delete", "list", "watch")


class Follower:
    """`seen(old, new)` is called for each change; `new` is None for a deletion, `old` for what was not known."""

    def __init__(
        self, client: Client, informers: Informers, clock: Clock, seen: Callable[[Item | None, Item | None], None]
    ) -> None:
        self._client, self._shared, self._clock, self._seen = client, informers, clock, seen
        self._followed: dict[Served, tuple[Informer[Any], asyncio.Task[None] | None]] = {}
        self._stale = asyncio.Event()
        self.ready = asyncio.Event()  # all kinds have been listed once

    def find(self, group: str, kind: str) -> Served | None:
        """The kind that an owner reference names; references outlive versions, so the version does not matter."""
        return next((followed for followed in self._followed if (followed.group, followed.kind) == (group, kind)), None)

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._stale.clear()
                listing = group.create_task(self._refresh(group))
                await self._stale.wait()
                await self._clock.sleep(PAUSE)
                listing.cancel()

    async def _refresh(self, group: asyncio.TaskGroup) -> None:
        """Follow what there is by now; a kind that goes before it is listed must not be waited for."""
        try:
            inventory = await served(self._client, *VERBS)
        except (ApiError, ConnectionError) as error:
            log.warning("cannot ask which kinds there are error=%s", error)
            self._stale.set()
            return
        self._follow(group, inventory)
        if inventory.silent:
            self._clock.call_later(ASK_AGAIN, self._stale.set)
        await asyncio.gather(*(informer.synced.wait() for informer, _ in self._followed.values()))
        self.ready.set()

    def _follow(self, group: asyncio.TaskGroup, inventory: Inventory) -> None:
        """What was served by who does not answer now is followed on."""
        wanted = dict.fromkeys(kind for kind in inventory.kinds if kind.resource != IGNORED)
        wanted |= dict.fromkeys(kind for kind in self._followed if (kind.group, kind.version) in inventory.silent)
        for key in [followed for followed in self._followed if followed not in wanted]:
            informer, task = self._followed.pop(key)
            if task is not None:
                task.cancel()
            for obj in informer.list():
                self._seen(Item.of(key, obj), None)
        for key in [kind for kind in wanted if kind not in self._followed]:
            shared = self._shared.whole(key.info())
            informer = self._heard(key, shared or self._own(key))
            self._followed[key] = informer, None if shared else group.create_task(informer.run())

    def _own(self, of: Served) -> Informer[Any]:
        return Informer(self._client, of.decoded_as(Marked), clock=self._clock)

    def _heard(self, of: Served, informer: Informer[Any]) -> Informer[Any]:
        informer.add_handler(
            add=lambda new: self._seen(None, Item.of(of, new)),
            update=lambda old, new: self._seen(Item.of(of, old), Item.of(of, new)),
            delete=lambda old: self._seen(Item.of(of, old), None),
        )
        if (of.group, of.resource) == DEFINITIONS:
            informer.add_handler(
                add=lambda _: self._stale.set(),
                update=lambda _old, _new: self._stale.set(),
                delete=lambda _: self._stale.set(),
            )
        return informer
