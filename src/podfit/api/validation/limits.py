"""LimitRanges and ResourceQuotas."""

from podfit.api.core.limits import LimitRange, LimitRangeItem, ResourceQuota, ResourceQuotaSpec, ScopeSelector
from podfit.api.validation import names
from podfit.api.validation.resources import amount, resource_name
from podfit.core.fields import FieldError, duplicate, forbidden, invalid, required
from podfit.core.quantity import Quantity
from podfit.core.resources import overcommittable

_SCOPES = (
    "Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
)  # fmt: skip
_OF_PODS = (
    "pods", "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage",
    "limits.cpu", "limits.memory", "limits.ephemeral-storage",
)  # fmt: skip


def validate_limit_range(limits: LimitRange) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for index, item in enumerate(limits.spec.limits):
        path = f"spec.limits[{index}]"
        errors += [invalid(f"{path}.type", item.type, text) for text in names.qualified(item.type)]
        if item.type in seen:
            errors.append(duplicate(f"{path}.type", item.type))
        seen.add(item.type)
        errors += _item(item, path)
    return errors


def _item(item: LimitRangeItem, path: str) -> list[FieldError]:
    errors = []
    if item.type == "Pod":
        text = "may not be specified when `type` is 'Pod'"
        errors += [forbidden(f"{path}.default", text)] if item.default else []
        errors += [forbidden(f"{path}.defaultRequest", text)] if item.default_request else []
    if item.type == "PersistentVolumeClaim" and "storage" not in item.min | item.max:
        text = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(required(f"{path}.limits", text))
    for name in sorted(item.min | item.max | item.default | item.default_request | item.max_limit_request_ratio):
        errors += _order(item, name, path)
    return errors


def _order(item: LimitRangeItem, name: str, path: str) -> list[FieldError]:
    """min ≤ default request ≤ default ≤ max. Two of the texts quote the other value, as upstream does."""
    low, high = item.min.get(name), item.max.get(name)
    request, default = item.default_request.get(name), item.default.get(name)
    errors = []

    def ordered(
        smaller: Quantity | None, larger: Quantity | None, side: str, shown: Quantity | None, text: str
    ) -> None:
        if smaller is not None and larger is not None and smaller > larger:
            errors.append(invalid(f"{path}.{side}[{name}]", shown, text))

    ordered(low, high, "min", low, f"min value {low} is greater than max value {high}")
    ordered(low, request, "defaultRequest", request, f"min value {low} is greater than default request value {request}")
    ordered(
        request, high, "defaultRequest", request, f"default request value {request} is greater than max value {high}"
    )
    text = f"default request value {request} is greater than default limit value {default}"
    ordered(request, default, "defaultRequest", request, text)
    ordered(low, default, "default", low, f"min value {low} is greater than default value {default}")
    ordered(default, high, "default", high, f"default value {default} is greater than max value {high}")
    return errors + _ratio(item, name, path)


def _ratio(item: LimitRangeItem, name: str, path: str) -> list[FieldError]:
    ratio = item.max_limit_request_ratio.get(name)
    errors = []
    if ratio is not None and ratio < Quantity.of(1):
        errors.append(invalid(f"{path}.maxLimitRequestRatio[{name}]", ratio, f"ratio {ratio} is less than 1"))
    default, request = item.default.get(name), item.default_request.get(name)
    if not overcommittable(name) and (default is not None or request is not None) and default != request:
        text = f"default value {default} must equal to defaultRequest value {request} in {path.rpartition('.')[2]}"
        errors.append(invalid(f"{path}.default[{name}]", default, text))
    return errors


def validate_quota(quota: ResourceQuota) -> list[FieldError]:
    errors = []
    for name, limit in sorted(quota.spec.hard.items()):
        path = f"spec.hard[{name}]"
        errors += (resource_name(name, path) if not name.startswith("count/") else []) + amount(name, limit, path)
    return errors + _scopes(quota.spec) + _selector(quota.spec.scope_selector)


def _scopes(spec: ResourceQuotaSpec) -> list[FieldError]:
    shown = list(spec.scopes)
    errors = []
    for scope in spec.scopes:
        if scope not in _SCOPES:
            errors.append(invalid("spec.scopes", shown, "unsupported scope"))
        elif any(not _fits(scope, name) for name in spec.hard):
            errors.append(invalid("spec.scopes", shown, "unsupported scope applied to resource"))
    for one, other in (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")):
        if {one, other} <= set(spec.scopes):
            errors.append(invalid("spec.scopes", shown, "conflicting scopes"))
    return errors


def _fits(scope: str, name: str) -> bool:
    return name == "pods" if scope == "BestEffort" else name in _OF_PODS or name.startswith(("requests.", "limits."))


def _selector(selector: ScopeSelector | None) -> list[FieldError]:
    errors = []
    path = "spec.scopeSelector.matchExpressions"
    for requirement in selector.match_expressions if selector else ():
        if requirement.scope_name not in _SCOPES:
            errors.append(invalid(f"{path}.scopeName", requirement.scope_name, "unsupported scope"))
        if requirement.operator in ("In", "NotIn") and not requirement.values:
            text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            errors.append(required(f"{path}.values", text))
        if requirement.operator in ("Exists", "DoesNotExist") and requirement.values:
            text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            errors.append(invalid(f"{path}.values", list(requirement.values), text))
    return errors


def validate_quota_update(new: ResourceQuota, old: ResourceQuota) -> list[FieldError]:
    errors = validate_quota(new)
    if set(new.spec.scopes) != set(old.spec.scopes):
        errors.append(invalid("spec.scopes", list(new.spec.scopes), "field is immutable"))
    return errors
