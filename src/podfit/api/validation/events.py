"""Events of events.k8s.io, by the rules and names of what is stored; what only older clients write is not taken."""

from podfit.api.base import Object
from podfit.api.core.events import Event as Stored
from podfit.api.events import Event, to_core
from podfit.api.validation import names
from podfit.api.validation.cluster import validate_event
from podfit.api.validation.meta import immutable
from podfit.api.validation.rules import Rules
from podfit.core.fields import FieldError, invalid, required

_SHORT, _LONG = 128, 1024
_KEPT = (
    ("involved_object", "involvedObject"),
    ("reason", "reason"),
    ("message", "message"),
    ("source", "source"),
    ("first_timestamp", "firstTimestamp"),
    ("last_timestamp", "lastTimestamp"),
    ("count", "count"),
    ("event_time", "eventTime"),
    ("related", "related"),
    ("action", "action"),
    ("type", "type"),
    ("reporting_component", "reportingController"),
    ("reporting_instance", "reportingInstance"),
)


def validate_new(event: Event) -> list[FieldError]:
    kept = to_core(event)
    errors = validate_event(kept)
    errors += _words(kept) if kept.event_time else [required("eventTime")]
    if kept.type not in ("Normal", "Warning"):
        errors.append(invalid("type", "", f"has invalid value: {kept.type}"))
    old = (
        ("firstTimestamp", kept.first_timestamp),
        ("lastTimestamp", kept.last_timestamp),
        ("count", kept.count),
        ("source", kept.source.component or kept.source.host),
    )
    return errors + [invalid(name, "", "needs to be unset") for name, value in old if value]


def _words(event: Stored) -> list[FieldError]:
    controller, path = event.reporting_component, "reportingController"
    errors = [] if controller else [required(path)]
    errors += [invalid(path, controller, text) for text in names.qualified(controller)]
    for name, text in (
        ("reportingInstance", event.reporting_instance),
        ("action", event.action),
        ("reason", event.reason),
    ):
        if not text:
            errors.append(required(name))
        elif len(text.encode()) > _SHORT:
            errors.append(invalid(name, "", f"can have at most {_SHORT} characters"))
    if len(event.message.encode()) > _LONG:
        errors.append(invalid("message", "", f"can have at most {_LONG} characters"))
    return errors


def validate_update(new: Event, old: Event) -> list[FieldError]:
    """Only the series goes on."""
    after, before = to_core(new), to_core(old)
    return [
        error
        for attribute, name in _KEPT
        for error in immutable(getattr(after, attribute), getattr(before, attribute), name)
    ]


RULES: dict[type[Object], Rules] = {Event: Rules(create=validate_new, update=validate_update)}
