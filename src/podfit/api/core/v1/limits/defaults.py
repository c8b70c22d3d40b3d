"""Defaults of limit ranges and quotas."""

from collections.abc import Callable, Mapping
from typing import Any

from podfit.api.core.v1.limits.types import (
    LimitRange,
    LimitRangeItem,
    LimitRangeSpec,
    ResourceQuota,
    ResourceQuotaSpec,
    ResourceQuotaStatus,
)
from podfit.api.meta.base import Object
from podfit.api.meta.defaulting import change, completed, inside, rounded


def _limit_range(limits: LimitRange) -> LimitRange:
    return inside(limits, spec=_limit_range_spec)


def _limit_range_spec(spec: LimitRangeSpec) -> LimitRangeSpec:
    return inside(spec, limits=_limit_range_item)


def _limit_range_item(item: LimitRangeItem) -> LimitRangeItem:
    """For containers the default limit falls back to the maximum, the default request to the default limit, then the
    minimum."""
    item = inside(
        item, default=rounded, default_request=rounded, max=rounded, min=rounded, max_limit_request_ratio=rounded
    )
    if item.type != "Container":
        return item
    default = completed(item.default, item.max)
    request = completed(completed(item.default_request, default), item.min)
    return change(item, default=default, default_request=request)


def _resource_quota(quota: ResourceQuota) -> ResourceQuota:
    return inside(quota, spec=_quota_spec, status=_quota_status)


def _quota_spec(spec: ResourceQuotaSpec) -> ResourceQuotaSpec:
    return inside(spec, hard=rounded)


def _quota_status(status: ResourceQuotaStatus) -> ResourceQuotaStatus:
    return inside(status, hard=rounded, used=rounded)


DEFAULTS: Mapping[type[Object], Callable[[Any], Any]] = {LimitRange: _limit_range, ResourceQuota: _resource_quota}
