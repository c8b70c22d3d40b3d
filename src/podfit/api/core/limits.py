"""LimitRange and ResourceQuota: what a namespace allows a pod, and all of its pods together."""

from msgspec import field

from podfit.api.base import always, Object, ResourceList, Struct
from podfit.api.meta import ObjectMeta


class LimitRangeItem(Struct):
    type: str = always("")
    default: ResourceList = field(default_factory=dict)
    default_request: ResourceList = field(default_factory=dict)
    max: ResourceList = field(default_factory=dict)
    max_limit_request_ratio: ResourceList = field(default_factory=dict)
    min: ResourceList = field(default_factory=dict)


class LimitRangeSpec(Struct):
    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(Object):
    kind: str = always("LimitRange")
    api_version: str = always("v1")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: LimitRangeSpec = always(LimitRangeSpec())


class ScopedResourceSelectorRequirement(Struct):
    operator: str = always("")
    scope_name: str = always("")
    values: tuple[str, ...] = ()


class ScopeSelector(Struct):
    match_expressions: tuple[ScopedResourceSelectorRequirement, ...] = ()


class ResourceQuotaSpec(Struct):
    hard: ResourceList = field(default_factory=dict)
    scope_selector: ScopeSelector | None = None
    scopes: tuple[str, ...] = ()


class ResourceQuotaStatus(Struct):
    hard: ResourceList = field(default_factory=dict)
    used: ResourceList = field(default_factory=dict)


class ResourceQuota(Object):
    kind: str = always("ResourceQuota")
    api_version: str = always("v1")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ResourceQuotaSpec = always(ResourceQuotaSpec())
    status: ResourceQuotaStatus = always(ResourceQuotaStatus())
