"""Kinds with a pod template, and where it is."""

from collections.abc import Iterator
from typing import NamedTuple

from podfit.api.apps.v1.daemonsets import DaemonSet
from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.batch.v1.types import CronJob, Job
from podfit.api.core.v1.pods.templates import PodTemplate, PodTemplateSpec
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.pods.validation.warnings import pod_warnings
from podfit.api.core.v1.replication.types import ReplicationController
from podfit.api.meta.base import Object
from podfit.api.structural.custom import Custom
from podfit.api.structural.validation import finalizer_warnings
from podfit.api.warnings.of_kind import of_kind
from podfit.api.warnings.workloads import of_jobs, of_name, of_rest


class Placed(NamedTuple):
    """A template, its path in the object with a dot at its end, and the object's generation."""

    template: PodTemplateSpec
    path: str
    generation: int


MAKE_PODS: frozenset[type[Object]] = frozenset(
    (Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, ReplicationController, CronJob, PodTemplate)
)


def template_of(obj: Object) -> Placed | None:
    """None for what makes no pods."""
    if type(obj) not in MAKE_PODS:
        return None
    match obj:
        case Deployment() | ReplicaSet() | StatefulSet() | DaemonSet() | Job():
            return Placed(obj.spec.template, "spec.template.", obj.metadata.generation)
        case ReplicationController():
            template = obj.spec.template
            return None if template is None else Placed(template, "spec.template.", obj.metadata.generation)
        case CronJob():
            template = obj.spec.job_template.spec.template
            return Placed(template, "spec.jobTemplate.spec.template.", obj.metadata.generation)
        case PodTemplate():
            return Placed(obj.template, "template.", obj.metadata.generation)
    return None


def warnings_of(new: Object, old: Object | None) -> list[str]:
    """What a client is warned of in an object that is `new`, or is to replace `old`."""
    if type(new) in MAKE_PODS or isinstance(new, Pod):
        said = [] if old is not None else [*of_name(new)]
        return [*said, *_of_template(new, old), *of_rest(new, created=old is None)]
    if isinstance(new, Custom):
        return finalizer_warnings(new, old if isinstance(old, Custom) else None)
    return list(of_kind(new, old))


def _of_template(new: Object, old: Object | None) -> Iterator[str]:
    """Of a new pod, or of a template that is new or whose object has another spec."""
    if isinstance(new, Pod):
        yield from pod_warnings(new.metadata, new.spec) if old is None else ()
        return
    placed, before = template_of(new), None if old is None else template_of(old)
    if placed is None or (before is not None and before.generation == placed.generation):
        return
    yield from of_jobs(new)
    yield from pod_warnings(placed.template.metadata, placed.template.spec, placed.path)
