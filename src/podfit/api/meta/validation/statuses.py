"""Validation that the statuses of workload controllers share: counts of pods that do not contradict each other."""

from podfit.api.meta.base import Struct, json_name
from podfit.api.meta.validation.metadata import nonnegative
from podfit.core.fields import FieldError, invalid

_TOO_MANY = "cannot be greater than status.replicas"


def counts(status: Struct, *attributes: str) -> list[FieldError]:
    """None of them is negative."""
    return [error for name in attributes for error in nonnegative(getattr(status, name), f"status.{json_name(name)}")]


def at_most_replicas(status: Struct, *attributes: str) -> list[FieldError]:
    replicas = getattr(status, "replicas")  # noqa: B009  (every such status has it, their base does not)
    found = ((name, getattr(status, name)) for name in attributes)
    return [invalid(f"status.{json_name(name)}", value, _TOO_MANY) for name, value in found if value > replicas]


def collisions(new: int | None, old: int | None) -> list[FieldError]:
    """The count of names that were taken only grows."""
    if old is None or (new is not None and new >= old):
        return []
    return [invalid("status.collisionCount", new or 0, "cannot be decremented")]
