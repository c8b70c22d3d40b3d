"""Validation of a CRD's schemas: structural, of known types, and without what a server cannot afford to check.

Structural means that the type of every field is said where the field is, so that pruning, defaulting and apply can go
by it; what stands under `allOf`, `anyOf`, `oneOf` and `not` only narrows values.
"""

import re
from collections.abc import Iterator

import msgspec

from podfit.api.apiextensions.v1.schema_rules import SchemaPosition, Totals, expression_errors, form_errors
from podfit.api.apiextensions.v1.types import JSONSchemaProps
from podfit.api.structural.defaulting import TooMuch, fill
from podfit.api.structural.lists import list_errors
from podfit.api.structural.pruning import prune
from podfit.api.structural.values import compiled, value_errors
from podfit.core.fields import FieldError, forbidden, invalid, required, unsupported
from podfit.core.loop_slices import spend

TYPES = ("array", "boolean", "integer", "number", "object", "string")
_ROOT, _FIELD, _ITEM = "at the root", "for specified object fields", "for specified array items"
_LIST_TYPES = ("atomic", "map", "set")
_MAP_TYPES = ("atomic", "granular")


def schema_errors(schema: JSONSchemaProps, path: str, before: JSONSchemaProps | None = None) -> Iterator[FieldError]:
    """Rules are looked at when their schema is one that can be worked with. What was wrong with those of `before`, the
    schema of the same version, may stay wrong at its place."""
    errors = [*_structural(schema, path, _ROOT), *_node(schema, path)]
    if errors or before == schema:
        yield from errors
        return
    errors = list(rule_errors(schema, path))
    known = {(error.field, error.kind) for error in rule_errors(before, path)} if errors and before else set()
    yield from (error for error in errors if (error.field, error.kind) not in known)


def rule_errors(schema: JSONSchemaProps, path: str) -> Iterator[FieldError]:
    totals = Totals()
    yield from _expressions(schema, SchemaPosition(path, root=True), totals)
    yield from totals.errors(path)


def _expressions(schema: JSONSchemaProps, place: SchemaPosition, totals: Totals) -> Iterator[FieldError]:
    spend(1)
    times = None if place.times is None or (most := _most(schema)) is None else place.times * most
    for where, inner, what in children(schema, place.path):
        lost = schema.list_type != "map" if what == _ITEM else schema.map_type == "atomic"
        uncorrelated = place.uncorrelated or (place.path if lost else "")
        yield from _expressions(inner, SchemaPosition(where, times=times, uncorrelated=uncorrelated), totals)
    yield from expression_errors(schema, place, totals)


def _most(schema: JSONSchemaProps) -> int | None:
    """How many values a schema makes of each that it describes; None without a bound."""
    if schema.type == "array":
        return None if schema.max_items is None else max(0, schema.max_items)
    if schema.type == "object" and schema.additional_properties is not None:
        return None if schema.max_properties is None else max(0, schema.max_properties)
    return 1


def children(schema: JSONSchemaProps, path: str) -> Iterator[tuple[str, JSONSchemaProps, str]]:
    """What is declared below, each with its place and what it is there."""
    for name, inner in sorted(schema.properties.items()):
        yield f"{path}.properties[{name}]", inner, _FIELD
    if isinstance(schema.additional_properties, JSONSchemaProps):
        yield f"{path}.additionalProperties", schema.additional_properties, _FIELD
    if schema.items is not None:
        yield f"{path}.items", schema.items, _ITEM


def junctors(schema: JSONSchemaProps, path: str) -> Iterator[tuple[str, JSONSchemaProps]]:
    for name, several in (("allOf", schema.all_of), ("anyOf", schema.any_of), ("oneOf", schema.one_of)):
        yield from ((f"{path}.{name}[{index}]", inner) for index, inner in enumerate(several))
    if schema.not_ is not None:
        yield f"{path}.not", schema.not_


def _structural(schema: JSONSchemaProps, path: str, place: str) -> Iterator[FieldError]:
    spend(5)
    for where, inner, what in children(schema, path):
        yield from _structural(inner, where, what)
    if schema.type == "array" and schema.items is None:
        yield required(f"{path}.items", "must be specified")
    yield from _type(schema, path, place)
    yield from _embedded(schema, path)
    if schema.properties and schema.additional_properties is not None:
        text = "additionalProperties and properties are mutual exclusive"
        yield forbidden(f"{path}.additionalProperties", text)
    for where, junctor in junctors(schema, path):
        yield from _narrowing(junctor, schema, where)


