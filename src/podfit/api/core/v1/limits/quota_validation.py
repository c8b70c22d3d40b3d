"""ResourceQuotas: which names may be limited, by how much, and for which scopes."""

from collections.abc import Sequence

from podfit.api.core.v1.limits.types import ResourceQuota, ResourceQuotaSpec, ScopedResourceSelectorRequirement
from podfit.api.core.v1.pods.validation.resources import amount, resource_name
from podfit.api.meta.base import ResourceList
from podfit.core.fields import FieldError, invalid, required
from podfit.core.resources import HUGEPAGES

_COMPUTE = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
_CLAIMS = ("persistentvolumeclaims", "requests.storage")
_STANDARD = frozenset(
    (
        *_COMPUTE,
        *_CLAIMS,
        "ephemeral-storage",
        "requests.ephemeral-storage",
        "limits.ephemeral-storage",
        "pods",
        "resourcequotas",
        "services",
        "services.nodeports",
        "services.loadbalancers",
        "replicationcontrollers",
        "secrets",
        "configmaps",
    )
)
_PAGES = (HUGEPAGES, f"requests.{HUGEPAGES}")
_LIMITED = {
    "Terminating": ("pods", *_COMPUTE),
    "NotTerminating": ("pods", *_COMPUTE),
    "BestEffort": ("pods",),
    "NotBestEffort": ("pods", *_COMPUTE),
    "PriorityClass": ("pods", *_COMPUTE),
    "CrossNamespacePodAffinity": ("pods", *_COMPUTE),
    "VolumeAttributesClass": _CLAIMS,
}
"""By scope, what a quota of that scope may limit of the standard names."""
_PAIRS = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_WITH_VALUES = ("PriorityClass", "VolumeAttributesClass")
_EXISTS_ONLY = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_UNSUPPORTED = "unsupported scope applied to resource"


def validate_quota(quota: ResourceQuota) -> list[FieldError]:
    return _amounts(quota.spec.hard, "spec.hard") + _scopes(quota.spec) + _selector(quota.spec)


def validate_quota_update(new: ResourceQuota, old: ResourceQuota) -> list[FieldError]:
    errors = validate_quota(new)
    if set(new.spec.scopes) != set(old.spec.scopes):
        errors.append(invalid("spec.scopes", list(new.spec.scopes), "field is immutable"))
    return errors


def validate_quota_status(new: ResourceQuota, _old: ResourceQuota) -> list[FieldError]:
    return _amounts(new.status.hard, "status.hard") + _amounts(new.status.used, "status.used")


def _amounts(resources: ResourceList, path: str) -> list[FieldError]:
    return [
        error
        for name, limit in sorted(resources.items())
        for error in (*_name(name, f"{path}[{name}]"), *amount(name, limit, f"{path}[{name}]"))
    ]


def _name(name: str, path: str) -> list[FieldError]:
    errors = [] if name.startswith(_PAGES) else resource_name(name, path)
    if "/" not in name and not _is_standard(name):
        errors.append(invalid(path, name, "must be a standard resource for quota"))
    return errors


def _is_standard(name: str) -> bool:
    return name in _STANDARD or name.startswith(_PAGES)


def _scopes(spec: ResourceQuotaSpec) -> list[FieldError]:
    shown, path = list(spec.scopes), "spec.scopes"
    errors = []
    for scope in spec.scopes:
        if scope not in _LIMITED:
            errors.append(invalid(path, shown, "unsupported scope"))
        errors += [invalid(path, shown, _UNSUPPORTED) for name in sorted(spec.hard) if not _limits(scope, name)]
    return errors + _conflicts(spec.scopes, path, shown)


def _limits(scope: str, name: str) -> bool:
    return not _is_standard(name) or scope not in _LIMITED or name in _LIMITED[scope]


def _conflicts(scopes: Sequence[str], path: str, shown: list[str]) -> list[FieldError]:
    return [invalid(path, shown, "conflicting scopes") for pair in _PAIRS if set(pair) <= set(scopes)]


def _selector(spec: ResourceQuotaSpec) -> list[FieldError]:
    if spec.scope_selector is None:
        return []
    path, requirements = "spec.scopeSelector.matchExpressions", spec.scope_selector.match_expressions
    shown = {
        "MatchExpressions": [
            {
                "ScopeName": requirement.scope_name,
                "Operator": requirement.operator,
                "Values": list(requirement.values) or None,
            }
            for requirement in requirements
        ]
    }
    errors = []
    for requirement in requirements:
        scope = requirement.scope_name
        if scope not in _LIMITED:
            errors.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
        errors += [invalid(path, shown, _UNSUPPORTED) for name in sorted(spec.hard) if not _limits(scope, name)]
        errors += _operator(requirement, path)
    return errors + _conflicts([requirement.scope_name for requirement in requirements], path, list(spec.scopes))


def _operator(requirement: ScopedResourceSelectorRequirement, path: str) -> list[FieldError]:
    operator, scope, errors = requirement.operator, requirement.scope_name, []
    if scope in _LIMITED and scope not in _WITH_VALUES and operator != "Exists":
        errors.append(invalid(f"{path}.operator", operator, _EXISTS_ONLY))
    if operator in ("In", "NotIn"):
        if not requirement.values:
            text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            errors.append(required(f"{path}.values", text))
    elif operator in ("Exists", "DoesNotExist"):
        if requirement.values:
            text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            errors.append(invalid(f"{path}.values", list(requirement.values), text))
    else:
        errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    return errors
