"""Rules of priority classes."""

from podfit.api.meta.validation.metadata import immutable
from podfit.api.scheduling.v1.types import PriorityClass
from podfit.core.fields import FieldError, forbidden, unsupported

SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_HIGHEST = 1_000_000_000
_PREEMPTION = ("PreemptLowerPriority", "Never")


def validate_priority_class(priority: PriorityClass) -> list[FieldError]:
    errors = []
    name = priority.metadata.name
    if name.startswith("system-"):
        if why := _not_of_the_system(priority):
            text = "priority class names with 'system-' prefix are reserved for system use only."
            errors.append(forbidden("metadata.name", f"{text} error: {why}"))
    elif priority.value > _HIGHEST:
        errors.append(forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}"))
    if priority.preemption_policy not in _PREEMPTION:
        errors.append(unsupported("preemptionPolicy", priority.preemption_policy, _PREEMPTION))
    return errors


def _not_of_the_system(priority: PriorityClass) -> str:
    """Why it is none of the classes that Kubernetes itself makes."""
    name = priority.metadata.name
    value = SYSTEM_CLASSES.get(name)
    if value is None:
        return f"{name} is not a known system priority class"
    if value != priority.value:
        return f"value of {name} PriorityClass must be {value}"
    return f"globalDefault of {name} PriorityClass must be false" if priority.global_default else ""


def validate_priority_class_update(new: PriorityClass, old: PriorityClass) -> list[FieldError]:
    errors = [] if new.value == old.value else [forbidden("value", "may not be changed in an update.")]
    return errors + immutable(new.preemption_policy, old.preemption_policy, "preemptionPolicy")
