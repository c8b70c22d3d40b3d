"""Sizes of a deployment's replica sets: rollout and proportional scaling."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.decide.workload.kinds import replicas
from podfit.decide.workload.pods import share

ROLLING = "RollingUpdate"


class Scale(NamedTuple):
    """Give a replica set this size."""

    replicas: ReplicaSet
    size: int


def wanted(obj: Deployment | ReplicaSet) -> int:
    return replicas(obj.spec.replicas)


def total(sets: Iterable[ReplicaSet]) -> int:
    return sum(map(wanted, sets))


def available(sets: Iterable[ReplicaSet]) -> int:
    return sum(replica_set.status.available_replicas for replica_set in sets)


def active(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Those that are to have pods."""
    return [replica_set for replica_set in sets if wanted(replica_set) > 0]


def is_rolling(deployment: Deployment) -> bool:
    return deployment.spec.strategy.type == ROLLING


def _bounds(deployment: Deployment) -> tuple[int, int]:
    """How many pods more than wanted there may be, and how many fewer: of percentages the first is rounded up, the
    second down, and both are never 0."""
    rolling, size = deployment.spec.strategy.rolling_update, wanted(deployment)
    if not is_rolling(deployment) or rolling is None:
        return 0, 0
    more, fewer = share(rolling.max_surge, size, up=True), share(rolling.max_unavailable, size, up=False)
    return (more, fewer) if more or fewer else (0, 1)


def max_surge(deployment: Deployment) -> int:
    return _bounds(deployment)[0]


def max_unavailable(deployment: Deployment) -> int:
    return min(_bounds(deployment)[1], wanted(deployment))


def new_size(deployment: Deployment, sets: Sequence[ReplicaSet], new: int) -> int:
    """How far the new replica set, of `new` pods, may grow; `sets` are all others, and it when it exists."""
    size = wanted(deployment)
    if not is_rolling(deployment):
        return size
    room = size + max_surge(deployment) - total(sets)
    return new if room <= 0 else new + min(room, size - new)


def next_new(deployment: Deployment, new: ReplicaSet, sets: Sequence[ReplicaSet]) -> Scale | None:
    size = wanted(deployment)
    if wanted(new) == size:
        return None
    next_size = size if wanted(new) > size else new_size(deployment, sets, wanted(new))
    return Scale(new, next_size) if next_size != wanted(new) else None


def next_old(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Scale]:
    """What old replica sets give up now: first pods that are not available anyway, then as many as the bound allows.

    `old` are the active ones, oldest first. One of them may be named twice. While one of them tells of more pods than
    it is to have, it has not acted on its last change, and nothing can be said of how many are available.
    """
    count, least = total(old) + wanted(new), wanted(deployment) - max_unavailable(deployment)
    unready = wanted(new) - new.status.available_replicas
    spare = count - least - unready
    if not total(old) or spare <= 0:
        return []
    if any(replica_set.status.available_replicas > wanted(replica_set) for replica_set in old):
        return []
    sizes, steps = {replica_set.metadata.uid: wanted(replica_set) for replica_set in old}, []
    for replica_set in old:
        sick = sizes[replica_set.metadata.uid] - replica_set.status.available_replicas
        if sick > 0 and spare > 0:
            gone = min(spare, sick)
            spare -= gone
            sizes[replica_set.metadata.uid] -= gone
            steps.append(Scale(replica_set, sizes[replica_set.metadata.uid]))
    surplus = available((*old, new)) - least
    for replica_set in old:
        gone = min(max(surplus, 0), sizes[replica_set.metadata.uid])
        if gone:
            surplus -= gone
            sizes[replica_set.metadata.uid] -= gone
            steps.append(Scale(replica_set, sizes[replica_set.metadata.uid]))
    return steps


def single(new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> ReplicaSet | None:
    """The only replica set with pods, or the newest when none has; None while several have. `old` oldest first."""
    running = active(old if new is None else (*old, new))
    if len(running) == 1:
        return running[0]
    if running:
        return None
    return new if new is not None else (old[-1] if old else None)


def is_saturated(deployment: Deployment, new: ReplicaSet | None, desired: str) -> bool:
    """Whether the new replica set is all that is wanted; `desired` is what its annotation says."""
    if new is None:
        return False
    size = wanted(deployment)
    return desired == str(size) and wanted(new) == size and new.status.available_replicas == size


def proportional(deployment: Deployment, sets: Sequence[ReplicaSet], most: Mapping[str, int]) -> list[Scale]:
    """A change of the deployment's size in the middle of a rollout, shared by all replica sets with pods.

    `most` tells by UID how many pods the deployment might have had when the set was last sized.
    """
    running = active(sets)
    allowed = wanted(deployment) + max_surge(deployment) if wanted(deployment) > 0 else 0
    change = allowed - total(running)
    newest_first = change > 0
    running.sort(key=lambda replica_set: replica_set.metadata.creation_timestamp or "", reverse=newest_first)
    running.sort(key=lambda replica_set: -wanted(replica_set))
    steps, added = [], 0
    for replica_set in running:
        part = _part(deployment, replica_set, change, added, most.get(replica_set.metadata.uid, 0)) if change else 0
        added += part
        steps.append(Scale(replica_set, wanted(replica_set) + part))
    if steps and change:
        steps[0] = Scale(steps[0].replicas, max(0, steps[0].size + change - added))
    return steps


def _part(deployment: Deployment, replicas: ReplicaSet, change: int, added: int, most: int) -> int:
    """What this replica set takes of the change."""
    if change == added:
        return 0
    left, fair = change - added, _fraction(deployment, replicas, most)
    return min(fair, left) if change > 0 else max(fair, left)


def _fraction(deployment: Deployment, replicas: ReplicaSet, most: int) -> int:
    size = wanted(replicas)
    if wanted(deployment) == 0:
        return -size
    before = most or deployment.status.replicas
    if not before:
        return 0
    return int(size * (wanted(deployment) + max_surge(deployment)) / before + 0.5) - size
