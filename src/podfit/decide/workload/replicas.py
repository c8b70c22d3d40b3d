"""The next step of a replica set or replication controller, and its status.

Both are one kind here: `Replicated` is what the controller knows of either.

A replica set may be held by its deployment, which is about to give some of its pods to another one, or to take some
in: while it is, it makes and ends none, and its status says so (`deployment/in_place.py`).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

import msgspec

from podfit.api.apps.v1.deployments import ReplicaSet, ReplicaSetCondition, ReplicaSetStatus
from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.replication.types import (
    ReplicationController,
    ReplicationControllerCondition,
    ReplicationControllerStatus,
)
from podfit.api.meta.owners import controller_of
from podfit.api.meta.selectors import requirements
from podfit.core.selectors import Requirement
from podfit.decide.workload.pods import is_available, is_ready

Replicated: TypeAlias = ReplicaSet | ReplicationController
Condition: TypeAlias = ReplicaSetCondition | ReplicationControllerCondition
Status: TypeAlias = ReplicaSetStatus | ReplicationControllerStatus

FAILURE = "ReplicaFailure"
HELD, HOLDING = "podfit.dev/pods-held", "PodsHeld"
"""Annotation and condition of a replica set that is held; the message of the condition repeats the annotation."""
BURST = 500
"""How many pods are made or ended in one go."""


class Create(msgspec.Struct, frozen=True):
    count: int


class Remove(msgspec.Struct, frozen=True):
    count: int


def selector_of(obj: Replicated) -> tuple[Requirement, ...] | None:
    if isinstance(obj, ReplicaSet):
        return requirements(obj.spec.selector)
    wanted = tuple(Requirement(key, "In", (value,)) for key, value in obj.spec.selector.items())
    return wanted or None  # it selects nothing, not everything


def template_of(obj: Replicated) -> PodTemplateSpec:
    return obj.spec.template or PodTemplateSpec()


def wanted_replicas(obj: Replicated) -> int:
    return 1 if obj.spec.replicas is None else obj.spec.replicas


def held(obj: Replicated) -> str:
    """The hold of its deployment that holds it, as no two have the same text; empty for one that acts by itself."""
    owner = controller_of(obj.metadata)
    return obj.metadata.annotations.get(HELD, "") if owner is not None and owner.kind == "Deployment" else ""


def step(obj: Replicated, active: int) -> Create | Remove | None:
    """What to do when so many pods are there that count."""
    if held(obj):
        return None
    missing = wanted_replicas(obj) - active
    if missing > 0:
        return Create(min(missing, BURST))
    return Remove(min(-missing, BURST)) if missing < 0 else None


def status_of(
    obj: Replicated, active: Sequence[Pod], terminating: int, *, failure: str = "", now: datetime, stamp: str
) -> Status:
    """`failure` is why the last step failed, of which the number of pods tells whether it was making or ending."""
    labels = template_of(obj).metadata.labels
    numbers = {
        "replicas": len(active),
        "fully_labeled_replicas": sum(_has(pod.metadata.labels, labels) for pod in active),
        "ready_replicas": sum(map(is_ready, active)),
        "available_replicas": sum(is_available(pod, obj.spec.min_ready_seconds, now) for pod in active),
        "observed_generation": obj.metadata.generation,
    }
    conditions = _conditions(obj, len(active), failure, stamp)
    if isinstance(obj, ReplicaSet):
        return msgspec.structs.replace(obj.status, **numbers, terminating_replicas=terminating, conditions=conditions)
    return msgspec.structs.replace(obj.status, **numbers, conditions=conditions)


def _conditions(obj: Replicated, active: int, failure: str, stamp: str) -> tuple[Condition, ...]:
    conditions = _with_hold(obj, _with_failure(obj, active, failure, stamp), stamp)
    return obj.status.conditions if conditions == obj.status.conditions else conditions


def _with_failure(obj: Replicated, active: int, failure: str, stamp: str) -> tuple[Condition, ...]:
    """A failure is noted once and keeps its words until it is over."""
    conditions: tuple[Condition, ...] = obj.status.conditions
    noted = any(condition.type == FAILURE for condition in conditions)
    if failure and not noted:
        reason = "FailedCreate" if active < wanted_replicas(obj) else "FailedDelete"
        kind = ReplicaSetCondition if isinstance(obj, ReplicaSet) else ReplicationControllerCondition
        made = kind(type=FAILURE, status="True", reason=reason, message=failure, last_transition_time=stamp)
        return (*conditions, made)
    if not failure and noted:
        return tuple(condition for condition in conditions if condition.type != FAILURE)
    return conditions


def _with_hold(obj: Replicated, conditions: tuple[Condition, ...], stamp: str) -> tuple[Condition, ...]:
    hold = held(obj)
    if hold == holds(obj):
        return conditions
    others = tuple(condition for condition in conditions if condition.type != HOLDING)
    if not hold:
        return others
    reason = "RolloutInPlace"
    return (
        *others,
        ReplicaSetCondition(type=HOLDING, status="True", reason=reason, message=hold, last_transition_time=stamp),
    )


def holds(obj: Replicated) -> str:
    """The hold that its controller has seen; empty for none."""
    conditions: tuple[Condition, ...] = obj.status.conditions
    return next((condition.message for condition in conditions if condition.type == HOLDING), "")


def _has(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return wanted.items() <= labels.items()
