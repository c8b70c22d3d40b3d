"""The kinds of discovery.k8s.io."""

from podfit.api.core.v1.services.columns import SLICE, slice_row
from podfit.api.discovery.v1.types import EndpointSlice
from podfit.api.registry import ResourceInfo

KINDS: tuple[ResourceInfo, ...] = (
    ResourceInfo(
        type=EndpointSlice,
        group="discovery.k8s.io",
        resource="endpointslices",
        singular="endpointslice",
        columns=SLICE,
        row=slice_row,
        counted=lambda o: (o.address_type, o.endpoints, o.ports),
    ),
)
