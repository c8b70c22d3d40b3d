"""Columns of `kubectl get` for replication controllers and pod templates, and cells that all workloads share."""

from collections.abc import Iterable
from typing import Any

from podfit.api.core.v1.pods.templates import PodTemplate, PodTemplateSpec
from podfit.api.core.v1.replication.types import ReplicationController
from podfit.api.meta import selectors
from podfit.api.meta.columns import AGE, NAME, NONE, age, wide
from podfit.api.meta.resource_info import Column
from podfit.api.meta.v1.types import LabelSelector

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


REPLICAS = (
    NAME,
    *integers(
        ("Desired", "Pods that are wanted."), ("Current", "Pods that there are."), ("Ready", "Pods that are ready.")
    ),
    AGE,
    *PODS,
    SELECTOR,
)
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
