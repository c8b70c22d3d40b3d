"""OpenAPI documents: the same schemas as upstream's for what is served, in both versions and both encodings."""

import json
import re
from typing import Any

import pytest

from podfit.api.registry import resources
from podfit.apiserver.http.openapi import v2, v3
from podfit.apiserver.http.openapi.descriptions import DESCRIPTIONS, OF_ALL
from podfit.apiserver.request.protobuf.wire import Reading, fields_of
from support.golden import cases
from support.server import Server, document

NOTES = "x-kubernetes-"
NOT_SERVED = {("ListMeta", "shardInfo")}
NOT_DESCRIBED = {
    "core.v1.PodSpec": {"resourceClaims", "schedulingGroup", "hostnameOverride"},
    "core.v1.Container": {"restartPolicyRules"},
    "core.v1.PodStatus": {
        "extendedResourceClaimStatus",
        "nodeAllocatableResourceClaimStatuses",
        "resourceClaimStatuses",
    },
    "core.v1.ContainerStatus": {"allocatedResourcesStatus", "stopSignal"},
}
FREE_FORM = {("ManagedFieldsEntry", "fieldsV1"), ("ControllerRevision", "data")}  # types of their own there
GOLDEN = {case["id"]: case["expect"].get("body") for case in cases("api/discovery.json*") if case["group"] == "openapi"}
KUBECTL = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


def _type(schema: Any) -> str:
    """`io…Pod`, `string`, or nothing where anything goes."""
    if isinstance(schema, str):
        return schema
    inner = schema["allOf"][0] if "allOf" in schema else schema
    found: str = inner.get("$ref", inner.get("type", ""))
    return found.rpartition("/")[2]


def _shown(schema: dict[str, Any]) -> dict[str, Any]:
    notes = {name: value for name, value in schema.items() if name.startswith(NOTES)}
    inner = {name: _type(schema[name]) for name in ("items", "additionalProperties") if name in schema}
    return notes | inner | {"type": _type(schema), "format": schema.get("format") if "type" in schema else None}


