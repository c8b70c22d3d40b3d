"""The next step of a stateful set.

    its pods in order ─▶ one that ended: delete; one that is missing: make; one that is not available yet: wait
    those beyond its size, highest first ─▶ delete, when all others are available
    those of an old revision, highest first ─▶ delete, as many as may be unavailable; made anew they are of the new one

A set that manages its pods in parallel does not wait in the first two.
"""

from collections.abc import Callable, Container, Sequence
from datetime import datetime
from itertools import islice
from typing import TypeAlias

import msgspec

from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.workload.history import HASH
from podfit.decide.workload.pods import is_available, is_ready, share
from podfit.decide.workload.stateful import identity

MOST = 500
"""Pods that are made in one step; upstream makes a list of all, however many there are to be."""
ROLLING, PARALLEL = "RollingUpdate", "Parallel"


class Revision(msgspec.Struct, frozen=True):
    name: str
    template: PodTemplateSpec


class Create(msgspec.Struct, frozen=True):
    pod: Pod


class Delete(msgspec.Struct, frozen=True):
    """`recreating`: it has ended, and will be made again."""

    pod: Pod
    recreating: bool = False


class Complete(msgspec.Struct, frozen=True):
    """Give a pod that is there what it lacks: claims that are missing, labels that somebody took."""

    pod: Pod


Action: TypeAlias = Create | Delete | Complete


class NextSteps(msgspec.Struct, frozen=True):
    actions: tuple[Action, ...] = ()
    updating: int = 0
    """How many of the pods that are deleted will come back with the new revision."""


def is_running_and_ready(pod: Pod) -> bool:
    return pod.status.phase == "Running" and is_ready(pod)


def plan(
    owner: StatefulSet,
    current: Revision,
    update: Revision,
    pods: Sequence[Pod],
    now: datetime,
    *,
    kept: Container[str] = frozenset(),
) -> NextSteps:
    """`pods` are all of the set's; those with the UIDs `kept` are resized instead of replaced."""
    if owner.metadata.deletion_timestamp:
        return NextSteps()
    seconds = owner.spec.min_ready_seconds

    def ready(pod: Pod) -> bool:
        return is_running_and_ready(pod) and is_available(pod, seconds, now)

    present = {identity.ordinal(pod): pod for pod in pods if identity.is_wanted(owner, pod)}
    missing = islice((number for number in _numbers(owner) if number not in present), MOST)
    made = {number: _made(owner, current, update, number) for number in missing}
    wanted = [pod for _, pod in sorted((present | made).items())]
    condemned = [pod for pod in pods if identity.ordinal(pod) >= 0 and not identity.is_wanted(owner, pod)]
    condemned.sort(key=identity.ordinal, reverse=True)
    in_order = owner.spec.pod_management_policy != PARALLEL
    actions, waits = _living(wanted, ready, in_order)
    if waits:
        return NextSteps(tuple(actions))
    sick = next((pod for pod in (*wanted, *reversed(condemned)) if not _healthy(pod, ready)), None)
    ending, waits = _ending(condemned, sick, ready, in_order)
    if waits:
        return NextSteps((*actions, *ending))
    old = _outdated(owner, update, wanted, ready, kept)
    return NextSteps((*actions, *ending, *map(Delete, old)), len(old))


def _numbers(owner: StatefulSet) -> range:
    return range(identity.first(owner), identity.first(owner) + identity.size(owner))


def _made(owner: StatefulSet, current: Revision, update: Revision, number: int) -> Pod:
    """Below the partition a pod is of the revision that was there before."""
    strategy = owner.spec.update_strategy
    below = 0
    if strategy.type == ROLLING:
        rolling = strategy.rolling_update
        below = (rolling.partition or 0) if rolling is not None else owner.status.current_replicas
    revision = current if number < identity.first(owner) + below else update
    return identity.made(owner, revision.template, revision.name, number)


def replaced_from(owner: StatefulSet) -> int | None:
    """The lowest ordinal whose pod is replaced when it is of an old revision; None when none is by the set itself.

    A partition counts pods from the first one on, whichever ordinal that has.
    """
    strategy = owner.spec.update_strategy
    if strategy.type != ROLLING:
        return None
    rolling = strategy.rolling_update
    return identity.first(owner) + ((rolling.partition or 0) if rolling is not None else 0)


def _healthy(pod: Pod, ready: Callable[[Pod], bool]) -> bool:
    return ready(pod) and not pod.metadata.deletion_timestamp


def _living(wanted: Sequence[Pod], ready: Callable[[Pod], bool], in_order: bool) -> tuple[list[Action], bool]:
    """What to do about the pods that are to be there, and whether everything else waits for them."""
    actions: list[Action] = []
    for pod in wanted:
        if has_ended(pod):
            if not pod.metadata.deletion_timestamp:
                actions.append(Delete(pod, recreating=True))
            blocked = True
        elif not pod.metadata.uid:
            actions.append(Create(pod))
            blocked = True
        else:
            if pod.status.phase == "Pending" or identity.relabelled(pod) is not None:
                actions.append(Complete(pod))
            blocked = bool(pod.metadata.deletion_timestamp) or not ready(pod)
        if blocked and in_order:
            return actions, True
    return actions, False


def _ending(
    condemned: Sequence[Pod], sick: Pod | None, ready: Callable[[Pod], bool], in_order: bool
) -> tuple[list[Action], bool]:
    """Which of those beyond the size go: one at a time, unless in parallel; the first unhealthy pod may always go."""
    actions: list[Action] = []
    for pod in condemned:
        going = bool(pod.metadata.deletion_timestamp)
        if in_order and (going or (not ready(pod) and pod is not sick)):
            return actions, True
        if not going:
            actions.append(Delete(pod))
            if in_order:
                return actions, True
    return actions, False


def most_unavailable(owner: StatefulSet) -> int:
    """How many pods a rollout may make unavailable: one, or the set's own bound, which counts all its pods."""
    rolling = owner.spec.update_strategy.rolling_update
    if rolling is None or rolling.max_unavailable is None:
        return 1
    return max(1, share(rolling.max_unavailable, identity.size(owner), up=False))


def _outdated(
    owner: StatefulSet, update: Revision, wanted: Sequence[Pod], ready: Callable[[Pod], bool], kept: Container[str]
) -> list[Pod]:
    """Pods of another revision that may go now: the highest, once all above it are of the new one and healthy.

    A bound of its own (`maxUnavailable`, which the API lets through by a feature gate) counts all pods of the set.
    """
    rolling, size, begin = owner.spec.update_strategy.rolling_update, identity.size(owner), replaced_from(owner)
    if begin is None:
        return []
    highest_first = [pod for pod in reversed(wanted) if identity.ordinal(pod) >= begin]

    def replaced(pod: Pod) -> bool:
        old = pod.metadata.labels.get(HASH) != update.name and pod.metadata.uid not in kept
        return old and not pod.metadata.deletion_timestamp

    if rolling is None or rolling.max_unavailable is None:
        return _first_outdated(highest_first, replaced, ready) if len(wanted) == size else []
    room = most_unavailable(owner) - sum(not _healthy(pod, ready) for pod in wanted) - (size - len(wanted))
    return list(filter(replaced, highest_first))[: max(0, room)]


def _first_outdated(
    highest_first: Sequence[Pod], replaced: Callable[[Pod], bool], ready: Callable[[Pod], bool]
) -> list[Pod]:
    """At most one. A pod of another revision may go whether it is healthy or not."""
    for pod in highest_first:
        if replaced(pod):
            return [pod]
        if not _healthy(pod, ready):
            return []
    return []