def _type(schema: JSONSchemaProps, path: str, place: str) -> Iterator[FieldError]:
    if schema.int_or_string:
        if schema.type:
            text = "must be empty if x-kubernetes-int-or-string is true"
            yield invalid(f"{path}.type", schema.type, text)
        if place == _ROOT:
            yield forbidden(f"{path}.x-kubernetes-int-or-string", "must be false at the root")
    elif not schema.type and (place == _ROOT or not schema.preserve_unknown_fields):
        yield required(f"{path}.type", f"must not be empty {place}")
    elif place == _ROOT and schema.type != "object":
        yield invalid(f"{path}.type", schema.type, "must be object at the root")
    if schema.nullable and place == _ROOT:
        yield forbidden(f"{path}.nullable", "nullable cannot be true at the root")
    if schema.preserve_unknown_fields is False:
        text = "must be true or undefined"
        yield invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, text)
    elif schema.preserve_unknown_fields and schema.type not in ("object", "array", ""):
        text = "must be object if x-kubernetes-preserve-unknown-fields is true"
        yield invalid(f"{path}.type", schema.type, text)


def _embedded(schema: JSONSchemaProps, path: str) -> Iterator[FieldError]:
    if not schema.embedded_resource:
        return
    if schema.type != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(f"{path}.type", schema.type, text) if schema.type else required(f"{path}.type", text)
    if not schema.properties and not schema.preserve_unknown_fields:
        without = "x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        yield required(f"{path}.properties", f"must not be empty if {without}")


def _narrowing(schema: JSONSchemaProps, outer: JSONSchemaProps, path: str) -> Iterator[FieldError]:
    """What stands under a junctor has to name fields that are declared outside of it, and must not declare anything."""
    for name, given in (
        ("type", "" if outer.int_or_string else schema.type),
        ("additionalProperties", schema.additional_properties),
        ("default", schema.default),
        ("title", schema.title),
        ("description", schema.description),
        ("nullable", schema.nullable),
        ("x-kubernetes-preserve-unknown-fields", schema.preserve_unknown_fields),
        ("x-kubernetes-embedded-resource", schema.embedded_resource),
        ("x-kubernetes-int-or-string", schema.int_or_string),
        ("x-kubernetes-list-type", schema.list_type),
        ("x-kubernetes-map-type", schema.map_type),
        ("x-kubernetes-validations", schema.validations),
    ):
        if given not in (None, "", False, ()):
            yield forbidden(f"{path}.{name}", "must be empty to be structural")
    for name, inner in sorted(schema.properties.items()):
        where, declared = f"{path}.properties[{name}]", outer.properties.get(name)
        if declared is None and not outer.preserve_unknown_fields:
            yield required(where.replace(path, _outside(path), 1), f"because it is defined in {where}")
        else:
            yield from _narrowing(inner, declared or JSONSchemaProps(preserve_unknown_fields=True), where)
    if schema.items is not None:
        if outer.items is None:
            yield required(f"{_outside(path)}.items", f"because it is defined in {path}.items")
        else:
            yield from _narrowing(schema.items, outer.items, f"{path}.items")
    for where, junctor in junctors(schema, path):
        yield from _narrowing(junctor, outer, where)


def _outside(path: str) -> str:
    """The place of the schema that a junctor belongs to."""
    return re.sub(r"\.(?:(?:allOf|anyOf|oneOf)\[\d+\]|not)", "", path)


def _node(schema: JSONSchemaProps, path: str) -> Iterator[FieldError]:
    """Each node by itself."""
    spend(5)
    if schema.type and schema.type not in TYPES:
        yield unsupported(f"{path}.type", schema.type, TYPES)
    yield from _forbidden(schema, path)
    if schema.pattern and (problem := _pattern_problem(schema.pattern)):
        yield invalid(f"{path}.pattern", schema.pattern, f"must be a valid regular expression, but isn't: {problem}")
    yield from _merging(schema, path)
    if schema.default is not None:
        yield from _default(schema, f"{path}.default")
    for index, rule in enumerate(schema.validations):
        yield from form_errors(schema, rule, f"{path}.x-kubernetes-validations[{index}]")
    for where, inner, _ in children(schema, path):
        yield from _node(inner, where)
    for where, junctor in junctors(schema, path):
        yield from _node(junctor, where)


