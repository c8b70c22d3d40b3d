"""The kinds of scheduling.k8s.io."""

from typing import Any

from podfit.api.meta.columns import AGE, NAME, age, name_of
from podfit.api.meta.resource_info import Column, ResourceInfo
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


KINDS: tuple[ResourceInfo, ...] = (
    ResourceInfo(
        type=PriorityClass,
        group="scheduling.k8s.io",
        resource="priorityclasses",
        singular="priorityclass",
        short_names=("pc",),
        namespaced=False,
        counted=lambda _: None,  # a class never changes
        columns=PRIORITY_CLASS,
        row=priority_class_row,
    ),
)
