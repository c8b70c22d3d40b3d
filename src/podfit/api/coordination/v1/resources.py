"""The kinds of coordination.k8s.io."""

from podfit.api.coordination.v1.columns import LEASE, lease_row
from podfit.api.coordination.v1.types import Lease
from podfit.api.registry import ResourceInfo

KINDS: tuple[ResourceInfo, ...] = (
    ResourceInfo(
        type=Lease,
        unconditional=False,
        created_by_update=True,
        group="coordination.k8s.io",
        resource="leases",
        singular="lease",
        columns=LEASE,
        row=lease_row,
    ),
)