def _forbidden(schema: JSONSchemaProps, path: str) -> Iterator[FieldError]:
    for name, given in (
        ("$ref", schema.ref),
        ("$schema", schema.schema),
        ("id", schema.id),
        ("definitions", schema.definitions),
        ("dependencies", schema.dependencies),
        ("patternProperties", schema.pattern_properties),
        ("additionalItems", schema.additional_items),
    ):
        if given:
            yield forbidden(f"{path}.{name}", f"{name} is not supported")
    if schema.unique_items:
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", text)
    if schema.additional_properties is False:
        yield forbidden(f"{path}.additionalProperties", "additionalProperties cannot be set to false")


def _pattern_problem(pattern: str) -> str:
    try:
        compiled(pattern)
    except ValueError as error:
        return str(error)
    return ""


def _merging(schema: JSONSchemaProps, path: str) -> Iterator[FieldError]:  # noqa: C901  (upstream's list of rules)
    keys_at = f"{path}.x-kubernetes-list-map-keys"
    if schema.list_type is not None:
        if schema.type != "array":
            text = "must be array if x-kubernetes-list-type is specified"
            yield invalid(f"{path}.type", schema.type, text) if schema.type else required(f"{path}.type", text)
        if schema.list_type not in _LIST_TYPES:
            yield unsupported(f"{path}.x-kubernetes-list-type", schema.list_type, _LIST_TYPES)
    if schema.map_type is not None:
        if schema.type != "object":
            text = "must be object if x-kubernetes-map-type is specified"
            yield invalid(f"{path}.type", schema.type, text) if schema.type else required(f"{path}.type", text)
        if schema.map_type not in _MAP_TYPES:
            yield unsupported(f"{path}.x-kubernetes-map-type", schema.map_type, _MAP_TYPES)
    if schema.list_map_keys and schema.list_type != "map":
        text = "must be map if x-kubernetes-list-map-keys is non-empty"
        place = f"{path}.x-kubernetes-list-type"
        yield invalid(place, schema.list_type, text) if schema.list_type else required(place, text)
    items = schema.items
    if schema.list_type == "map":
        if not schema.list_map_keys:
            yield required(keys_at, "must not be empty if x-kubernetes-list-type is map")
        if items is not None:
            yield from _keys(schema, items, path)
    if schema.list_type == "set" and items is not None and items.type in ("array", "object"):
        atomic = items.map_type == "atomic" if items.type == "object" else items.list_type in (None, "atomic")
        if not atomic:
            text = "must be atomic as item of a list with x-kubernetes-list-type=set"
            name = "x-kubernetes-map-type" if items.type == "object" else "x-kubernetes-list-type"
            yield required(f"{path}.items.{name}", text)


def _keys(schema: JSONSchemaProps, items: JSONSchemaProps, path: str) -> Iterator[FieldError]:
    if items.type != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid(f"{path}.items.type", items.type, text)
        return
    for index, key in enumerate(schema.list_map_keys):
        declared = items.properties.get(key)
        where = f"{path}.items.properties[{key}]"
        if declared is None:
            text = "entries must all be names of item properties"
            yield invalid(f"{path}.x-kubernetes-list-map-keys[{index}]", key, text)
            continue
        if declared.type in ("array", "object"):
            text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid(f"{where}.type", declared.type, text)
        if key not in items.required and declared.default is None:
            text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            yield required(f"{where}.default", text)


def _default(schema: JSONSchemaProps, path: str) -> Iterator[FieldError]:
    dropped: list[str] = []
    spend(len(msgspec.json.encode(schema.default)) // 8)  # a value that is filled in, pruned and checked takes 3 µs
    try:
        filled = fill(schema.default, schema)
    except TooMuch as error:
        yield invalid(path, "", str(error))
        return
    holder = JSONSchemaProps(type="object", properties={"default": schema})
    prune({"default": filled}, holder, dropped)
    for field in dropped:
        yield invalid(path, schema.default, f"must not have unknown fields: {field.removeprefix('default.')}")
    yield from value_errors(filled, schema, path)
    yield from list_errors(filled, schema, path)
