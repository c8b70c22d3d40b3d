"""The scale of kinds that have replicas: one subresource for all of them."""

from podfit.api.apps.v1.columns import SCALE as COLUMNS
from podfit.api.apps.v1.columns import scale_row
from podfit.api.autoscaling.v1.types import Scale
from podfit.api.registry import ResourceInfo, Subresource

SCALE = Subresource("scale", kind="Scale", group="autoscaling", version="v1", struct=Scale)
SCALE_INFO = ResourceInfo(
    type=Scale, group="autoscaling", resource="scale", singular="scale", verbs=(), columns=COLUMNS, row=scale_row
)
"""How a scale is read and shown; it is not a resource of its own."""
