"""events.k8s.io/v1: the same events as the core group's, under other names."""

from podfit.api.core.v1.events import types as core
from podfit.api.core.v1.events.types import EventSource
from podfit.api.core.v1.references import ObjectReference
from podfit.api.meta.base import MicroTime, Object, Struct, Time, always
from podfit.api.meta.v1.types import ObjectMeta


class EventSeries(Struct):
    count: int = always(default=0)
    last_observed_time: MicroTime | None = always(default=None)


class Event(Object):
    kind: str = always(default="Event")
    api_version: str = always(default="events.k8s.io/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    type: str = ""
    action: str = ""
    deprecated_count: int = 0
    deprecated_first_timestamp: Time | None = always(default=None)
    deprecated_last_timestamp: Time | None = always(default=None)
    deprecated_source: EventSource = always(default=EventSource())
    event_time: MicroTime | None = always(default=None)
    note: str = ""
    reason: str = ""
    regarding: ObjectReference = always(default=ObjectReference())
    related: ObjectReference | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    series: EventSeries | None = None


def to_core(event: Event) -> core.Event:
    """As it is stored."""
    series = event.series
    return core.Event(
        metadata=event.metadata,
        type=event.type,
        action=event.action,
        count=event.deprecated_count,
        event_time=event.event_time,
        first_timestamp=event.deprecated_first_timestamp,
        last_timestamp=event.deprecated_last_timestamp,
        involved_object=event.regarding,
        message=event.note,
        reason=event.reason,
        related=event.related,
        reporting_component=event.reporting_controller,
        reporting_instance=event.reporting_instance,
        source=event.deprecated_source,
        series=core.EventSeries(count=series.count, last_observed_time=series.last_observed_time) if series else None,
    )


def from_core(event: core.Event) -> Event:
    series = event.series
    return Event(
        metadata=event.metadata,
        type=event.type,
        action=event.action,
        deprecated_count=event.count,
        event_time=event.event_time,
        deprecated_first_timestamp=event.first_timestamp,
        deprecated_last_timestamp=event.last_timestamp,
        regarding=event.involved_object,
        note=event.message,
        reason=event.reason,
        related=event.related,
        reporting_controller=event.reporting_component,
        reporting_instance=event.reporting_instance,
        deprecated_source=event.source,
        series=EventSeries(count=series.count, last_observed_time=series.last_observed_time) if series else None,
    )
