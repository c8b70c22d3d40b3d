"""Warnings about pods and what makes them, beside the template: names, bounds, claims, schedules."""

from collections.abc import Iterator
from typing import Any

from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.batch.v1.types import CronJob, Job, JobSpec
from podfit.api.core.v1.persistentvolumes.claim_validation import claim_warnings
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.replication.types import ReplicationController
from podfit.api.meta.base import Object
from podfit.api.meta.validation import names

_NAMES_PODS = frozenset((CronJob, Deployment, Job, ReplicaSet, ReplicationController))
_SURPRISING = "which can result in surprising behavior; a DNS label is recommended"
_MANY_COMPLETIONS, _MANY_AT_ONCE = 100_000, 10_000
_INDEXES = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes "
    "might not be able to track completedIndexes when a big number of indexes fail"
)
_REVISIONS = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
_ZONE = (
    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
    "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)


def of_name(new: Any) -> Iterator[str]:
    """Of a new object: a name that is good for itself may be a bad one for what is called after it."""
    if isinstance(new, Pod):
        used = "the Pod's hostname"
    elif type(new) in _NAMES_PODS:
        used = "Pod names and hostnames"
    else:
        return
    if problems := names.dns_label(new.metadata.name):
        yield f"metadata.name: this is used in {used}, {_SURPRISING}: [{' '.join(problems)}]"


def of_jobs(new: Object) -> Iterator[str]:
    """Of a job that is new or has another spec, and of what makes such jobs."""
    if isinstance(new, Job):
        yield from _of_indexes(new.spec, "spec")
    elif isinstance(new, CronJob):
        yield from _of_indexes(new.spec.job_template.spec, "spec.jobTemplate.spec")


def _of_indexes(spec: JobSpec, path: str) -> Iterator[str]:
    many = (spec.completions or 0) > _MANY_COMPLETIONS and (spec.parallelism or 0) > _MANY_AT_ONCE
    if spec.completion_mode == "Indexed" and many:
        yield f"{path}: {_INDEXES}"


def of_rest(new: Object, *, created: bool) -> Iterator[str]:
    """What is said after the template's warnings."""
    if isinstance(new, StatefulSet):
        yield from _of_stateful_set(new, created=created)
    elif isinstance(new, CronJob) and not created and "TZ" in new.spec.schedule:
        yield _ZONE


def _of_stateful_set(new: StatefulSet, *, created: bool) -> Iterator[str]:
    """Upstream's paths of claims differ between creation and update."""
    for index, claim in enumerate(new.spec.volume_claim_templates):
        path = f"spec.volumeClaimTemplates[{index}]"
        yield from claim_warnings(claim.spec, path if created else f"{path}.Spec")
    if new.spec.revision_history_limit is not None and new.spec.revision_history_limit < 0:
        yield _REVISIONS
