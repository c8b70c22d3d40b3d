"""LimitRange and ResourceQuota: what a namespace allows a pod, and all of its pods together."""

from typing import ClassVar

from msgspec import field

from podfit.api.meta.base import Object, ResourceList, Struct, always
from podfit.api.meta.v1.types import ObjectMeta


class LimitRangeItem(Struct):
    type: str = always(default="")
    default: ResourceList = field(default_factory=dict)
    default_request: ResourceList = field(default_factory=dict)
    max: ResourceList = field(default_factory=dict)
    max_limit_request_ratio: ResourceList = field(default_factory=dict)
    min: ResourceList = field(default_factory=dict)


class LimitRangeSpec(Struct):
    limits: tuple[LimitRangeItem, ...] | None = always(default=None)


class LimitRange(Object):
    kind: str = always(default="LimitRange")
    api_version: str = always(default="v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: LimitRangeSpec = always(default=LimitRangeSpec())


class ScopedResourceSelectorRequirement(Struct):
    operator: str = always(default="")
    scope_name: str = always(default="")
    values: tuple[str, ...] = ()


class ScopeSelector(Struct):
    whole: ClassVar[bool] = True
    match_expressions: tuple[ScopedResourceSelectorRequirement, ...] = ()


class ResourceQuotaSpec(Struct):
    hard: ResourceList = field(default_factory=dict)
    scope_selector: ScopeSelector | None = None
    scopes: tuple[str, ...] = ()


class ResourceQuotaStatus(Struct):
    hard: ResourceList = field(default_factory=dict)
    used: ResourceList = field(default_factory=dict)


class ResourceQuota(Object):
    kind: str = always(default="ResourceQuota")
    api_version: str = always(default="v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: ResourceQuotaSpec = always(default=ResourceQuotaSpec())
    status: ResourceQuotaStatus = always(default=ResourceQuotaStatus())
