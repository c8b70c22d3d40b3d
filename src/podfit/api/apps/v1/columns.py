"""Columns of `kubectl get` for controllers of pods."""

from collections.abc import Iterable
from typing import Any

from podfit.api.apps.v1.daemonsets import ControllerRevision, DaemonSet
from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.autoscaling.v1.types import Scale
from podfit.api.columns import AGE, NAME, NONE, age, wide
from podfit.api.core.v1.pods.templates import PodTemplate, PodTemplateSpec
from podfit.api.core.v1.replication.types import ReplicationController
from podfit.api.meta import selectors
from podfit.api.meta.owners import controller_named
from podfit.api.meta.v1.types import LabelSelector
from podfit.api.registry import Column

_CONTAINERS = wide("Containers", "Names of the containers.")
_IMAGES = wide("Images", "Images of the containers.")
SELECTOR = wide("Selector", "Labels by which it knows its pods.")
PODS = (_CONTAINERS, _IMAGES)


def pods_of(template: PodTemplateSpec) -> list[str]:
    """Cells under `PODS`."""
    containers = template.spec.containers
    return [",".join(container.name for container in containers), ",".join(container.image for container in containers)]


def selected(selector: LabelSelector | None) -> str:
    """The cell under `SELECTOR`."""
    return selectors.text(selector) or NONE


def pairs(labels: dict[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE


def integers(*names: tuple[str, str]) -> Iterable[Column]:
    return (Column(name, "integer", description=text) for name, text in names)


DEPLOYMENT = (
    NAME,
    Column("Ready", description="Pods that are ready, of those wanted."),
    Column("Up-to-date", description="Pods made from the present template."),
    Column("Available", description="Pods that have been ready for long enough."),
    AGE,
    *PODS,
    SELECTOR,
)


def deployment_row(deployment: Deployment, now: str) -> list[Any]:
    spec, status = deployment.spec, deployment.status
    return [
        deployment.metadata.name,
        f"{status.ready_replicas}/{spec.replicas or 0}",
        status.updated_replicas,
        status.available_replicas,
        age(deployment, now),
        *pods_of(spec.template),
        selected(spec.selector),
    ]


REPLICAS = (
    NAME,
    *integers(
        ("Desired", "Pods that are wanted."), ("Current", "Pods that there are."), ("Ready", "Pods that are ready.")
    ),
    AGE,
    *PODS,
    SELECTOR,
)


def replica_set_row(replicas: ReplicaSet, now: str) -> list[Any]:
    spec, status = replicas.spec, replicas.status
    counts = [spec.replicas or 0, status.replicas, status.ready_replicas]
    rest = [*pods_of(spec.template), selected(spec.selector)]
    return [replicas.metadata.name, *counts, age(replicas, now), *rest]


STATEFUL_SET = (NAME, Column("Ready", description="Pods that are ready, of those wanted."), AGE, *PODS)


def stateful_set_row(stateful: StatefulSet, now: str) -> list[Any]:
    ready = f"{stateful.status.ready_replicas}/{stateful.spec.replicas or 0}"
    return [stateful.metadata.name, ready, age(stateful, now), *pods_of(stateful.spec.template)]


DAEMON_SET = (
    NAME,
    *integers(
        ("Desired", "Nodes that should run a pod of it."),
        ("Current", "Nodes that have a pod of it."),
        ("Ready", "Nodes whose pod is ready."),
        ("Up-to-date", "Nodes whose pod is made from the present template."),
        ("Available", "Nodes whose pod has been ready for long enough."),
    ),
    Column("Node Selector", description="Labels of the nodes that it is for."),
    AGE,
    *PODS,
    SELECTOR,
)


def daemon_set_row(daemons: DaemonSet, now: str) -> list[Any]:
    spec, status = daemons.spec, daemons.status
    return [
        daemons.metadata.name,
        status.desired_number_scheduled,
        status.current_number_scheduled,
        status.number_ready,
        status.updated_number_scheduled,
        status.number_available,
        pairs(spec.template.spec.node_selector),
        age(daemons, now),
        *pods_of(spec.template),
        selected(spec.selector),
    ]


REVISION = (
    NAME,
    Column("Controller", description="What this is a revision of."),
    Column("Revision", description="Number of the revision."),
    AGE,
)


def revision_row(revision: ControllerRevision, now: str) -> list[Any]:
    owner = controller_named(revision.metadata)
    shown = f"{owner.kind.lower()}{'.' if owner.group else ''}{owner.group}/{owner.name}" if owner else NONE
    return [revision.metadata.name, shown, revision.revision, age(revision, now)]


POD_TEMPLATE = (
    NAME,
    Column("Containers", description="Names of the containers."),
    Column("Images", description="Images of the containers."),
    Column("Pod Labels", description="Labels of the pods made from it."),
)


def pod_template_row(template: PodTemplate, _: str) -> list[Any]:
    inside = template.template
    return [template.metadata.name, *pods_of(inside), pairs(inside.metadata.labels)]


def replication_row(controller: ReplicationController, now: str) -> list[Any]:
    spec, status = controller.spec, controller.status
    counts = [spec.replicas or 0, status.replicas, status.ready_replicas]
    pods = pods_of(spec.template) if spec.template else ["", ""]
    return [controller.metadata.name, *counts, age(controller, now), *pods, pairs(spec.selector)]


SCALE = (NAME, *integers(("Desired", "Pods that are wanted."), ("Available", "Pods that there are.")), AGE)


def scale_row(scale: Scale, now: str) -> list[Any]:
    return [scale.metadata.name, scale.spec.replicas, scale.status.replicas, age(scale, now)]
