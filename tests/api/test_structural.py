"""Structural schemas: what is dropped, filled in and refused, and which schemas are none."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.api.apiextensions.v1.schema_validation import schema_errors
from podfit.api.apiextensions.v1.types import JSONSchemaProps
from podfit.api.meta import codec
from podfit.api.structural.defaulting import fill
from podfit.api.structural.formats import fits
from podfit.api.structural.jsonpath import PathError, find, parse
from podfit.api.structural.pruning import prune
from podfit.api.structural.values import value_errors

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "integer"}
LIST: dict[str, Any] = {"type": "array", "items": TEXT}
ONE_OF = '<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf)'


def schema(**properties: Any) -> JSONSchemaProps:
    return codec.convert({"type": "object", "properties": properties}, JSONSchemaProps)


WIDE = schema(
    a=TEXT | {"default": "x"},
    b={"type": "object", "properties": {"c": NUMBER | {"default": 1}}},
    l={"type": "array", "items": {"type": "object", "properties": {"a": TEXT | {"default": "y"}}}},
    m={"type": "object", "additionalProperties": NUMBER},
    n=TEXT | {"nullable": True},
    free={"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "object"}}},
    inner={"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}},
)
NAMES = st.sampled_from(["a", "b", "c", "l", "m", "n", "free", "inner", "spec", "metadata", "zz"])
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.just("t"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(NAMES, DOCUMENTS, max_size=6))
def test_pruning_and_filling_are_done_once(document: dict[str, Any]) -> None:
    dropped: list[str] = []
    kept = prune(document, WIDE, dropped)
    assert (kept == document) is not bool(dropped)
    again: list[str] = []
    filled = fill(kept, WIDE)
    assert (prune(filled, WIDE, again), again) == (filled, [])
    assert fill(filled, WIDE) == filled


def test_what_is_dropped_and_what_is_filled_in() -> None:
    document = {
        "kind": "K",
        "zz": 1,
        "b": {"d": 1},
        "l": [{"zz": 1}, {"a": None}],
        "m": {"k": 1},
        "n": None,
        "a": None,
        "free": {"zz": {"zz": 1}, "a": {"zz": 1}},
        "inner": {"kind": "I", "metadata": {"name": "n"}, "zz": 1},
    }
    dropped: list[str] = []
    assert fill(prune(document, WIDE, dropped), WIDE) == {
        "kind": "K",
        "b": {"c": 1},
        "l": [{"a": "y"}, {"a": "y"}],
        "m": {"k": 1},
        "n": None,
        "a": "x",
        "free": {"zz": {"zz": 1}, "a": {}},
        "inner": {"kind": "I", "metadata": {"name": "n"}},
    }
    assert sorted(dropped) == ["b.d", "free.a.zz", "inner.zz", "l[0].zz", "zz"]


@pytest.mark.parametrize(
    ("rule", "value", "text"),
    [
        (NUMBER | {"minimum": 2}, 1, "x: Invalid value: 1: x in body should be greater than or equal to 2"),
        (NUMBER | {"maximum": 2, "exclusiveMaximum": True}, 2, "x: Invalid value: 2: x in body should be less than 2"),
        (NUMBER | {"multipleOf": 3}, 4, "x: Invalid value: 4: x in body should be a multiple of 3"),
        (NUMBER, True, 'x: Invalid value: "boolean": x in body must be of type integer: "boolean"'),
        (NUMBER, None, 'x: Invalid value: "null": x in body must be of type integer: "null"'),
        (TEXT | {"minLength": 2}, "a", 'x: Invalid value: "a": x in body should be at least 2 chars long'),
        (TEXT | {"pattern": "^b+$"}, "b\n", "x: Invalid value: \"b\\n\": x in body should match '^b+$'"),
        (TEXT | {"format": "ipv4"}, "1.2.3", 'x: Invalid value: "1.2.3": x in body must be of type ipv4: "1.2.3"'),
        (LIST | {"minItems": 1}, [], "x: Invalid value: 0: x in body should have at least 1 items"),
        ({"type": "object", "maxProperties": 0}, {"a": 1}, "x: Too many: 1: must have at most 0 items"),
        (
            {"type": "object", "additionalProperties": NUMBER},
            {"k": "v"},
            'x.k: Invalid value: "string": x.k in body must be of type integer: "string"',
        ),
        (NUMBER | {"not": {"enum": [3]}}, 3, '<nil>: Invalid value: "": "x" must not validate the schema (not)'),
        (NUMBER | {"oneOf": [{"minimum": 1}, {"maximum": 5}]}, 3, f"{ONE_OF}. Found 2 valid alternatives"),
    ],
)
def test_what_is_wrong_with_a_value(rule: dict[str, Any], value: Any, text: str) -> None:
    assert [str(error) for error in value_errors({"x": value}, schema(x=rule))] == [text]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({}, "s.properties[x].type: Required value: must not be empty for specified object fields"),
        ({"type": "array"}, "s.properties[x].items: Required value: must be specified"),
        (TEXT | {"$ref": "#/y"}, "s.properties[x].$ref: Forbidden: $ref is not supported"),
        (TEXT | {"pattern": "("}, 's.properties[x].pattern: Invalid value: "(": must be a valid regular expression'),
        (NUMBER | {"default": "one"}, 's.properties[x].default: Invalid value: "string"'),
        ({"type": "object", "properties": {}, "default": {"zz": 1}}, "must not have unknown fields: zz"),
        (LIST | {"x-kubernetes-list-type": "map"}, "must not be empty if x-kubernetes-list-type is map"),
        (TEXT | {"x-kubernetes-list-type": "set"}, "must be array if x-kubernetes-list-type is specified"),
        (TEXT | {"anyOf": [{"type": "string"}]}, "[x].anyOf[0].type: Forbidden: must be empty to be structural"),
        (
            {"type": "object", "anyOf": [{"properties": {"y": {"minimum": 1}}}]},
            "[x].properties[y]: Required value: because it is defined in s.properties[x].anyOf[0].properties[y]",
        ),
        ({"type": "object", "additionalProperties": False}, "additionalProperties cannot be set to false"),
        ({"type": "array", "items": TEXT, "uniqueItems": True}, "uniqueItems cannot be set to true"),
    ],
)
def test_schemas_that_are_not_structural(rule: dict[str, Any], text: str) -> None:
    assert text in " ".join(str(error) for error in schema_errors(schema(x=rule), "s"))


DOCUMENT = {"a": {"b": [1, 2, 3]}, "c": [{"t": "x", "v": 1}, {"t": "y", "v": 2}], "d.e": 4}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a.b", [[1, 2, 3]]),
        (".a.b[0]", [1]),
        (".a.b[-1]", [3]),
        (".a.b[9]", []),
        (".a.b[1:]", [2, 3]),
        (".a.b[*]", [1, 2, 3]),
        (".c[*].t", ["x", "y"]),
        ('.c[?(@.t=="y")].v', [2]),
        (".c[?(@.v > 1)].t", ["y"]),
        (".c[?(@.t!='y')].v", [1]),
        ("..v", [1, 2]),
        (r".d\.e", [4]),
        ("['d.e']", [4]),
        (".zz", []),
        ("{.a.b[0]}", [1]),
    ],
)
def test_paths(path: str, found: list[Any]) -> None:
    assert find(DOCUMENT, path) == found


@pytest.mark.parametrize("path", ["a", ".a[", ".a[?(", ".a[x]", "", ".a b"])
def test_paths_that_cannot_be_read(path: str) -> None:
    with pytest.raises(PathError):
        parse(path)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", "2026-01-01T00:00:00.5Z", "2026-13-01T00:00:00Z"),
        ("date", "2026-02-28", "2026-02-30"),
        ("duration", "1h30m", "1y"),
        ("byte", "YQ==", "Y"),
        ("ipv6", "::1", "1.2.3.4"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "x"),
        ("hostname", "a.example.com", "-a"),
        ("unknown", "x", ""),
    ],
)
def test_formats(name: str, good: str, bad: str) -> None:
    assert fits(good, name)
    assert not bad or not fits(bad, name)