def _schemas(kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    if kind == "v2":
        return v2.definitions(resources()), GOLDEN["openapi-v2"]["definitions"]
    mine = json.loads(v3.document(resources(), kind)[0])["components"]["schemas"]
    return mine, GOLDEN[f"openapi-v3-{kind.replace('/', '-')}"]["schemas"]


@pytest.mark.parametrize(
    "kind",
    [
        "v2",
        "api/v1",
        "apis/apps/v1",
        "apis/autoscaling/v2",
        "apis/batch/v1",
        "apis/policy/v1",
        "apis/discovery.k8s.io/v1",
    ],
)
def test_schemas_are_those_of_upstream(kind: str) -> None:
    mine, theirs = _schemas(kind)
    compared = 0
    for name in mine.keys() & theirs.keys():
        short = name.rpartition(".")[2]
        ours, recorded = mine[name].get("properties", {}), theirs[name].get("properties", {})
        missing = {(short, key) for key in recorded.keys() - ours.keys()}
        assert missing <= NOT_SERVED
        assert not ours.keys() - recorded.keys(), name
        assert sorted(mine[name].get("required", [])) == sorted(theirs[name].get("required", [])), name
        for key in recorded.keys() & ours.keys():
            if (short, key) not in FREE_FORM and isinstance(recorded[key], dict):
                wanted = _shown(recorded[key])
                if wanted["type"] != "{continue}":
                    assert _shown(ours[key]) == wanted, f"{name}.{key}"
                compared += 1
    assert compared > (600 if kind in ("v2", "api/v1") else 20)


def test_no_schema_has_a_name_of_our_own() -> None:
    mine, theirs = _schemas("v2")
    assert not mine.keys() - theirs.keys()


async def test_kubectl_gets_version_2_in_protobuf(server: Server) -> None:
    answer = await server.ask("GET", "/openapi/v2", accept=KUBECTL)
    assert answer.headers["content-type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    top = dict(_pairs(await answer.read()))
    assert top[1] == b"2.0"
    named = [dict(_pairs(pair)) for _, pair in _pairs(top[9])]
    pod = next(dict(_pairs(definition[2])) for definition in named if definition[1] == b"io.k8s.api.core.v1.Pod")
    assert b'{"group":"","version":"v1","kind":"Pod"}' in pod[31]
    properties = {dict(_pairs(pair))[1]: dict(_pairs(dict(_pairs(pair))[2])) for _, pair in _pairs(pod[25])}
    told = DESCRIPTIONS["core.v1.Pod"]["spec"].encode()
    assert properties[b"spec"] == {1: b"#/definitions/io.k8s.api.core.v1.PodSpec", 4: told}
    assert len(named) == len(v2.definitions(resources()))


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_descriptions_are_of_fields_that_are_there(name: str) -> None:
    """And whole: no field of a kind that is described is left out, but those of alpha features."""
    group = name.partition(".")[0]
    document = json.loads(v3.document(resources(), "api/v1" if group == "core" else f"apis/{group}/v1")[0])
    schema = document["components"]["schemas"][f"io.k8s.api.{name}"]
    described = {field for field, inner in schema["properties"].items() if inner.get("description")}
    assert schema.get("description", "") == DESCRIPTIONS[name].get("", "")
    assert DESCRIPTIONS[name].keys() - {""} <= described
    assert described | NOT_DESCRIBED.get(name, set()) == schema["properties"].keys()


def test_every_object_says_what_its_standard_fields_are() -> None:
    service = v2.definitions(resources())["io.k8s.api.core.v1.Service"]["properties"]
    assert {field: service[field]["description"] for field in service} == OF_ALL


def _pairs(message: Any) -> list[tuple[int, Any]]:
    fields = fields_of(memoryview(message), Reading())
    return [(number, value if isinstance(value, int) else bytes(value)) for number, _, value in fields]


@pytest.mark.parametrize(
    ("accept", "status", "kind"),
    [
        ("", 200, "application/json"),
        ("application/json, */*", 200, "application/json"),
        ("text/html", 406, ""),
        (f"text/html, {KUBECTL}", 200, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"),
    ],
)
async def test_version_2_comes_in_the_first_form_that_is_accepted(
    server: Server, accept: str, status: int, kind: str
) -> None:
    answer = await server.ask("GET", "/openapi/v2", accept=accept)
    assert answer.status == status
    if kind:
        assert answer.headers["content-type"] == kind
        again = await server.ask("GET", "/openapi/v2", accept=accept, if_none_match=answer.headers["etag"])
        assert again.status == 304


async def test_version_2_names_the_paths_and_what_they_take(server: Server) -> None:
    paths = document(await (await server.ask("GET", "/openapi/v2")).read())["paths"]
    patch = paths["/api/v1/namespaces/{namespace}/pods/{name}/resize"]["patch"]
    recorded = GOLDEN["openapi-v2"]["paths"]["/api/v1/namespaces/{namespace}/pods/{name}/resize"]["patch"]
    for name in ("consumes", "x-kubernetes-action", "x-kubernetes-group-version-kind"):
        assert patch[name] == recorded[name]


METHODS = ("get", "post", "put", "patch", "delete")
DEFINITION = {
    "metadata": {"name": "waffles.x.example"},
    "spec": {
        "group": "x.example",
        "scope": "Namespaced",
        "names": {"plural": "waffles", "kind": "Waffle"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "anything",
                        "x-kubernetes-preserve-unknown-fields": True,
                        "properties": {"spec": {"type": "object"}},
                    }
                },
            }
        ],
    },
}


async def _documents(server: Server) -> list[dict[str, Any]]:
    """Version 2, and every document of version 3."""
    index = document(await (await server.ask("GET", "/openapi/v3")).read())["paths"]
    addresses = ["/openapi/v2", *(entry["serverRelativeURL"] for entry in index.values())]
    return [document(await (await server.ask("GET", address)).read()) for address in addresses]


