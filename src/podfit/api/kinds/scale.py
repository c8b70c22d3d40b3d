"""The scale of kinds that have replicas: one subresource for all of them."""

from typing import Any

from podfit.api.autoscaling.v1.types import Scale
from podfit.api.core.v1.replication.columns import integers
from podfit.api.meta.columns import AGE, NAME, age
from podfit.api.meta.resource_info import ResourceInfo, Subresource

COLUMNS = (NAME, *integers(("Desired", "Pods that are wanted."), ("Available", "Pods that there are.")), AGE)


def scale_row(scale: Scale, now: str) -> list[Any]:
    return [scale.metadata.name, scale.spec.replicas, scale.status.replicas, age(scale, now)]


SCALE = Subresource("scale", kind="Scale", group="autoscaling", version="v1", struct=Scale)
SCALE_INFO = ResourceInfo(
    type=Scale, group="autoscaling", resource="scale", singular="scale", verbs=(), columns=COLUMNS, row=scale_row
)
"""How a scale is read and shown; it is not a resource of its own."""
