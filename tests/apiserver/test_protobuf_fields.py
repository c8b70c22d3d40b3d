"""What protobuf bodies hold, by the published field numbers: lists, schemas, pods, and that no field is forgotten."""

import struct
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from podfit.api.meta.base import Struct
from podfit.api.meta.v1.types import DeleteOptions
from podfit.apiserver.request import protobuf
from podfit.apiserver.request.protobuf.layouts import bodies, published, section_of
from podfit.core.errors import ApiError
from support.protobuf import enveloped, part, varint


def refused(body: bytes) -> ApiError:
    with pytest.raises(ApiError) as caught:
        protobuf.decode(body)
    return caught.value


@pytest.mark.parametrize(
    "values", [part(3, varint(1) + varint(300)), part(3, 1) + part(3, 300)], ids=["packed", "one by one"]
)
def test_numbers_of_a_list(values: bytes) -> None:
    """Go writes them one by one and reads both, as every library has to."""
    rule = part(1, b"FailJob") + part(2, part(2, b"In") + values)
    read = protobuf.decode(enveloped("batch/v1", "Job", part(2, part(11, part(1, rule)))))
    (found,) = read["spec"]["podFailurePolicy"]["rules"]
    assert found == {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1, 300]}}


def double(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)


def definition(*schema: bytes) -> bytes:
    """A CustomResourceDefinition with this schema in its only version."""
    version = part(1, b"v1") + part(2, 1) + part(3, 1) + part(4, part(1, b"".join(schema)))
    spec = part(1, b"a.io") + part(3, part(1, b"xs") + part(4, b"X")) + part(4, b"Namespaced") + part(7, version)
    raw = part(1, part(1, b"xs.a.io")) + part(2, spec)
    return enveloped("apiextensions.k8s.io/v1", "CustomResourceDefinition", raw)


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        (
            part(5, b"object") + part(29, part(1, b"a") + part(2, part(5, b"string"))),
            {"type": "object", "properties": {"a": {"type": "string"}}},
        ),
        (part(2, b"s") + part(3, b"#/r"), {"$schema": "s", "$ref": "#/r"}),
        (double(9, 5) + double(11, -0.5) + part(13, 0), {"maximum": 5, "minimum": -0.5, "maxLength": 0}),
        (
            part(8, part(1, b'{"a":[1]}')) + part(20, part(1, b"1")) + part(20, part(1, b'"b"')),
            {"default": {"a": [1]}, "enum": [1, "b"]},
        ),
        (part(24, part(1, part(5, b"integer"))), {"items": {"type": "integer"}}),
        (part(24, part(2, part(5, b"integer")) + part(2, b"")), {"items": [{"type": "integer"}, {}]}),
        (part(30, part(1, 0)), {"additionalProperties": False}),
        (part(30, part(1, 1)), {"additionalProperties": True}),
        (part(30, part(1, 1) + part(2, part(37, 1))), {"additionalProperties": {"nullable": True}}),
        (part(32, part(1, b"k") + part(2, part(2, b"x") + part(2, b"y"))), {"dependencies": {"k": ["x", "y"]}}),
        (
            part(28, part(38, 1)) + part(42, b"map") + part(41, b"name"),
            {
                "not": {"x-kubernetes-preserve-unknown-fields": True},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
        ),
        (part(44, part(1, b"self") + part(2, b"m")), {"x-kubernetes-validations": [{"rule": "self", "message": "m"}]}),
    ],
)
def test_schemas(schema: bytes, wanted: dict[str, Any]) -> None:
    """By the numbers of apiextensions' generated.proto, which kubectl does not have in it."""
    (version,) = protobuf.decode(definition(schema))["spec"]["versions"]
    assert version == {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": wanted}}


def test_api_services() -> None:
    service = part(1, b"ns") + part(2, b"n") + part(3, 444)
    spec = part(1, service) + part(2, b"g.io") + part(3, b"v1") + part(5, b"\x00") + part(7, 100) + part(8, 15)
    read = protobuf.decode(enveloped("apiregistration.k8s.io/v1", "APIService", part(2, spec)))
    assert read["spec"] == {
        "service": {"namespace": "ns", "name": "n", "port": 444},
        "group": "g.io",
        "version": "v1",
        "caBundle": "AA==",
        "groupPriorityMinimum": 100,
        "versionPriority": 15,
    }


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_numbers_that_json_has_no_word_for(value: float) -> None:
    assert refused(definition(double(9, value))).code == 400


def test_a_schema_nested_too_deeply() -> None:
    schema = b""
    for _ in range(3000):
        schema = part(28, schema)
    error = refused(definition(schema))
    assert (error.code, "nested too deeply" in error.message) == (400, True)


@pytest.mark.row("R-020")
def test_what_resizes_a_pod() -> None:
    """Each field under its published number."""
    amounts = part(1, b"cpu") + part(2, part(1, b"100m"))
    resources = part(1, amounts) + part(2, amounts)
    policy = part(1, b"cpu") + part(2, b"NotRequired")
    container = part(1, b"c") + part(8, resources) + part(23, policy)
    ephemeral = part(1, part(1, b"e") + part(23, policy))
    times = part(3, part(1, 60)) + part(4, part(1, 0) + part(2, 0))
    words = part(5, b"Deferred") + part(6, b"m") + part(7, 3)
    condition = part(1, b"PodResizePending") + part(2, b"True") + times + words
    actual = part(1, b"c") + part(10, amounts) + part(11, resources)
    status = part(2, condition) + part(8, actual) + part(14, b"Deferred") + part(17, 3) + part(19, amounts)
    status += part(20, resources)
    spec = part(2, container) + part(34, ephemeral) + part(40, resources)
    sizes = {"limits": {"cpu": "100m"}, "requests": {"cpu": "100m"}}
    policies = [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]
    assert protobuf.decode(enveloped("v1", "Pod", part(2, spec) + part(3, status))) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {
            "containers": [{"name": "c", "resources": sizes, "resizePolicy": policies}],
            "ephemeralContainers": [{"name": "e", "resizePolicy": policies}],
            "resources": sizes,
        },
        "status": {
            "conditions": [
                {
                    "type": "PodResizePending",
                    "status": "True",
                    "lastProbeTime": "1970-01-01T00:01:00Z",
                    "lastTransitionTime": "1970-01-01T00:00:00Z",
                    "reason": "Deferred",
                    "message": "m",
                    "observedGeneration": 3,
                }
            ],
            "containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "100m"}, "resources": sizes}],
            "resize": "Deferred",
            "observedGeneration": 3,
            "allocatedResources": {"cpu": "100m"},
            "resources": sizes,
        },
    }
    node = protobuf.decode(enveloped("v1", "Node", part(3, part(14, b"F") + part(14, b"G"))))
    assert node["status"] == {"declaredFeatures": ["F", "G"]}


