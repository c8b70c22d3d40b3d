"""Validation of values against their schema, in the API's words.

One value can fail in more ways than one. What every text names is the path, `in body`, and for a type that does not fit
the type that was given.
"""

import math
from collections.abc import Iterator
from typing import Any

import msgspec
import re2

from podfit.api.apiextensions.v1.types import JSONSchemaProps
from podfit.api.structural.formats import fits
from podfit.api.structural.rules import NOWHERE
from podfit.core.bounded_cache import KEPT_PATTERNS, cached_within, weight_of_pattern
from podfit.core.fields import FieldError, invalid, required, too_many, type_invalid, unsupported
from podfit.core.loop_slices import spend

_PRINTED = 10
"""Units for each value that an error lists."""
_NONE_OF = {"anyOf": "at least one schema (anyOf)", "oneOf": "one and only one schema (oneOf). Found none valid"}


def value_errors(value: Any, schema: JSONSchemaProps, path: str = "") -> Iterator[FieldError]:
    if value is None and schema.nullable:
        return
    spend(1)
    if problem := _misfit(value, schema):
        yield type_invalid(path, _kind(value), f'{_in(path)} must be of type {problem}: "{_kind(value)}"')
    yield from _junctors(value, schema, path)
    match value:
        case str():
            yield from _text(value, schema, path)
        case bool():
            pass
        case int() | float():
            yield from _number(value, schema, path)
        case list():
            yield from _items(value, schema, path)
    if schema.enum:
        spend(len(schema.enum) // 10)
    if schema.enum and not any(_same(value, choice) for choice in schema.enum):
        spend(_PRINTED * len(schema.enum))
        allowed = [choice if isinstance(choice, str) else _json(choice) for choice in schema.enum]
        yield unsupported(path, value, allowed)
    if isinstance(value, dict):
        yield from _members(value, schema, path)


def _in(path: str) -> str:
    return f"{path} in body" if path else "in body"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1, but 1 is 1.0."""
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def _misfit(value: Any, schema: JSONSchemaProps) -> str:
    """The type that was wanted, when the value is of another."""
    kind = _kind(value)
    if schema.int_or_string:
        return "" if kind in ("integer", "string") else "integer,string"
    if not schema.type or kind == schema.type or (kind == "integer" and schema.type == "number"):
        return ""
    if schema.type == "integer" and isinstance(value, float) and value.is_integer():
        return ""
    return schema.type


def _text(value: str, schema: JSONSchemaProps, path: str) -> Iterator[FieldError]:
    """Only the first that does not fit is named; the format by itself."""
    if schema.max_length is not None and len(value) > schema.max_length:
        yield FieldError(path, "Too long", f"may not be more than {schema.max_length} bytes")
    elif schema.min_length is not None and len(value) < schema.min_length:
        yield invalid(path, value, f"{_in(path)} should be at least {schema.min_length} chars long")
    elif schema.pattern and not compiled(schema.pattern).search(value):
        yield invalid(path, value, f"{_in(path)} should match '{schema.pattern}'")
    if schema.format and not fits(value, schema.format):
        yield type_invalid(path, value, f"{_in(path)} must be of type {schema.format}: {_json(value)}")


@cached_within(KEPT_PATTERNS, weigh=weight_of_pattern)
def compiled(pattern: str) -> Any:
    """The expression as Go reads it, which takes time in proportion to the text. Raises ValueError."""
    try:
        return re2.compile(pattern)
    except re2.error as error:
        raise ValueError(str(error)) from None


def _number(value: int | float, schema: JSONSchemaProps, path: str) -> Iterator[FieldError]:
    if schema.type == "integer" and isinstance(value, float) and not value.is_integer():
        yield invalid(NOWHERE, "", f"Checked value must be of type integer (default format) in {path}")
        return
    if schema.multiple_of and not _is_multiple(value, schema.multiple_of):
        yield invalid(path, value, f"{_in(path)} should be a multiple of {_shown(schema.multiple_of)}")
    limit = schema.maximum
    if limit is not None and (value > limit or (schema.exclusive_maximum and value == limit)):
        than = "less than" if schema.exclusive_maximum else "less than or equal to"
        yield invalid(path, value, f"{_in(path)} should be {than} {_shown(limit)}")
    limit = schema.minimum
    if limit is not None and (value < limit or (schema.exclusive_minimum and value == limit)):
        than = "greater than" if schema.exclusive_minimum else "greater than or equal to"
        yield invalid(path, value, f"{_in(path)} should be {than} {_shown(limit)}")
    if schema.format in ("int32", "int64") and isinstance(value, int):
        bits = int(schema.format[3:])
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            text = f"Checked value must be of type integer with format {schema.format} in {path}"
            yield invalid(NOWHERE, "", text)


def _is_multiple(value: int | float, of: int | float) -> bool:
    try:
        times = value / of
    except OverflowError:  # more than a float holds
        return False
    return math.isfinite(times) and abs(times - round(times)) <= 1e-9


def _shown(number: int | float) -> str:
    return str(int(number)) if isinstance(number, int) or number.is_integer() else str(number)


def _items(value: list[Any], schema: JSONSchemaProps, path: str) -> Iterator[FieldError]:
    if schema.items is not None:
        for index, item in enumerate(value):
            yield from value_errors(item, schema.items, f"{path}[{index}]")
    if schema.min_items is not None and len(value) < schema.min_items:
        yield invalid(path, len(value), f"{_in(path)} should have at least {schema.min_items} items")
    if schema.max_items is not None and len(value) > schema.max_items:
        yield too_many(path, len(value), schema.max_items)


def _members(value: dict[str, Any], schema: JSONSchemaProps, path: str) -> Iterator[FieldError]:
    if schema.min_properties is not None and len(value) < schema.min_properties:
        yield invalid(path, len(value), f"{_in(path)} should have at least {schema.min_properties} properties")
        return
    if schema.max_properties is not None and len(value) > schema.max_properties:
        yield too_many(path, len(value), schema.max_properties)
        return
    start = f"{path}." if path else ""
    additional = schema.additional_properties
    if isinstance(additional, JSONSchemaProps):
        for name, member in value.items():
            if name not in schema.properties:
                yield from value_errors(member, additional, start + name)
    for name in sorted(schema.properties.keys() & value.keys()):
        yield from value_errors(value[name], schema.properties[name], start + name)
    yield from (required(start + name) for name in schema.required if name not in value)


def _junctors(value: Any, schema: JSONSchemaProps, path: str) -> Iterator[FieldError]:
    """Errors of the best alternative come with the verdict, as nobody else knows what was meant."""
    for name, several in (("anyOf", schema.any_of), ("oneOf", schema.one_of)):
        if not several:
            continue
        outcomes = [list(value_errors(value, branch, path)) for branch in several]
        valid = sum(not outcome for outcome in outcomes)
        quoted = _json(path)
        if not valid:
            yield invalid(NOWHERE, "", f"{quoted} must validate {_NONE_OF[name]}")
            yield from min(outcomes, key=len)
        elif name == "oneOf" and valid > 1:
            text = f"{quoted} must validate one and only one schema (oneOf). Found {valid} valid alternatives"
            yield invalid(NOWHERE, "", text)
    outcomes = [list(value_errors(value, branch, path)) for branch in schema.all_of]
    if any(outcomes):
        none = all(outcomes)
        for outcome in outcomes:
            yield from outcome
        yield invalid(NOWHERE, "", f"{_json(path)} must validate all the schemas (allOf){'. None validated' * none}")
    if schema.not_ is not None and not list(value_errors(value, schema.not_, path)):
        yield invalid(NOWHERE, "", f"{_json(path)} must not validate the schema (not)")
