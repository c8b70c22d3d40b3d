"""What a request can carry that is just under, just over or far over a bound of docs/bounds.md.

A `Payload` says what it exceeds, which requests it can be part of, and makes its part anew for each size.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from podfit.apiserver.request.documents import DEEPEST, MOST_BUILT_IN
from podfit.apiserver.request.protobuf.wire import MOST_FIELDS
from podfit.core.selectors import MOST_TERMS

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
JSON_PATCH, MERGE = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
MOST_BODY, MOST_TARGET, MOST_PARAMETERS = 3 << 20, 64 << 10, 10_000
FACTORS = (0.5, 0.97, 1.03, 3.0)

Sized = Callable[[dict[str, Any], float], bytes]
"""The body, from a small object and a factor of the bound."""


class Payload(NamedTuple):
    bound: str
    query: Callable[[float], str] = lambda _: ""
    headers: Callable[[float], Mapping[str, str]] = lambda _: {}
    body: Sized | None = None
    kind: str = JSON


def _noted(values: Callable[[float], Any], *path: str) -> Sized:
    """The object with something in it, below a path of members."""

    def body(small: dict[str, Any], factor: float) -> bytes:
        made = json.loads(json.dumps(small))
        inner = made
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = values(factor)
        return json.dumps(made).encode()

    return body


def _keys(count: float) -> dict[str, str]:
    return {f"k{number}": "" for number in range(int(count))}


def _nested(levels: int) -> bytes:
    return b'{"metadata":{"name":"target"},"spec":' + b'{"a":[' * (levels // 2) + b"]}" * (levels // 2) + b"}"


def _yaml(text: Callable[[float], str]) -> Sized:
    """Behind the small object, which is YAML as it is."""
    return lambda small, factor: b"".join(
        (*(f"{name}: {json.dumps(value)}\n".encode() for name, value in small.items()), text(factor).encode())
    )


def _aliases(factor: float) -> str:
    levels = int(6 * factor) + 1
    lines = ["x0: &x0 [" + ",".join(["a"] * 9) + "]"]
    lines += [f"x{level}: &x{level} [" + ",".join([f"*x{level - 1}"] * 9) + "]" for level in range(1, levels)]
    return "\n".join(lines) + "\n"


def _operations(make: Callable[[float], list[dict[str, Any]]]) -> Sized:
    return lambda _, factor: json.dumps(make(factor)).encode()


def _insertions(factor: float) -> list[dict[str, Any]]:
    start = [{"op": "add", "path": "/metadata/finalizers", "value": ["a.b/c"] * int(4_000 * factor)}]
    return start + [{"op": "add", "path": "/metadata/finalizers/0", "value": "a.b/d"}] * int(9_000 * min(factor, 1))


def _copies(factor: float) -> list[dict[str, Any]]:
    start = [{"op": "add", "path": "/metadata/annotations", "value": {"a": "x" * 1000}}]
    rounds = range(int(20 * factor))
    return start + [
        {"op": "copy", "from": "/metadata/annotations", "path": f"/metadata/annotations/{n}"} for n in rounds
    ]


def _protobuf(_: dict[str, Any], factor: float) -> bytes:
    """Lengths within lengths that promise more than there is."""
    return b"k8s\x00" + b"\x0a\xff\xff\x7f" * int(200_000 * factor)


def _protobuf_fields(_: dict[str, Any], factor: float) -> bytes:
    """Of two bytes each, which no kind has, in the envelope."""
    return b"k8s\x00" + b"\x78\x00" * int(MOST_FIELDS * factor)


def _variables(factor: float) -> list[dict[str, Any]]:
    """Each twice the one before: 2^40 letters where nobody counts."""
    doubled = [{"name": f"V{n}", "value": f"$(V{n - 1})$(V{n - 1})"} for n in range(1, int(40 * factor))]
    return [{"name": "c", "image": "x", "env": [{"name": "V0", "value": "x" * 1000}, *doubled]}]


def _schema(factor: float) -> dict[str, Any]:
    rule = "self.all(x, " * int(20 * factor) + "true" + ")" * int(20 * factor)
    properties = {
        "rule": {"type": "string", "x-kubernetes-validations": [{"rule": rule}]},
        "long": {"type": "string", "x-kubernetes-validations": [{"rule": "self == '" + "a" * int(1e5 * factor) + "'"}]},
        "many": {"anyOf": [{"type": "string", "pattern": f"^a{{{n}}}$"} for n in range(int(900 * factor))]},
        "default": {"type": "string", "default": "x" * int((1 << 20) * min(factor, 1.1))},
        "multiple": {"type": "number", "multipleOf": 1e-308},
    }
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    return {
        "group": "attack.io",
        "scope": "Namespaced",
        "names": {"plural": "targets", "kind": "Target"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
    }


def _selector(factor: float) -> str:
    return "labelSelector=a+in+(" + ",".join(f"v{n}" for n in range(int(MOST_TERMS * factor))) + ")"


QUERIES = (
    Payload("request target", query=lambda factor: "x=" + "a" * int(MOST_TARGET * factor)),
    Payload("query parameters", query=lambda factor: "&".join(["a"] * int(MOST_PARAMETERS * factor))),
    Payload("label selector", query=_selector),
    Payload(
        "field selector",
        query=lambda factor: "fieldSelector=" + ",".join(["metadata.name!%3Da"] * int(MOST_TERMS * factor)),
    ),
    Payload(
        "numbers in a query",
        query=lambda factor: "&".join(
            f"{name}={int(2**63 * factor)}"
            for name in ("limit", "timeoutSeconds", "tailLines", "sinceSeconds", "limitBytes", "gracePeriodSeconds")
        ),
    ),
    Payload("digits of a number in a query", query=lambda factor: "resourceVersion=" + "9" * int(20_000 * factor)),
    Payload("continue token", query=lambda factor: "limit=1&continue=" + "A" * int(30_000 * factor)),
    Payload("headers", headers=lambda factor: {f"X-{n}": "a" * int(2_000 * factor) for n in range(110)}),
    Payload(
        "Accept", headers=lambda factor: {"Accept": ",".join(["application/json;as=Table;v=v9"] * int(900 * factor))}
    ),
    Payload(
        "warnings", query=lambda factor: "&".join(f"fieldValidation=Warn&dryRun={n}" for n in range(int(900 * factor)))
    ),
)
"""Of any request."""
BODIES = (
    Payload("values", body=_noted(lambda factor: _keys(MOST_BUILT_IN * factor), "metadata", "annotations")),
    Payload("values of a list", body=_noted(lambda factor: [{}] * int(MOST_BUILT_IN * factor), "spec", "volumes")),
    Payload(
        "body", body=_noted(lambda factor: "x" * int(MOST_BODY * min(factor, 1.2)), "metadata", "annotations", "a")
    ),
    Payload("levels", body=lambda _, factor: _nested(int(DEEPEST * factor if factor < 2 else 100_000))),
    Payload(
        "managed fields",
        body=_noted(
            lambda factor: [
                {
                    "manager": f"m{n}",
                    "operation": "Update",
                    "apiVersion": "v1",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:a": {}},
                }
                for n in range(int(1_500 * factor))
            ],
            "metadata",
            "managedFields",
        ),
    ),
    Payload(
        "finalizers",
        body=_noted(lambda factor: [f"a.b/{n}" for n in range(int(4_000 * factor))], "metadata", "finalizers"),
    ),
    Payload("names", body=_noted(lambda factor: "a-" * int(100_000 * factor), "metadata", "name")),
    Payload("labels", body=_noted(lambda factor: {"a." * int(50_000 * factor): "b." * 50_000}, "metadata", "labels")),
    Payload(
        "quantities",
        body=_noted(
            lambda factor: [
                {
                    "name": f"c{n}",
                    "image": "x",
                    "resources": {"limits": {"cpu": "9" * int(4_300 * factor), "memory": f"1e{int(99_999 * factor)}"}},
                }
                for n in range(50)
            ],
            "spec",
            "containers",
        ),
    ),
    Payload("expansion", body=_noted(_variables, "spec", "containers")),
    Payload("definition", body=_noted(_schema, "spec")),
    Payload("PEM", body=_noted(lambda factor: "LS0tLS1CRUdJTiAt" * int(40_000 * factor), "spec", "request")),
    Payload(
        "rules",
        body=_noted(
            lambda factor: [
                {"verbs": ["get"], "apiGroups": [f"g{n}"], "resources": ["*"]} for n in range(int(1_500 * factor))
            ],
            "rules",
        ),
    ),
    Payload(
        "YAML keys",
        body=_yaml(lambda factor: "data:\n" + "".join(f"  k{n}: x\n" for n in range(int(MOST_BUILT_IN * factor)))),
        kind=YAML,
    ),
    Payload("YAML aliases", body=_yaml(_aliases), kind=YAML),
    Payload("YAML numbers", body=_yaml(lambda factor: "data: {a: 1" + ":59" * int(60_000 * factor) + "}"), kind=YAML),
    Payload("protobuf", body=_protobuf, kind=PROTOBUF),
    Payload("protobuf fields", body=_protobuf_fields, kind=PROTOBUF),
)
"""Of what makes or replaces something."""
PATCHES = (
    Payload("values of a patch", body=_noted(lambda factor: _keys(MOST_BUILT_IN * factor), "data"), kind=MERGE),
    Payload("levels of a patch", body=lambda _, factor: _nested(int(DEEPEST * factor)), kind=MERGE),
    Payload(
        "operations",
        body=_operations(
            lambda factor: [{"op": "test", "path": "/metadata/name", "value": "target"}] * int(10_000 * factor)
        ),
        kind=JSON_PATCH,
    ),
    Payload("copies", body=_operations(_copies), kind=JSON_PATCH),
    Payload("insertions", body=_operations(_insertions), kind=JSON_PATCH),
    Payload(
        "parts of a pointer",
        body=_operations(lambda factor: [{"op": "add", "path": "/a" * int(100 * factor), "value": 1}] * 500),
        kind=JSON_PATCH,
    ),
    Payload(
        "merged lists",
        body=_noted(lambda factor: [f"a.b/{n}" for n in range(int(4_000 * factor))], "metadata", "finalizers"),
        kind=STRATEGIC,
    ),
    Payload(
        "taken out of lists",
        body=_noted(
            lambda factor: [f"a.b/{n}" for n in range(int(4_000 * factor))],
            "metadata",
            "$deleteFromPrimitiveList/finalizers",
        ),
        kind=STRATEGIC,
    ),
    Payload(
        "order of lists",
        body=_noted(
            lambda factor: [{"name": f"c{n}"} for n in range(int(4_000 * factor))],
            "spec",
            "$setElementOrder/containers",
        ),
        kind=STRATEGIC,
    ),
    Payload("applied keys", body=_noted(lambda factor: _keys(MOST_BUILT_IN * factor), "data"), kind=APPLY),
    Payload(
        "applied YAML",
        body=_yaml(lambda factor: "data:\n" + "".join(f"  k{n}: x\n" for n in range(int(MOST_BUILT_IN * factor)))),
        kind=APPLY,
    ),
    Payload("applied aliases", body=_yaml(_aliases), kind=APPLY),
)
"""Of what changes something."""


def payloads(verb: str) -> tuple[Payload, ...]:
    """What a request of this verb can carry."""
    if verb == "patch":
        return QUERIES + PATCHES
    return QUERIES + BODIES if verb in ("create", "update") else QUERIES
