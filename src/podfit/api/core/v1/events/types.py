"""Events: one fact about one object, counted when it repeats."""

from podfit.api.core.v1.references import ObjectReference
from podfit.api.meta.base import MicroTime, Object, Struct, Time, always
from podfit.api.meta.v1.types import ObjectMeta


class EventSeries(Struct):
    count: int = 0
    last_observed_time: MicroTime | None = None


class EventSource(Struct):
    component: str = ""
    host: str = ""


class Event(Object):
    kind: str = always(default="Event")
    api_version: str = always(default="v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    type: str = ""
    action: str = ""
    count: int = 0
    event_time: MicroTime | None = always(default=None)
    first_timestamp: Time | None = always(default=None)
    involved_object: ObjectReference = always(default=ObjectReference())
    last_timestamp: Time | None = always(default=None)
    message: str = ""
    reason: str = ""
    related: ObjectReference | None = None
    reporting_component: str = always(default="")
    reporting_instance: str = always(default="")
    series: EventSeries | None = None
    source: EventSource = always(default=EventSource())
