"""The next step of a deployment that is rolled out in place: its pods are resized, then given to the new replica set.

    resize ─▶ wait for the node ─▶ hold both replica sets ─▶ give the pods away ─▶ release both with their new sizes

A replica set keeps its number of pods, so one that loses a pod would make another, and one that gets a pod would end
one. While they are held they do neither. Each step is told by what the API has, so that a controller that begins anew
goes on where the one before it ended:

    hold      annotation of the replica set; the next step waits until its status repeats it
    give      label and owner of a pod, in one write: it always has exactly one owner
    release   the annotation goes with the new size, when the statuses count the pods as they are now

A pod that cannot be resized is deleted while they are held, as far as pods may be unavailable; what is missing then
is made from the new template. Where none may be unavailable, the new replica set grows first, as far as a surge goes.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.workload.deployment.revisions import HASH, Sets, age
from podfit.decide.workload.deployment.sizes import Scale, active, is_rolling, max_surge, max_unavailable, total, wanted
from podfit.decide.workload.in_place.asking import differs_in_resources
from podfit.decide.workload.in_place.fates import Fate, ToBeResized, pod_steps
from podfit.decide.workload.pods import is_available
from podfit.decide.workload.replicas import HELD, held, holds

Pods = Mapping[str, Sequence[Pod]]
"""Those that count, by the UID of their replica set."""


class InPlaceStep(msgspec.Struct, frozen=True):
    """`release` ends a hold with these sizes; `again` in seconds."""

    resize: tuple[ToBeResized, ...] = ()
    hold: tuple[ReplicaSet, ...] = ()
    give: tuple[Pod, ...] = ()
    delete: tuple[Pod, ...] = ()
    scale: tuple[Scale, ...] = ()
    release: tuple[Scale, ...] = ()
    again: float | None = None


def fits(deployment: Deployment, replica_set: ReplicaSet) -> bool:
    """Whether pods of an old replica set can become those of the present template by a resize."""
    return differs_in_resources(deployment.spec.template, replica_set.spec.template, ignored=HASH)


def in_turn(pods: Iterable[Pod]) -> list[Pod]:
    """In the order in which they are resized, so that it can be told who gets room that is not enough for all."""
    return sorted(pods, key=lambda pod: pod.metadata.name)


def is_in_place(deployment: Deployment, sets: Sets) -> bool:
    """Whether any replica set with pods is old, and fit for it."""
    return any(fits(deployment, replica_set) for replica_set in active(sets.old))


def is_held(sets: Sets) -> bool:
    return any(map(held, sets.all))


def releasing(deployment: Deployment, sets: Sets, pods: Pods) -> InPlaceStep:
    """What ends a hold, where nothing more is to be given away; nothing while the statuses are behind."""
    holding = [replica_set for replica_set in sets.all if held(replica_set)]
    if not all(_agrees(replica_set, pods) for replica_set in holding):
        return InPlaceStep()
    sizes = {replica_set.metadata.uid: wanted(replica_set) for replica_set in sets.all}
    for replica_set in holding:
        uid, there = replica_set.metadata.uid, len(pods.get(replica_set.metadata.uid, ()))
        new = sets.new is not None and uid == sets.new.metadata.uid
        sizes[uid] = max(sizes[uid], there) if new else min(sizes[uid], there)
    missing = max(0, wanted(deployment) - sum(sizes.values()))
    heir = sets.new or max(holding, key=age)
    sizes[heir.metadata.uid] += missing
    concerned = holding if held(heir) else [*holding, heir]
    return InPlaceStep(release=tuple(Scale(one, sizes[one.metadata.uid]) for one in concerned))


def in_place(deployment: Deployment, sets: Sets, pods: Pods, fates: Mapping[str, Fate], now: datetime) -> InPlaceStep:
    """`fates` are those of the pods of old replica sets, by UID. `sets` has a new replica set."""

    def available(pod: Pod) -> bool:
        return is_available(pod, deployment.spec.min_ready_seconds, now)

    fewer = max_unavailable(deployment) if is_rolling(deployment) else wanted(deployment)
    spare = sum(available(pod) for some in pods.values() for pod in some) - (wanted(deployment) - fewer)
    old = [pod for replica_set in sorted(sets.old, key=age) for pod in in_turn(pods.get(replica_set.metadata.uid, ()))]
    steps = pod_steps(old, fates, available, spare=spare, most=fewer)
    well = list(filter(available, steps.replaced))
    deleted = (*(pod for pod in steps.replaced if not available(pod)), *well[: max(0, steps.room)])
    step = InPlaceStep(steps.resize, again=steps.again)
    if steps.finished or deleted:
        return _leaving(step, sets, pods, steps.finished, deleted)
    if is_held(sets):
        return replace(step, release=releasing(deployment, sets, pods).release)
    return replace(step, scale=_surging(deployment, sets, len(steps.replaced)))


def _agrees(replica_set: ReplicaSet, pods: Pods) -> bool:
    """Whether its controller has seen the hold, and counts the pods as they are."""
    return holds(replica_set) == held(replica_set) and replica_set.status.replicas == len(
        pods.get(replica_set.metadata.uid, ())
    )


def _leaving(
    step: InPlaceStep, sets: Sets, pods: Pods, given: tuple[Pod, ...], deleted: tuple[Pod, ...]
) -> InPlaceStep:
    """Pods are given away and deleted only while everybody concerned is held."""
    gone = {pod.metadata.uid for pod in (*given, *deleted)}
    concerned = [
        replica_set
        for replica_set in sets.all
        if replica_set is sets.new or any(pod.metadata.uid in gone for pod in pods.get(replica_set.metadata.uid, ()))
    ]
    if free := tuple(replica_set for replica_set in concerned if not held(replica_set)):
        return replace(step, hold=free)
    if any(holds(replica_set) != held(replica_set) for replica_set in concerned):
        return step
    return replace(step, give=given, delete=deleted)


def _surging(deployment: Deployment, sets: Sets, stuck: int) -> tuple[Scale, ...]:
    """The new replica set makes up for pods that are missing, and for those that are to go when others have come."""
    assert sets.new is not None
    over = total(sets.all) - wanted(deployment)
    surge = max_surge(deployment) if is_rolling(deployment) else 0
    more = max(-over, min(stuck, surge) - max(over, 0), 0)
    return (Scale(sets.new, wanted(sets.new) + more),) if more else ()


def with_hold(replica_set: ReplicaSet) -> ReplicaSet:
    """Held from now on, until it is released."""
    meta = replica_set.metadata
    return replace(replica_set, metadata=replace(meta, annotations={**meta.annotations, HELD: meta.resource_version}))


def released(replica_set: ReplicaSet, size: int) -> ReplicaSet:
    """The replica set with this size, and acting by itself. What its annotations tell of the deployment's size stays:
    whether that has changed meanwhile is looked at next."""
    meta = replica_set.metadata
    annotations = {key: value for key, value in meta.annotations.items() if key != HELD}
    return replace(
        replica_set, metadata=replace(meta, annotations=annotations), spec=replace(replica_set.spec, replicas=size)
    )
