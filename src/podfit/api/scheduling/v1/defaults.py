"""Defaults of priority classes."""

from collections.abc import Callable, Mapping
from typing import Any

from podfit.api.meta.base import Object
from podfit.api.meta.defaulting import fill
from podfit.api.scheduling.v1.types import PriorityClass


def _priority_class(priority: PriorityClass) -> PriorityClass:
    return fill(priority, preemption_policy="PreemptLowerPriority")


DEFAULTS: Mapping[type[Object], Callable[[Any], Any]] = {PriorityClass: _priority_class}
