"""The next step of a deployment: which replica sets get which size, in a rollout and after a change of size."""

from collections.abc import Iterable

import msgspec

from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.workload.deployment.revisions import DESIRED, MOST, Sets, age
from podfit.decide.workload.deployment.sizes import (
    Scale,
    active,
    is_rolling,
    is_saturated,
    next_new,
    next_old,
    proportional,
    single,
    wanted,
)


class Resizing(msgspec.Struct, frozen=True):
    """With `always` the annotations of the replica sets are set right even where the size stays."""

    steps: tuple[Scale, ...] = ()
    always: bool = False


def was_scaled(deployment: Deployment, sets: Sets) -> bool:
    """Whether its replica sets were last sized for another size of the deployment."""
    size = str(wanted(deployment))
    told = (replica_set.metadata.annotations.get(DESIRED, "") for replica_set in active(sets.all))
    return any(text.isdecimal() and text != size for text in told)


def resizing(deployment: Deployment, sets: Sets) -> Resizing:
    """After a change of size, or while it is paused: all in the only one with pods, or shared as far as it rolls."""
    old = sorted(sets.old, key=age)
    if (only := single(sets.new, old)) is not None:
        return Resizing((Scale(only, wanted(deployment)),))
    desired = sets.new.metadata.annotations.get(DESIRED, "") if sets.new is not None else ""
    if is_saturated(deployment, sets.new, desired):
        return Resizing(_ended(old))
    if not is_rolling(deployment):
        return Resizing()
    most = {
        replica_set.metadata.uid: _number(replica_set.metadata.annotations.get(MOST, "")) for replica_set in sets.all
    }
    return Resizing(tuple(proportional(deployment, sets.all, most)), always=True)


def rolling(deployment: Deployment, new: ReplicaSet, sets: Sets) -> tuple[Scale, ...]:
    """The new one grows first, else old ones give up; none when there is nothing left to do, or to wait for pods."""
    if (step := next_new(deployment, new, sets.all)) is not None:
        return (step,)
    return tuple(next_old(deployment, new, sorted(active(sets.old), key=age)))


def recreating(sets: Sets) -> tuple[Scale, ...]:
    """All old ones give up everything before there is a new one."""
    return _ended(sets.old)


def old_pods_run(sets: Sets, pods: Iterable[Pod]) -> bool:
    """Whether anything of the old replica sets is still there; `pods` are theirs."""
    if any(replica_set.status.replicas for replica_set in sets.old):
        return True
    return any(not has_ended(pod) for pod in pods)


def _ended(sets: Iterable[ReplicaSet]) -> tuple[Scale, ...]:
    return tuple(Scale(replica_set, 0) for replica_set in active(sets))


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) <= 10 else 0
