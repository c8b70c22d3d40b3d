"""LimitRanges."""

from msgspec.structs import replace

from podfit.api.core.v1.limits.types import LimitRange, LimitRangeItem
from podfit.api.core.v1.pods.validation.resources import container_resource_name, resource_name
from podfit.api.meta.base import ResourceList
from podfit.api.meta.validation import names
from podfit.core.fields import FieldError, duplicate, forbidden, invalid, required
from podfit.core.quantity import ZERO, Quantity
from podfit.core.resources import overcommittable

_TYPES = ("Pod", "Container", "PersistentVolumeClaim")


def validate_limit_range(limits: LimitRange) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for index, item in enumerate(limits.spec.limits or ()):
        path = f"spec.limits[{index}]"
        errors += _type(item.type, f"{path}.type")
        if item.type in seen:
            errors.append(duplicate(f"{path}.type", item.type))
        seen.add(item.type)
        errors += _item(item, path)
    return errors


def _type(name: str, path: str) -> list[FieldError]:
    if problems := names.qualified(name):
        return [invalid(path, name, text) for text in problems]
    if "/" in name or name in _TYPES:
        return []
    return [invalid(path, name, "must be a standard limit type or fully qualified")]


def _item(item: LimitRangeItem, path: str) -> list[FieldError]:
    errors = _names(item.max, item.type, f"{path}.max") + _names(item.min, item.type, f"{path}.min")
    if item.type == "Pod":
        text = "may not be specified when `type` is 'Pod'"
        errors += [forbidden(f"{path}.default", text)] if item.default else []
        errors += [forbidden(f"{path}.defaultRequest", text)] if item.default_request else []
        item = replace(item, default={}, default_request={})
    errors += _names(item.default, item.type, f"{path}.default")
    errors += _names(item.default_request, item.type, f"{path}.defaultRequest")
    if item.type == "PersistentVolumeClaim" and "storage" not in item.min | item.max:
        text = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(required(f"{path}.limits", text))
    errors += _names(item.max_limit_request_ratio, item.type, f"{path}.maxLimitRequestRatio")
    for name in sorted(item.min | item.max | item.default | item.default_request | item.max_limit_request_ratio):
        errors += _order(item, name, path)
    return errors


def _names(resources: ResourceList, kind: str, path: str) -> list[FieldError]:
    check = container_resource_name if kind in ("Pod", "Container") else resource_name
    return [error for name in sorted(resources) for error in check(name, f"{path}[{name}]")]


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
    ratio, low, high = item.max_limit_request_ratio.get(name), item.min.get(name), item.max.get(name)
    errors, where = [], f"{path}.maxLimitRequestRatio[{name}]"
    if ratio is not None and ratio < Quantity.of(1):
        errors.append(invalid(where, ratio, f"ratio {ratio} is less than 1"))
    if ratio is not None and low is not None and high is not None and low > ZERO:
        most = high.nano / low.nano
        if ratio.nano / 10**9 > most:
            errors.append(invalid(where, ratio, f"ratio {ratio} is greater than max/min = {most:f}"))
    default, request = item.default.get(name), item.default_request.get(name)
    if not overcommittable(name) and default is not None and request is not None and default != request:
        text = f"default value {default} must equal to defaultRequest value {request} in {name}"
        errors.append(invalid(f"{path}.defaultRequest[{name}]", request, text))
    return errors
