"""The status of a deployment: counts, and conditions with upstream's reasons and messages."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from podfit.api.apps.v1.deployments import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet
from podfit.core.times import format_time, parse_time
from podfit.decide.workload.deployment.revisions import Sets
from podfit.decide.workload.deployment.sizes import available, max_unavailable, total, wanted

PROGRESSING, AVAILABLE, FAILURE = "Progressing", "Available", "ReplicaFailure"
CREATED, FOUND, CREATE_ERROR = "NewReplicaSetCreated", "FoundNewReplicaSet", "ReplicaSetCreateError"
UPDATED, COMPLETE, TIMED_OUT = "ReplicaSetUpdated", "NewReplicaSetAvailable", "ProgressDeadlineExceeded"
PAUSED, RESUMED = "DeploymentPaused", "DeploymentResumed"
_NO_DEADLINE = 2**31 - 1


def has_deadline(deployment: Deployment) -> bool:
    return deployment.spec.progress_deadline_seconds not in (None, _NO_DEADLINE)


def condition(status: DeploymentStatus, kind: str) -> DeploymentCondition | None:
    return next((condition for condition in status.conditions if condition.type == kind), None)


def new_condition(kind: str, status: str, reason: str, message: str, now: datetime) -> DeploymentCondition:
    stamp = format_time(now)
    return DeploymentCondition(
        type=kind, status=status, reason=reason, message=message, last_update_time=stamp, last_transition_time=stamp
    )


def with_condition(status: DeploymentStatus, made: DeploymentCondition) -> DeploymentStatus:
    """One with the same status and reason stays as it is; one with the same status keeps the time of its beginning."""
    old = condition(status, made.type)
    if old is not None and old.status == made.status:
        if old.reason == made.reason:
            return status
        made = replace(made, last_transition_time=old.last_transition_time)
    return _appended(status, made)


def without_condition(status: DeploymentStatus, kind: str) -> DeploymentStatus:
    return replace(status, conditions=tuple(condition for condition in status.conditions if condition.type != kind))


def _appended(status: DeploymentStatus, made: DeploymentCondition) -> DeploymentStatus:
    return replace(status, conditions=(*without_condition(status, made.type).conditions, made))


def pausing(deployment: Deployment, now: datetime) -> DeploymentCondition | None:
    """What is noted when a deployment was paused or goes on; the clock of its progress starts anew."""
    found = condition(deployment.status, PROGRESSING)
    if not has_deadline(deployment) or (found is not None and found.reason == TIMED_OUT):
        return None
    noted = found is not None and found.reason == PAUSED
    if deployment.spec.paused and not noted:
        return new_condition(PROGRESSING, "Unknown", PAUSED, "Deployment is paused", now)
    if not deployment.spec.paused and noted:
        return new_condition(PROGRESSING, "Unknown", RESUMED, "Deployment is resumed", now)
    return None


def counted(deployment: Deployment, sets: Sets, now: datetime) -> DeploymentStatus:
    """The numbers, and whether enough is available."""
    ready = available(sets.all)
    status = replace(
        deployment.status,
        observed_generation=deployment.metadata.generation,
        replicas=sum(replica_set.status.replicas for replica_set in sets.all),
        updated_replicas=sets.new.status.replicas if sets.new is not None else 0,
        ready_replicas=sum(replica_set.status.ready_replicas for replica_set in sets.all),
        available_replicas=ready,
        unavailable_replicas=max(0, total(sets.all) - ready),
        terminating_replicas=_terminating(sets.all),
    )
    if ready >= wanted(deployment) - max_unavailable(deployment):
        says = "True", "MinimumReplicasAvailable", "Deployment has minimum availability."
    else:
        says = "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
    return with_condition(status, new_condition(AVAILABLE, *says, now))


def _terminating(sets: Sequence[ReplicaSet]) -> int | None:
    """None while a replica set does not tell."""
    told = [
        replica_set.status
        for replica_set in sets
        if replica_set.status.observed_generation or replica_set.status.terminating_replicas
    ]
    numbers = [status.terminating_replicas for status in told if status.terminating_replicas is not None]
    return sum(numbers) if len(numbers) == len(told) else None


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    return is_replaced(deployment, status) and status.available_replicas == wanted(deployment)


def is_replaced(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Whether all pods are of the present template, available or not."""
    size, numbers = wanted(deployment), (status.updated_replicas, status.replicas)
    return numbers == (size, size) and status.observed_generation >= deployment.metadata.generation


