"""Columns of `kubectl get` for resource quotas."""

from typing import Any

from podfit.api.columns import AGE, NAME, age, name_of
from podfit.api.core.v1.limits.types import ResourceQuota
from podfit.api.registry import Column
from podfit.core.quantity import ZERO

QUOTA = (
    NAME,
    Column("Request", description="Used and allowed, of everything but limits."),
    Column("Limit", description="Used and allowed, of limits."),
    AGE,
)


def quota_row(quota: ResourceQuota, now: str) -> list[Any]:
    status = quota.status
    cells = {name: f"{name}: {status.used.get(name, ZERO)}/{hard}" for name, hard in sorted(status.hard.items())}
    limits = [text for name, text in cells.items() if name.startswith("limits.")]
    requests = [text for name, text in cells.items() if not name.startswith("limits.")]
    return [name_of(quota), ", ".join(requests), ", ".join(limits), age(quota, now)]
