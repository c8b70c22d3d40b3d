"""The status of a stateful set."""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from podfit.api.apps.v1.statefulsets import StatefulSet, StatefulSetStatus
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.workload.history import HASH
from podfit.decide.workload.pods import is_available
from podfit.decide.workload.stateful import identity
from podfit.decide.workload.stateful.steps import ROLLING, is_running_and_ready


def status_of(
    owner: StatefulSet,
    current: str,
    update: str,
    pods: Sequence[Pod],
    now: datetime,
    *,
    collisions: int,
    updating: int = 0,
) -> StatefulSetStatus:
    """`current` and `update` are names of revisions; `updating` pods were just deleted to get the new one."""
    counted = [pod for pod in pods if identity.ordinal(pod) >= 0 and pod.status.phase]
    ready = [pod for pod in counted if is_running_and_ready(pod)]
    available = [pod for pod in ready if is_available(pod, owner.spec.min_ready_seconds, now)]
    staying = [pod.metadata.labels.get(HASH) for pod in counted if not pod.metadata.deletion_timestamp]
    status = replace(
        owner.status,
        observed_generation=owner.metadata.generation,
        replicas=len(counted),
        ready_replicas=len(ready),
        available_replicas=len(available),
        current_replicas=staying.count(current) - updating,
        updated_replicas=staying.count(update),
        current_revision=current,
        update_revision=update,
        collision_count=collisions,
    )
    return _completed(owner, status)


def _completed(owner: StatefulSet, status: StatefulSetStatus) -> StatefulSetStatus:
    """A rollout that is over makes the new revision the current one."""
    size = identity.size(owner)
    numbers = status.updated_replicas, status.ready_replicas, status.replicas
    if owner.spec.update_strategy.type != ROLLING or numbers != (size, size, size):
        return status
    return replace(status, current_replicas=status.updated_replicas, current_revision=status.update_revision)