def _progressed(old: DeploymentStatus, new: DeploymentStatus) -> bool:
    return (
        new.updated_replicas > old.updated_replicas
        or new.replicas - new.updated_replicas < old.replicas - old.updated_replicas
        or new.ready_replicas > old.ready_replicas
        or new.available_replicas > old.available_replicas
    )


def _timed_out(deployment: Deployment, status: DeploymentStatus, now: datetime) -> bool:
    found = condition(status, PROGRESSING)
    if found is None or found.reason == COMPLETE or not has_deadline(deployment):
        return False
    return found.reason == TIMED_OUT or _due(deployment, found) < now


def _due(deployment: Deployment, progressing: DeploymentCondition) -> datetime:
    """When the deadline of what was noted last is over."""
    begun = parse_time(progressing.last_update_time or "0001-01-01T00:00:00Z")
    return begun + timedelta(seconds=deployment.spec.progress_deadline_seconds or 0)


def of_rollout(deployment: Deployment, sets: Sets, now: datetime) -> DeploymentStatus:
    """The numbers, how the rollout goes, and why pods cannot be made."""
    status = counted(deployment, sets, now)
    if not has_deadline(deployment):
        status = without_condition(status, PROGRESSING)
    before = condition(deployment.status, PROGRESSING)
    was_complete = status.replicas == status.updated_replicas and before is not None and before.reason == COMPLETE
    if has_deadline(deployment) and not was_complete:
        status = _with_progress(deployment, status, sets.new, now)
    failure = _failure(sets)
    return without_condition(status, FAILURE) if failure is None else with_condition(status, failure)


def _with_progress(
    deployment: Deployment, status: DeploymentStatus, new: ReplicaSet | None, now: datetime
) -> DeploymentStatus:
    what = f'ReplicaSet "{new.metadata.name}"' if new is not None else f'Deployment "{deployment.metadata.name}"'
    if is_complete(deployment, status):
        text = f"{what} has successfully progressed."
        return with_condition(status, new_condition(PROGRESSING, "True", COMPLETE, text, now))
    if _progressed(deployment.status, status):
        made = new_condition(PROGRESSING, "True", UPDATED, f"{what} is progressing.", now)
        before = condition(deployment.status, PROGRESSING)
        if before is not None and before.status == "True":
            made = replace(made, last_transition_time=before.last_transition_time)
        return _appended(status, made)
    if _timed_out(deployment, status, now):
        text = f"{what} has timed out progressing."
        return with_condition(status, new_condition(PROGRESSING, "False", TIMED_OUT, text, now))
    return status


def _failure(sets: Sets) -> DeploymentCondition | None:
    """The failure of a replica set, of the new one first."""
    for replica_set in filter(None, (sets.new, *sets.old)):
        for condition in replica_set.status.conditions:
            if condition.type == FAILURE:
                return DeploymentCondition(
                    type=FAILURE,
                    status=condition.status,
                    reason=condition.reason,
                    message=condition.message,
                    last_update_time=condition.last_transition_time,
                    last_transition_time=condition.last_transition_time,
                )
    return None


def look_again(deployment: Deployment, now: datetime) -> float | None:
    """Seconds until the deadline of a rollout that goes on is over for sure."""
    found = condition(deployment.status, PROGRESSING)
    if found is None or not has_deadline(deployment):
        return None
    if found.reason == TIMED_OUT or is_complete(deployment, deployment.status):
        return None
    return max(0.0, (_due(deployment, found) - now).total_seconds()) + 1.0