UNPUBLISHED = {("PodSpec", "schedulingGroup"), ("PodStatus", "nodeAllocatableResourceClaimStatuses")}
"""Alpha fields of 1.36, whose numbers are not known here."""


def _parts(hint: Any) -> Iterator[type[Struct]]:
    if isinstance(hint, type) and issubclass(hint, Struct):
        yield hint
    for arg in get_args(hint):
        yield from _parts(arg)


def _numbered(kind: type[Struct]) -> set[str]:
    section = section_of(kind)

    def names(entry: str) -> Iterator[str]:
        for name in published()[section, entry]:
            yield from names(name[1:]) if name.startswith("+") else (name,)

    return set(names(kind.__name__)) if section else set()


def test_every_field_has_a_number() -> None:
    wholes: list[type[Struct]] = [DeleteOptions, *bodies().values()]
    left = [*wholes]
    seen: set[type[Struct]] = set()
    missing = set()
    while left:
        kind = left.pop()
        if kind in seen:
            continue
        seen.add(kind)
        hints = get_type_hints(kind, include_extras=True)
        known = _numbered(kind)
        for field in msgspec.structs.fields(kind):
            if field.encode_name in known or (kind in wholes and field.name in ("kind", "api_version")):
                left.extend(_parts(hints[field.name]))
            else:
                missing.add((kind.__name__, field.encode_name))
    assert missing == UNPUBLISHED
    assert len(seen) > 390
