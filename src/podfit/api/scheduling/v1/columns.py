"""Columns of `kubectl get` for priority classes."""

from typing import Any

from podfit.api.columns import AGE, NAME, age, name_of
from podfit.api.registry import Column
from podfit.api.scheduling.v1.types import PriorityClass

PRIORITY_CLASS = (
    NAME,
    Column("Value", "integer", description="The priority that pods of this class get."),
    Column("Global-Default", "boolean", description="Whether pods that name no class get it."),
    AGE,
    Column("PreemptionPolicy", description="Whether its pods may displace others."),
)


def priority_class_row(priority: PriorityClass, now: str) -> list[Any]:
    return [name_of(priority), priority.value, priority.global_default, age(priority, now), priority.preemption_policy]
