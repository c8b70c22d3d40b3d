"""Events of the core group: rules that depend on whether they are of today's form, which has an `eventTime`."""

from podfit.api.core.v1.events.types import Event
from podfit.api.meta.validation import names
from podfit.core.fields import FieldError, invalid, required

_SHORT, _LONG = 128, 1024
_OF_CLUSTER = ("default", "kube-system")
"""Where events about what has no namespace live."""
_ELSEWHERE = "does not match event.namespace"


def validate_event(event: Event, controller: str = "reportingComponent") -> list[FieldError]:
    """`controller`: what the field is called that names who reports it."""
    errors = _namespace(event) + (_words(event, controller) if event.event_time else [])
    namespace = event.metadata.namespace
    return errors + [invalid("namespace", namespace, text) for text in names.dns_subdomain(namespace)]


def _namespace(event: Event) -> list[FieldError]:
    """An event lives beside its object; of today's form that is asked of those alone that are about the cluster."""
    about, lives = event.involved_object.namespace, event.metadata.namespace
    if event.event_time:
        fits = bool(about) or lives in _OF_CLUSTER
    else:
        fits = about == lives or (not about and lives == "default")
    return [] if fits else [invalid("involvedObject.namespace", about, _ELSEWHERE)]


def _words(event: Event, controller: str) -> list[FieldError]:
    reporter = event.reporting_component
    errors = [] if reporter else [required(controller)]
    errors += [invalid(controller, reporter, text) for text in names.qualified(reporter)]
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
