"""The recorder of events in series, upstream's newer one (events.k8s.io), by which the scheduler speaks.

The first of a kind is told with its time and no count. The second makes it a series of two, whatever its own message
says. More are only counted: what was counted is written every half hour, before the event expires, and when nothing of
the kind has come for six minutes, by the next that is told.
"""

from collections import OrderedDict

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.events.types import Event
from podfit.client.event_correlation import REMEMBERED, Counted, EventDraft
from podfit.client.events import After, EventRecorder, namespace_of
from podfit.client.rest import STRATEGIC_PATCH, Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.times import format_micro

FINISHED_SECONDS, REFRESH_SECONDS = 360.0, 1800.0
NOT_FOUND = 404


class _Series(msgspec.Struct):
    """`note` is the first; `when` and `moment` are of the last."""

    note: EventDraft
    counted: Counted
    when: str
    moment: float
    written: int = 0
    """The count that the event shows."""
    written_at: float = 0.0


class SeriesRecorder(EventRecorder):
    """`host` is the machine's name, which makes the reporting instance."""

    time_text = staticmethod(format_micro)

    def __init__(self, client: Client, *, component: str, clock: Clock, host: str, after: After | None = None) -> None:
        super().__init__(client, component=component, clock=clock, host=host, after=after)
        self._series: OrderedDict[EventDraft, _Series] = OrderedDict()

    async def _correlated(self, note: EventDraft, when: str, moment: float) -> None:
        await self._finish(moment)
        kind = replace(note, message="")
        known = self._series.setdefault(kind, _Series(note, Counted(first=when), when, moment))
        known.counted.count += 1
        known.when, known.moment = when, moment
        self._series.move_to_end(kind)
        if len(self._series) > REMEMBERED:
            self._series.popitem(last=False)
        if known.counted.count <= 2 or moment - known.written_at >= REFRESH_SECONDS:
            await self._write(known)

    async def _finish(self, moment: float) -> None:
        """Write the series that are over; the oldest come first."""
        while self._series:
            kind, oldest = next(iter(self._series.items()))
            if moment - oldest.moment < FINISHED_SECONDS:
                return
            del self._series[kind]
            if oldest.written < oldest.counted.count:
                await self._write(oldest)

    async def _write(self, series: _Series) -> None:
        series.written_at = series.moment
        await self._deliver(series.note, series.when, series.counted)
        series.written = series.counted.count

    async def _count(self, note: EventDraft, when: str, counted: Counted) -> bool:
        series = {"series": {"count": counted.count, "lastObservedTime": when}}
        try:
            await self._client.patch(Event, counted.name, namespace_of(note), series, content_type=STRATEGIC_PATCH)
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise
            counted.count = 1
            return False
        return True

    def _timed(self, event: Event, note: EventDraft, when: str, counted: Counted) -> Event:
        return replace(
            event,
            event_time=when,
            reporting_component=self._component,
            reporting_instance=f"{self._component}-{self._host}",
        )
