"""The kinds of coordination.k8s.io."""

from typing import Any

from podfit.api.coordination.v1.types import Lease
from podfit.api.meta.columns import AGE, NAME, age, name_of
from podfit.api.meta.resource_info import Column, ResourceInfo

LEASE = (NAME, Column("Holder", description="Who holds the lease."), AGE)


def lease_row(lease: Lease, now: str) -> list[Any]:
    return [name_of(lease), lease.spec.holder_identity, age(lease, now)]


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
