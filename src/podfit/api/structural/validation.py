"""Validation of custom resources: metadata, values, scale, list types and CEL rules."""

from collections.abc import Iterator
from typing import Any

from podfit.api.apiextensions.v1.types import CustomResourceSubresourceScale
from podfit.api.meta import codec
from podfit.api.meta.validation import names
from podfit.api.meta.validation.metadata import standard_finalizer, validate_any_meta, validate_successor
from podfit.api.structural.custom import Custom
from podfit.api.structural.jsonpath import PathError, find, led_to
from podfit.api.structural.lists import embedded_errors, list_errors
from podfit.api.structural.rules import NOWHERE, has_rules, rule_errors
from podfit.api.structural.values import value_errors
from podfit.core.fields import FieldError, invalid

_BLOCKING = ("Required value", "Unsupported value", "Too long", "Too many")
_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)
_MOST_REPLICAS = 2**31 - 1


def validate_custom(obj: Custom) -> list[FieldError]:
    errors = validate_any_meta(obj.metadata, namespaced=obj.declared.namespaced, name_rule=names.dns_subdomain)
    return errors + _contents(obj, None, scale=True)


def validate_custom_update(new: Custom, old: Custom) -> list[FieldError]:
    return validate_successor(new.metadata, old.metadata) + _contents(new, old, scale=True)


def validate_custom_status(new: Custom, old: Custom) -> list[FieldError]:
    return validate_successor(new.metadata, old.metadata) + _contents(new, old, scale=False)


def finalizer_warnings(new: Custom, old: Custom | None) -> list[str]:
    """Of finalizers that come new; those of other kinds have to have a domain."""
    known = old.metadata.finalizers if old is not None else ()
    added = sorted({name for name in new.metadata.finalizers if name not in known})
    advice = (
        "prefer a domain-qualified finalizer name including a path (/) "
        "to avoid accidental conflicts with other finalizer writers"
    )
    return [f'metadata.finalizers: "{name}": {advice}' for name in added if standard_finalizer(name, "")]


def _contents(obj: Custom, old: Custom | None, *, scale: bool) -> list[FieldError]:
    """Rules are asked last, and not at all about an object whose form they could stumble over."""
    document, schema = codec.to_dict(obj), obj.declared.schema
    before = codec.to_dict(old) if old is not None else None
    errors = _new(list(value_errors(document, schema)), before, document, obj)
    if obj.declared.scale is not None:
        errors += _scale(document, obj.declared.scale, spec=scale)
    errors += embedded_errors(document, schema)
    errors += _new(list(list_errors(document, schema)), before, document, obj, lists=True)
    if has_rules(schema):
        if any(error.kind in _BLOCKING or error.reason == "FieldValueTypeInvalid" for error in errors):
            errors.append(invalid(NOWHERE, None, _UNCHECKED))
        else:
            errors += rule_errors(document, before, schema)
    return errors


def _new(errors: list[FieldError], before: Any, document: Any, obj: Custom, *, lists: bool = False) -> list[FieldError]:
    """Ratcheting: what an update does not touch may stay as wrong as it was."""
    if not errors or before is None:
        return errors
    check = list_errors if lists else value_errors
    known = {(error.field, error.body) for error in check(before, obj.declared.schema)}
    return [
        error
        for error in errors
        if (error.field, error.body) not in known or not _untouched(document, before, error.field)
    ]


def _untouched(document: Any, before: Any, field: str) -> bool:
    try:
        return field == NOWHERE or find(document, f".{field}") == find(before, f".{field}")
    except PathError:  # a name that no path can hold
        return bool(document == before)


def _scale(document: Any, scale: CustomResourceSubresourceScale, *, spec: bool) -> Iterator[FieldError]:
    for path in (scale.spec_replicas_path, scale.status_replicas_path)[0 if spec else 1 :]:
        found = led_to(document, path)
        if not found:
            continue
        value = found[0]
        if isinstance(value, bool) or not isinstance(value, int):
            text = f"{path} accessor error: {_go(value)} is of the type {_go_type(value)}, expected int64"
            yield invalid(path, 0, text)
        elif value < 0:
            yield invalid(path, value, "should be a non-negative integer")
        elif value > _MOST_REPLICAS:
            yield invalid(path, value, f"should be less than or equal to {_MOST_REPLICAS}")


def _go(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _go_type(value: Any) -> str:
    names_of = {str: "string", bool: "bool", float: "float64", list: "[]interface {}", dict: "map[string]interface {}"}
    return names_of.get(type(value), "<nil>")