async def _define(server: Server, definition: dict[str, Any]) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert (await server.ask("POST", path, json.dumps(definition).encode())).status == 201


async def test_every_variable_of_a_path_is_a_parameter(server: Server) -> None:
    await _define(server, DEFINITION)
    seen = 0
    for page in await _documents(server):
        for path, item in page["paths"].items():
            declared = [
                parameter["name"]
                for parameter in item["parameters"]
                if parameter["in"] == "path" and parameter["required"]
            ]
            assert sorted(declared) == sorted(re.findall(r"{(\w+)}", path)), path
            for method in METHODS:
                for parameter in item.get(method, {}).get("parameters", ()):
                    assert parameter["in"] == "body" or parameter.get("type") or parameter["schema"]["type"]
                    seen += 1
    assert seen > 1000


async def test_query_parameters_are_those_of_upstream(server: Server) -> None:
    paths = document(await (await server.ask("GET", "/openapi/v3/api/v1")).read())["paths"]

    def names(path: str, method: str) -> list[str]:
        return [parameter["name"] for parameter in paths[path][method]["parameters"]]

    pods, pod = "/api/v1/namespaces/{namespace}/pods", "/api/v1/namespaces/{namespace}/pods/{name}"
    assert names(pods, "get") == [
        "allowWatchBookmarks",
        "continue",
        "fieldSelector",
        "labelSelector",
        "limit",
        "resourceVersion",
        "resourceVersionMatch",
        "sendInitialEvents",
        "timeoutSeconds",
        "watch",
    ]
    assert names(pod, "patch") == ["dryRun", "fieldManager", "fieldValidation", "force"]
    assert names(pod, "delete") == [
        "dryRun",
        "gracePeriodSeconds",
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "orphanDependents",
        "propagationPolicy",
    ]
    assert names(pod, "get") == []
    assert "tailLines" in names(f"{pod}/log", "get")
    assert [parameter["name"] for parameter in paths[pod]["parameters"]] == ["name", "namespace", "pretty"]
    body = paths[pods]["post"]["requestBody"]["content"]["application/json"]
    assert body == {"schema": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Pod"}}


async def test_every_schema_that_is_referred_to_is_there(server: Server) -> None:
    await _define(server, DEFINITION)
    for page in await _documents(server):
        known = page.get("definitions") or page["components"]["schemas"]
        for name in set(re.findall(r'"\$ref":\s*"#/(?:definitions|components/schemas)/([^"]+)"', json.dumps(page))):
            assert name in known


async def test_a_resource_that_preserves_anything_is_an_object_in_version_2_and_described_in_version_3(
    server: Server,
) -> None:
    await _define(server, DEFINITION)
    two, *three = await _documents(server)
    kind = [{"group": "x.example", "version": "v1", "kind": "Waffle"}]
    assert two["definitions"]["example.x.v1.Waffle"] == {"type": "object", "x-kubernetes-group-version-kind": kind}
    (waffle,) = (found for page in three if (found := page["components"]["schemas"].get("example.x.v1.Waffle")))
    assert waffle["x-kubernetes-preserve-unknown-fields"]
    assert waffle["description"] == "anything"
    assert waffle["properties"]["metadata"]["description"] == "Standard object's metadata."
    assert all(waffle["properties"][name]["description"] for name in ("kind", "apiVersion"))


async def test_what_all_objects_have_is_described_in_version_2(server: Server) -> None:
    definition = json.loads(json.dumps(DEFINITION))
    del definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-preserve-unknown-fields"]
    await _define(server, definition)
    waffle = (await _documents(server))[0]["definitions"]["example.x.v1.Waffle"]
    assert waffle["properties"]["metadata"] == {
        "$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
        "description": "Standard object's metadata.",
    }
    assert all(waffle["properties"][name]["description"] for name in ("kind", "apiVersion"))
