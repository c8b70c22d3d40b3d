"""Compaction: events are removed an hour after their last write, history after five to ten minutes.

The hour is measured by the monotonic clock, as the time of day may be set: every round remembers the store's revision,
and what was not written since the revision of an hour ago is over. What was written before this process began goes as
soon as its own times say so, at the latest after an hour, too.
"""

import asyncio
import logging
from collections import deque
from datetime import datetime

from podfit.api.core.v1.events.types import Event
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.registry import info_for
from podfit.apiserver.context import Context
from podfit.apiserver.registry import stored
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.times import parse_time, seconds_later
from podfit.store.protocol import StoreError

log = logging.getLogger(__name__)

LIFE = 3600.0  # seconds
EVERY = 300.0  # seconds
AT_ONCE = 50  # events looked at in one turn of the loop


class Compaction:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._earlier: list[int] = []

    async def run(self) -> None:
        ages = Ages(self._context.clock, self._context.store.revision)
        while True:
            await self._context.clock.sleep(EVERY)
            ages.look(self._context.store.revision)
            try:
                await self._events(ages)
                await self._history()
            except StoreError as error:
                log.warning("cleaning put off error=%s", error)

    async def _events(self, ages: "Ages") -> None:
        info = info_for(Event)
        page = await self._context.store.list(stored.prefix(info))
        for number, record in enumerate(page.records):
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
            if ages.is_new(record.mod_revision):  # most are, and so need not be decoded
                continue
            event: Event = stored.decoded(info, record)
            if ages.is_over(event, record.mod_revision):
                await self._remove(info, event, record.mod_revision)

    async def _remove(self, info: ResourceInfo, event: Event, expected: int) -> None:
        meta = event.metadata
        try:
            await stored.Stored[Event](self._context.store, info).delete(meta.namespace, meta.name, expected=expected)
        except ApiError as error:
            log.info("event kept event=%s/%s reason=%s", meta.namespace, meta.name, error)

    async def _history(self) -> None:
        """Forget what was replaced before the last round."""
        self._earlier.append(self._context.store.revision)
        if len(self._earlier) > 1:
            await self._context.store.compact(self._earlier.pop(0))


class Ages:
    """How old events are, for a store that was at `revision` when this process began."""

    def __init__(self, clock: Clock, revision: int) -> None:
        self._clock, self._before = clock, revision
        self._began, self._began_at = clock.now(), clock.monotonic()
        self._rounds = deque([(self._began_at, revision)])
        self._over = -1  # the newest revision that is known to be an hour old

    def look(self, revision: int) -> None:
        """`revision` is the newest now."""
        now = self._clock.monotonic()
        self._rounds.append((now, revision))
        while self._rounds and self._rounds[0][0] <= now - LIFE:
            self._over = self._rounds.popleft()[1]

    def is_new(self, revision: int) -> bool:
        """Whether it was written by this process within the hour."""
        return revision > max(self._over, self._before)

    def is_over(self, event: Event, revision: int) -> bool:
        if revision <= self._over:
            return True
        if self.is_new(revision):
            return False
        now = seconds_later(self._began, self._clock.monotonic() - self._began_at)
        return _last_seen(event, now) < seconds_later(now, -LIFE)


def _last_seen(event: Event, now: datetime) -> datetime:
    """When it happened last, as far as the client's times can be read and are not to come."""
    last_of_series = event.series.last_observed_time if event.series is not None else None
    for text in (last_of_series, event.last_timestamp, event.event_time, event.metadata.creation_timestamp):
        try:
            if text and (moment := parse_time(text)) <= now:
                return moment
        except ValueError:
            continue
    return now
