"""The scale of kinds that have replicas: one subresource for all of them."""

from podfit.api.autoscaling.v1 import Scale
from podfit.api.registry import ResourceInfo, Subresource
from podfit.api.workload_columns import SCALE as COLUMNS
from podfit.api.workload_columns import scale_row

SCALE = Subresource("scale", kind="Scale", group="autoscaling", version="v1", struct=Scale)
SCALE_INFO = ResourceInfo(
    type=Scale, group="autoscaling", resource="scale", singular="scale", verbs=(), columns=COLUMNS, row=scale_row
)
"""How a scale is read and shown; it is not a resource of its own."""
