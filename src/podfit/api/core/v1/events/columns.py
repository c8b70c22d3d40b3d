"""Columns of `kubectl get` for events."""

from typing import Any

from podfit.api.core.v1.events.types import Event, EventSource
from podfit.api.meta.columns import name_of, since, wide
from podfit.api.meta.resource_info import Column

EVENT = (
    Column("Last Seen", description="Time since the event happened last."),
    Column("Type", description="Normal or Warning."),
    Column("Reason", description="Why, in one word for machines."),
    Column("Object", description="The object that the event is about."),
    wide("Subobject", "The part of the object."),
    wide("Source", "Who reports it."),
    Column("Message", description="What happened, for people."),
    wide("First Seen", "Time since the event happened first."),
    wide("Count", "How often it happened."),
    Column("Name", format="name", description="Name of the event.", priority=1),
)


def event_row(event: Event, now: str) -> list[Any]:
    first = since(event.first_timestamp or event.event_time, now)
    last = since(event.last_timestamp, now) if event.last_timestamp else first
    count = event.count or 1
    if event.series is not None:
        last, count = since(event.series.last_observed_time, now), event.series.count
    target = event.involved_object
    return [
        last,
        event.type,
        event.reason,
        f"{target.kind.lower()}/{target.name}" if target.name else target.kind.lower(),
        target.field_path,
        _source(event.source, event),
        event.message.strip(),
        first,
        count,
        name_of(event),
    ]


def _source(source: EventSource, event: Event) -> str:
    component, host = source.component or event.reporting_component, source.host or event.reporting_instance
    return f"{component}, {host}" if host else component
