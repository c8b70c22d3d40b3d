"""The kind of autoscaling, in two versions of which the first is stored as the second."""

from podfit.api.autoscaling.conversion import to_v1, to_v2
from podfit.api.autoscaling.v1 import types as v1
from podfit.api.autoscaling.v2 import columns
from podfit.api.autoscaling.v2 import types as v2
from podfit.api.meta.resource_info import STATUS, Conversion, ResourceInfo

_SECOND = ResourceInfo(
    type=v2.HorizontalPodAutoscaler,
    group="autoscaling",
    version="v2",
    resource="horizontalpodautoscalers",
    singular="horizontalpodautoscaler",
    short_names=("hpa",),
    categories=("all",),
    subresources=(STATUS,),
    columns=columns.AUTOSCALER,
    row=columns.autoscaler_row,
)
KINDS: tuple[ResourceInfo, ...] = (
    _SECOND,
    ResourceInfo(
        type=v1.HorizontalPodAutoscaler,
        group="autoscaling",
        resource="horizontalpodautoscalers",
        singular="horizontalpodautoscaler",
        short_names=("hpa",),
        categories=("all",),
        subresources=(STATUS,),
        columns=columns.AUTOSCALER,
        row=lambda obj, now: columns.autoscaler_row(to_v2(obj), now),
        stored_as="v2",
        conversion=Conversion(_SECOND, shown=to_v1, kept=to_v2),
    ),
)
