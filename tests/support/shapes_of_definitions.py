"""Definitions of custom resources of any size, for `support.doubling`: the worst that the validation can be given."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from podfit.api.apiextensions.v1.types import CustomResourceDefinition
from podfit.api.apiextensions.v1.validation import validate_definition
from podfit.api.meta import codec
from podfit.apiserver.request.documents import DEEPEST, MOST_VALUES
from support.shapes import Shape, Work


def _definition(version: dict[str, Any] | None = None, more: Sequence[Any] = (), **names: Any) -> Work:
    given = {
        "metadata": {"name": "as.b.io"},
        "spec": {
            "group": "b.io",
            "scope": "Namespaced",
            "names": {"plural": "as", "kind": "A", "singular": "a", "listKind": "AList", **names},
            "versions": more or [{"name": "v1", "served": True, "storage": True, **(version or {})}],
        },
    }
    definition = codec.convert(given, CustomResourceDefinition)
    return lambda: validate_definition(definition)


def _schema(inner: Callable[[int], Any]) -> Callable[[int], Work]:
    """Of the field `spec`."""
    return lambda size: _definition(
        {"schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": inner(size)}}}}
    )


def _deep(size: int) -> Any:
    made: dict[str, Any] = {"type": "string"}
    for _ in range(min(size, DEEPEST // 2 - 6)):
        made = {"type": "object", "properties": {"a": made}}
    return made


def wide(size: int) -> Any:
    return {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(size // 2)}}


def _narrowed(size: int) -> Any:
    """One level of `allOf` below the other would be bounded by the depth of a document."""
    made: dict[str, Any] = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(size // 8)}}
    return made | {"allOf": [{"properties": {f"p{n}": {"minLength": 1}}} for n in range(size // 8)]}


def _listed(size: int) -> Any:
    return {"type": "string", "enum": [f"e{n}" for n in range(size)], "default": "x"}


def _filled(size: int) -> Any:
    value = [{"a": "b"} for _ in range(size // 3)]
    item = {"type": "object", "properties": {"a": {"type": "string"}}}
    return {"type": "array", "items": item, "default": value}


def _keyed(size: int) -> Any:
    keys = [f"k{n}" for n in range(size // 4)]
    item = {"type": "object", "required": keys, "properties": {key: {"type": "string"} for key in keys}}
    return {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}


def _patterns(size: int) -> Any:
    return {
        "type": "object",
        "properties": {f"p{n}": {"type": "string", "pattern": f"^a{n}b*$"} for n in range(size // 3)},
    }


def _columns(size: int) -> Work:
    columns = [{"name": f"c{n}", "type": "string", "jsonPath": f".spec.a{n}"} for n in range(size // 4)]
    return _definition({"additionalPrinterColumns": columns})


def _versions(size: int) -> Work:
    given = {"served": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    return _definition(more=[{"name": f"v{n}", "storage": not n, **given} for n in range(size // 6)])


def _selected(size: int) -> Work:
    return _definition({"selectableFields": [{"jsonPath": ".spec" * 9 + f".a{n}"} for n in range(size)]})


def _rules(size: int) -> Any:
    rules = [{"rule": f"self.size() < {n}", "message": "no"} for n in range(size // 3)]
    return {"type": "string", "maxLength": 10, "x-kubernetes-validations": rules}


DEFINITIONS: Mapping[str, tuple[Shape, ...]] = {
    "api.apiextensions.v1.validation:validate_definition": (
        Shape("levels", DEEPEST, _schema(_deep)),
        Shape("properties", MOST_VALUES, _schema(wide)),
        Shape("rules", MOST_VALUES, _schema(_rules)),
        Shape("allOf", MOST_VALUES, _schema(_narrowed)),
        Shape("enum", MOST_VALUES, _schema(_listed)),
        Shape("a default", MOST_VALUES, _schema(_filled)),
        Shape("keys of a list", MOST_VALUES, _schema(_keyed)),
        Shape("patterns", MOST_VALUES, _schema(_patterns)),
        Shape("columns", MOST_VALUES, _columns),
        Shape("versions", MOST_VALUES, _versions),
        Shape("selectable fields", MOST_VALUES, _selected),
        Shape("categories", MOST_VALUES, lambda size: _definition(categories=[f"c{n}" for n in range(size)])),
    )
}
