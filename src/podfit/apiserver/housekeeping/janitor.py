"""Events are kept for an hour, and history for ten minutes; older ones make room."""

import logging
from datetime import datetime, timedelta
from typing import Any

from podfit.api.core.events import Event
from podfit.api.registry import info_for
from podfit.apiserver import stored
from podfit.apiserver.context import Context
from podfit.core.errors import ApiError
from podfit.core.times import parse_time
from podfit.store.protocol import StoreError

log = logging.getLogger(__name__)

EVENT_LIFE = timedelta(hours=1)
EVERY = 300.0  # seconds


class Janitor:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._earlier: list[int] = []

    async def run(self) -> None:
        while True:
            await self._context.clock.sleep(EVERY)
            try:
                await self._events()
                await self._history()
            except StoreError as error:
                log.warning("cleaning put off error=%s", error)

    async def _events(self) -> None:
        info = info_for(Event)
        now = self._context.clock.now()
        page = await self._context.store.list(stored.prefix(info))
        for record in page.records:
            event: Event = stored.decoded(info, record)
            if _last_seen(event, now) < now - EVENT_LIFE:
                await self._remove(info, event, record.mod_revision)

    async def _remove(self, info: Any, event: Event, expected: int) -> None:
        meta = event.metadata
        try:
            await stored.Stored[Event](self._context.store, info).delete(meta.namespace, meta.name, expected=expected)
        except ApiError as error:
            log.info("event kept event=%s/%s reason=%s", meta.namespace, meta.name, error)

    async def _history(self) -> None:
        """Forget what was replaced before the last round but one."""
        self._earlier.append(self._context.store.revision)
        if len(self._earlier) > 2:
            await self._context.store.compact(self._earlier.pop(0))


def _last_seen(event: Event, now: datetime) -> datetime:
    """When it happened last, as far as the client's times can be read and are not to come."""
    for text in (event.last_timestamp, event.event_time, event.metadata.creation_timestamp):
        try:
            if text and (moment := parse_time(text)) <= now:
                return moment
        except ValueError:
            continue
    return now
