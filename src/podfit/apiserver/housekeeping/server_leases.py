"""Leases of API servers: each server on a store renews its own, and all agree on who is alive.

A server renews the key `HOST:PORT`; who renews nothing for a while is dead (`live_servers`), its key is removed, and
it leaves the service `kubernetes`. Each server compares that with what it sees every few seconds, so it also comes back
when somebody removed it. A store that only one server can open needs none of this.
"""

import asyncio
import logging
from collections.abc import Mapping

import msgspec

from podfit.apiserver.context import Context
from podfit.apiserver.housekeeping import own_service
from podfit.apiserver.registry.stored import ROOT
from podfit.core.errors import ApiError
from podfit.store.protocol import KeyExists, RevisionConflict, StoreError

RENEW_SECONDS, DEAD_SECONDS = 10.0, 15.0


class Sighting(msgspec.Struct, frozen=True):
    """`since` is when this revision of a key was first seen, on the observer's monotonic clock."""

    revision: int
    since: float


def sighted(before: Mapping[str, Sighting], revisions: Mapping[str, int], now: float) -> dict[str, Sighting]:
    """What an observer knows after it read the keys; who is new begins anew."""
    return {
        name: old if (old := before.get(name)) is not None and old.revision == revision else Sighting(revision, now)
        for name, revision in revisions.items()
    }


def alive(sightings: Mapping[str, Sighting], now: float) -> tuple[str, ...]:
    return tuple(sorted(name for name, sighting in sightings.items() if now - sighting.since < DEAD_SECONDS))


log = logging.getLogger(__name__)

PREFIX = f"{ROOT}/podfit/servers/"
LOOK_SECONDS = RENEW_SECONDS / 2


class Servers:
    """`begin` when this server listens, at `name` (HOST:PORT); `end` when it stops."""

    def __init__(self, context: Context, name: str) -> None:
        self._context, self._name = context, name
        self._beats = 0
        self._renewed = 0.0
        self._sightings: dict[str, Sighting] = {}
        self._task: asyncio.Task[object] | None = None

    async def begin(self) -> None:
        await self._renew()
        await self._look()
        self._task = self._context.supervisor.run(self._run(), name="the other servers")

    async def end(self) -> None:
        """This server leaves at once."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._task = None
        try:
            record = await self._context.store.get(PREFIX + self._name)
            if record is not None:
                await self._remove(self._name, record.mod_revision)
            await self._look()
        except (StoreError, ApiError) as error:
            log.warning("the others will notice that this server left reason=%s", error)

    async def _run(self) -> None:
        while True:
            await self._context.clock.sleep(LOOK_SECONDS)
            try:
                if self._context.clock.monotonic() - self._renewed >= RENEW_SECONDS:
                    await self._renew()
                await self._look()
            except (StoreError, ApiError) as error:
                self._sightings = {}  # while the store was away nobody could renew anything
                log.warning("the other servers cannot be seen reason=%s", error)

    async def _renew(self) -> None:
        """The key may be of an earlier life, or have been removed by who took this server for dead."""
        self._beats += 1
        value = msgspec.json.encode({"beat": self._beats})
        while not await self._written(value):
            log.info("its key was written by others server=%s", self._name)
        self._renewed = self._context.clock.monotonic()

    async def _written(self, value: bytes) -> bool:
        store, key = self._context.store, PREFIX + self._name
        record = await store.get(key)
        try:
            if record is None:
                await store.create(key, value)
            else:
                await store.update(key, value, expected=record.mod_revision)
        except (KeyExists, RevisionConflict):
            return False
        return True

    async def _look(self) -> None:
        """Until nobody came or went meanwhile: whoever writes last has seen all the keys that were there by then."""
        told: set[str] | None = None
        while (living := await self._living()) != told:
            await own_service.lead_to(self._context, sorted(living))
            told = living

    async def _living(self) -> set[str]:
        page, now = await self._context.store.list(PREFIX), self._context.clock.monotonic()
        revisions = {record.key.removeprefix(PREFIX): record.mod_revision for record in page.records}
        self._sightings = sighted(self._sightings, revisions, now)
        living = set(alive(self._sightings, now))
        for dead in self._sightings.keys() - living:
            log.info("a server is gone server=%s", dead)
            await self._remove(dead, revisions[dead])
        return living

    async def _remove(self, name: str, revision: int) -> None:
        """Unless it was renewed just now."""
        try:
            await self._context.store.delete(PREFIX + name, expected=revision)
        except RevisionConflict:
            log.info("a server is back, or was removed server=%s", name)
