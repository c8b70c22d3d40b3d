"""Events of events.k8s.io, by the rules and names of what is stored; what only older clients write is not taken."""

from podfit.api.core.v1.events.types import Event as Stored
from podfit.api.core.v1.events.validation import validate_event
from podfit.api.events.v1.types import Event, to_core
from podfit.api.meta.base import Object
from podfit.api.meta.validation.metadata import immutable
from podfit.api.meta.validation.rules import Rules
from podfit.core.fields import FieldError, invalid, required

_CONTROLLER = "reportingController"
_KEPT = (
    ("involved_object", "involvedObject"),
    ("reason", "reason"),
    ("message", "message"),
    ("source", "source"),
    ("first_timestamp", "firstTimestamp"),
    ("last_timestamp", "lastTimestamp"),
    ("count", "count"),
    ("reason", "reason"),
    ("type", "type"),
    ("event_time", "eventTime"),
    ("action", "action"),
    ("related", "related"),
    ("reporting_component", "reportingController"),
    ("reporting_instance", "reportingInstance"),
)


def validate_new(event: Event) -> list[FieldError]:
    kept = to_core(event)
    errors = validate_event(kept, _CONTROLLER) + _series(kept)
    if not kept.event_time:
        errors.append(required("eventTime"))
    if kept.type not in ("Normal", "Warning"):
        errors.append(invalid("type", "", f"has invalid value: {kept.type}"))
    old = (
        ("firstTimestamp", kept.first_timestamp),
        ("lastTimestamp", kept.last_timestamp),
        ("count", kept.count),
        ("source", kept.source.component or kept.source.host),
    )
    return errors + [invalid(name, "", "needs to be unset") for name, value in old if value]


def _series(event: Stored) -> list[FieldError]:
    """A series is of two or more."""
    if event.series is None:
        return []
    errors = [] if event.series.count >= 2 else [invalid("series.count", "", "should be at least 2")]
    return errors if event.series.last_observed_time else [*errors, required("series.lastObservedTime")]


def validate_update(new: Event, old: Event) -> list[FieldError]:
    """Only the series goes on."""
    after, before = to_core(new), to_core(old)
    errors = validate_event(after, _CONTROLLER)
    errors += _series(after) if after.series != before.series else []
    return errors + [
        error
        for attribute, name in _KEPT
        for error in immutable(getattr(after, attribute), getattr(before, attribute), name)
    ]


RULES: dict[type[Object], Rules] = {Event: Rules(create=validate_new, update=validate_update)}
