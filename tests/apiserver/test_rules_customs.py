"""Custom resources that are wrong in more than one way; none of these requests is recorded.

Known from upstream's code: `customResourceStrategy.Validate`, `structurallisttype.ValidateListSetsAndMaps`,
`schemaobjectmeta.Validate`. Errors about several members come in the order of their names, where upstream has none.
"""

from typing import Any

import pytest

from support.rules import NAMESPACE, asked, made
from support.server import Server

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PATH = f"/apis/rules.example.com/v1/namespaces/{NAMESPACE}/parts"
TEXT: dict[str, Any] = {"type": "string"}
KEYED = {"type": "object", "required": ["k"], "properties": {"k": TEXT, "v": TEXT}}
SPEC = {
    "type": "object",
    "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
        "map": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "maxItems": 3,
            "items": KEYED,
        },
        "mode": {"type": "string", "enum": ["a", "b"]},
        "inner": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
    },
}
DEFINITION = {
    "metadata": {"name": "parts.rules.example.com"},
    "spec": {
        "group": "rules.example.com",
        "scope": "Namespaced",
        "names": {"plural": "parts", "singular": "part", "kind": "Part", "listKind": "PartList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC}}},
            }
        ],
    },
}
NO_FINALIZER = "name is neither a standard finalizer name nor is it fully qualified"
NO_LABEL = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def _type(path: str, given: str, wanted: str) -> str:
    return f'{path}: Invalid value: "{given}": {path} in body must be of type {wanted}: "{given}"'


@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        (
            {"map": [{"k": "a"}, 2, "x"]},
            [
                _type("spec.map[1]", "integer", "object"),
                _type("spec.map[2]", "string", "object"),
                "spec.map[1]: Invalid value: 2: must be an object for an array of list-type map",
            ],
        ),
        (
            {"map": [None, {"k": "a"}, None]},
            [
                _type("spec.map[0]", "null", "object"),
                _type("spec.map[2]", "null", "object"),
                "spec.map[2]: Duplicate value: {}",
            ],
        ),
        (
            {"map": [{"k": 1}, {"k": 1}]},
            [
                _type("spec.map[0].k", "integer", "string"),
                _type("spec.map[1].k", "integer", "string"),
                'spec.map[1]: Duplicate value: {"k":1}',
            ],
        ),
        (
            {"set": [1, "a", 1]},
            [
                _type("spec.set[0]", "integer", "string"),
                _type("spec.set[2]", "integer", "string"),
                "spec.set[2]: Duplicate value: 1",
            ],
        ),
        (
            {"mode": 5, "set": "a", "map": {}},
            [
                _type("spec.map", "object", "array"),
                _type("spec.mode", "integer", "string"),
                'spec.mode: Unsupported value: 5: supported values: "a", "b"',
                _type("spec.set", "string", "array"),
            ],
        ),
        ({"inner": {}}, [f"spec.inner.{name}: Required value: must not be empty" for name in ("apiVersion", "kind")]),
        (
            {"inner": {"apiVersion": "a/b/c", "kind": "", "metadata": {"labels": {"a": "-"}, "finalizers": ["x"]}}},
            [
                'spec.inner.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
                'spec.inner.kind: Invalid value: "": must not be empty',
                f'spec.inner.metadata.labels: Invalid value: "-": {NO_LABEL}',
                f'spec.inner.metadata.finalizers[0]: Invalid value: "x": {NO_FINALIZER}',
            ],
        ),
        ({"inner": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "A"}}}, []),
    ],
)
async def test_everything_wrong_is_said(server: Server, spec: dict[str, Any], wrong: list[str]) -> None:
    await server.namespace(NAMESPACE, certificate=False)
    await made(server, DEFINITIONS, DEFINITION)
    answer = await asked(
        server,
        "POST",
        PATH,
        {"apiVersion": "rules.example.com/v1", "kind": "Part", "metadata": {"name": "p"}, "spec": spec},
    )
    assert answer.code == (422 if wrong else 201), answer.message
    said = [f"{cause['field']}: {cause['message']}" for cause in (answer.body.get("details") or {}).get("causes", ())]
    assert said == wrong
