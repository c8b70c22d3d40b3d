"""Columns of `kubectl get` for leases."""

from typing import Any

from podfit.api.columns import AGE, NAME, age, name_of
from podfit.api.coordination.v1.types import Lease
from podfit.api.registry import Column

LEASE = (NAME, Column("Holder", description="Who holds the lease."), AGE)


def lease_row(lease: Lease, now: str) -> list[Any]:
    return [name_of(lease), lease.spec.holder_identity, age(lease, now)]
