"""Patches, with inputs that are in no recording.

Known from upstream's code: `strategicpatch.mergeMap` and what it calls (as of 1.36), json-patch v4, `patchResource`
and `interpretStrategicMergePatchError`. Where upstream answers 500 to a patch that makes no sense, 400 is expected.
"""

from typing import Any

import pytest

from podfit.apiserver.request.decoder_messages import SCHEME
from support.rules import CONFIGMAPS, DEPLOYMENTS, NAMESPACE, PODS, Answer, asked, configmap, deployment, made, pod
from support.server import Server

STRATEGIC, MERGE, OPERATIONS = (
    f"application/{kind}+json" for kind in ("strategic-merge-patch", "merge-patch", "json-patch")
)
CONTAINERS = (
    {
        "name": "c",
        "image": "i",
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "args": ["a"],
        "ports": [{"containerPort": 80}],
    },
    {"name": "e", "image": "j"},
)


async def _patched(server: Server, patch: Any, *, kind: str = STRATEGIC, of: str = "deployment") -> Answer:
    await server.namespace(NAMESPACE, certificate=False)
    workload = deployment("d", *CONTAINERS)
    workload["spec"]["template"]["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
    await made(server, DEPLOYMENTS, workload)
    await made(server, CONFIGMAPS, configmap("a", data={"a": "1"}, labels={"x": "1"}, finalizers=["x.y/1", "x.y/2"]))
    path = f"{DEPLOYMENTS}/d" if of == "deployment" else f"{CONFIGMAPS}/a"
    return await asked(server, "PATCH", path, patch, content_type=kind)


_NO_KIND = "couldn't get version/kind; json parse error: json: cannot unmarshal"


def _of_pod(**spec: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": spec}}}


def _of_containers(*containers: Any) -> dict[str, Any]:
    return _of_pod(containers=list(containers))


NEW = {"name": "n", "image": "n"}


@pytest.mark.parametrize(
    ("patch", "names"),
    [
        (_of_containers(NEW), "nce"),
        (_of_containers({"name": "e", "image": "x"}, NEW), "cen"),
        (_of_containers({"$patch": "replace"}, NEW), "n"),
        (_of_containers(NEW, {"name": "z", "$patch": "replace"}), "n"),
        (_of_containers({"$patch": "delete", "name": "z"}), "ce"),
        (_of_containers({"$patch": "delete", "name": "c"}, {"name": "c", "image": "x"}), "ce"),
        (_of_pod(**{"$setElementOrder/containers": [{"name": "e"}, {"name": "c"}]}), "ec"),
        (_of_pod(**{"$setElementOrder/containers": [{"name": "z"}, {"name": "e"}, {"name": "c"}]}), "ec"),
        (_of_pod(**{"$setElementOrder/containers": [{"name": "n"}, {"name": "e"}], "containers": [NEW]}), "nce"),
        (_of_pod(**{"$setElementOrder/containers": []}), "ce"),
        (_of_containers(), "ce"),
        (_of_containers(NEW, {"name": "n", "image": "m"}), "nce"),
        ({"spec": {"$patch": None, "replicas": 2}}, ""),
    ],
)
async def test_containers(server: Server, patch: dict[str, Any], names: str) -> None:
    answer = await _patched(server, patch)
    if not names:
        assert answer.code == 400
        return
    assert answer.code == 200, answer.message
    found = [container["name"] for container in answer.body["spec"]["template"]["spec"]["containers"]]
    assert found == list(names)


@pytest.mark.parametrize(
    "patch",
    [
        {"$patch": "bogus"},
        {"$patch": 1},
        {"$patch": "merge"},
        {"spec": {"strategy": {"$patch": "merge"}}},
        _of_containers({"image": "q"}),
        _of_containers({"$patch": "delete"}),
        _of_containers("x"),
        _of_containers(None),
        _of_containers(["x"]),
        _of_containers({"name": "c", "$patch": "merge"}),
        _of_containers({"name": ["c"]}),
        _of_containers({"name": "c", "$patch": "bogus"}),
        _of_containers({"name": "c", "env": [{"value": "2"}]}),
        _of_containers({"name": "c", "env": ["A"]}),
        _of_containers({"name": "c", "ports": [{"hostPort": 1}]}),
        {"spec": {"$retainKeys": "replicas"}},
        {"spec": {"strategy": {"$retainKeys": [], "type": "Recreate"}}},
        {"spec": {"strategy": {"$retainKeys": ["type"], "rollingUpdate": {"maxSurge": 1}}}},
        _of_pod(**{"$setElementOrder/containers": "x"}),
        _of_pod(**{"$setElementOrder/containers": ["c"]}),
        _of_pod(**{"$setElementOrder/containers": [{"image": "c"}]}),
        _of_pod(**{"$setElementOrder/nope": []}),
        _of_pod(**{"$setElementOrder": []}),
        _of_pod(**{"$setElementOrder/containers": [{"name": "c"}], "containers": "x"}),
        _of_pod(**{"$setElementOrder/containers": [{"name": "c"}], "containers": [NEW]}),
        _of_pod(
            **{
                "$setElementOrder/containers": [{"name": "c"}, {"name": "e"}],
                "containers": [{"name": "e"}, {"name": "c"}],
            }
        ),
        {"metadata": {"$deleteFromPrimitiveList": ["x"]}},
        {"metadata": {"ownerReferences": "x", "name": "z"}},
    ],
)
async def test_strategic_patches_that_make_no_sense(server: Server, patch: dict[str, Any]) -> None:
    answer = await _patched(server, patch)
    expected = (422, "Invalid") if patch == {"metadata": {"ownerReferences": "x", "name": "z"}} else (400, "BadRequest")
    assert (answer.code, answer.reason) == expected, answer.message


@pytest.mark.parametrize("path", [PODS, f"{PODS}/p/status", f"{PODS}/p/resize", DEPLOYMENTS, f"{DEPLOYMENTS}/d/scale"])
@pytest.mark.parametrize("patch", [{"kind": "ConfigMap"}, {"apiVersion": "v2"}, {"apiVersion": "a/b/c", "kind": "X"}])
async def test_what_a_strategic_patch_calls_the_object_does_not_matter(
    server: Server, path: str, patch: dict[str, str]
) -> None:
    await server.namespace(NAMESPACE)
    await made(server, PODS, pod("p"))
    await made(server, DEPLOYMENTS, deployment("d"))
    path = {PODS: f"{PODS}/p", DEPLOYMENTS: f"{DEPLOYMENTS}/d"}.get(path, path)
    before = (await asked(server, "GET", path)).body
    answer = await asked(server, "PATCH", path, patch, content_type=STRATEGIC)
    assert (answer.code, answer.body) == (200, before)


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ({"kind": "ConfigMap"}, "converting (v1.ConfigMap) to (core.Pod): unknown conversion"),
        ({"apiVersion": "v2"}, f'no kind "Pod" is registered for version "v2" in scheme "{SCHEME}"'),
        ({"kind": 5}, f"{_NO_KIND} number into Go struct field .kind of type string"),
        ({"kind": None}, ""),
    ],
)
async def test_other_patches_have_to_call_it_what_it_is(server: Server, named: dict[str, Any], why: str) -> None:
    await server.namespace(NAMESPACE)
    await made(server, PODS, pod("p"))
    operations = [{"op": "add", "path": f"/{name}", "value": value} for name, value in named.items()]
    for kind, patch in ((MERGE, named), (OPERATIONS, operations)):
        answer = await asked(server, "PATCH", f"{PODS}/p", patch, content_type=kind)
        assert (answer.code, answer.fields) == ((422, ["patch"]) if why else (200, []))
        assert answer.message.endswith(why)


@pytest.mark.parametrize(
    ("patch", "fields"),
    [
        (_of_containers({"name": "e", "env": [{"value": "2"}]}), ["spec.template.spec.containers[1].env[0].name"]),
        (_of_containers({"name": "c", "env": "x"}), ["patch"]),
        (_of_containers({"name": "c", "args": [1]}), ["patch"]),
        (_of_pod(containers=None), ["spec.template.spec.containers"]),
        ({"spec": {"replicas": 1.5}}, ["patch"]),
        ({"spec": {"replicas": "1"}}, ["patch"]),
        ({"spec": {"paused": 1}}, ["patch"]),
        ({"spec": []}, ["patch"]),
        ({"metadata": {"labels": {"a": 1}}}, ["patch"]),
        ({"metadata": {"labels": ["a"]}}, ["patch"]),
        ({"metadata": {"uid": "z"}}, ["metadata.uid", "metadata.uid"]),
        ({"metadata": {"creationTimestamp": "x"}}, ["patch"]),
        (_of_containers({"$patch": "replace"}), ["spec.template.spec.containers"]),
    ],
)
async def test_strategic_patches_whose_outcome_is_invalid(
    server: Server, patch: dict[str, Any], fields: list[str]
) -> None:
    answer = await _patched(server, patch)
    assert (answer.code, answer.reason, answer.fields) == (422, "Invalid", fields), answer.message


@pytest.mark.parametrize(
    ("patch", "part"),
    [
        ({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.y/1", "z"]}}, {"finalizers": ["x.y/2"]}),
        ({"metadata": {"$deleteFromPrimitiveList/finalizers": "x"}}, {"finalizers": ["x.y/1", "x.y/2"]}),
        ({"metadata": {"$deleteFromPrimitiveList/finalizers": None}}, {"finalizers": None}),
        ({"metadata": {"$deleteFromPrimitiveList/ownerReferences": ["x"]}}, {"ownerReferences": None}),
        ({"metadata": {"finalizers": ["x.y/3", "x.y/3"]}}, {"finalizers": ["x.y/3", "x.y/1", "x.y/2"]}),
        ({"metadata": {"$setElementOrder/finalizers": ["x.y/2", "x.y/1"]}}, {"finalizers": ["x.y/2", "x.y/1"]}),
        ({"data": {"$patch": "replace", "z": "1"}}, {"z": "1", "a": None}),
        ({"data": {"$patch": "delete"}}, {"a": None}),
        ({"data": {"$retainKeys": ["b"], "b": "2"}}, {"a": None, "b": "2"}),
        ({"data": {"a": None}}, {"a": None}),
        ({"binaryData": {"$patch": "delete"}}, {"a": "1"}),
        ({"binaryData": {"x": None}}, {"a": "1"}),
        ({"metadata": {"annotations": {"$patch": "replace", "k": "v"}}}, {"annotations": None}),
        ({"metadata": {"labels": {"x": None, "y": "2"}}}, {"labels": {"y": "2"}}),
        ({"kind": None}, {"a": "1"}),
        ({"metadata": {"generation": 9, "selfLink": "x"}}, {"generation": None, "selfLink": None}),
    ],
)
async def test_directives_of_plain_values(server: Server, patch: dict[str, Any], part: dict[str, Any]) -> None:
    answer = await _patched(server, patch, of="configmap")
    assert answer.code == 200, answer.message
    found = answer.body["metadata"] | answer.body.get("data", {})
    assert {name: found.get(name) for name in part} == part


@pytest.mark.parametrize(
    ("patch", "code", "fields"),
    [
        ([7], 400, []),
        ([[]], 400, []),
        ("x", 400, []),
        ([None], 422, []),
        ([{}], 422, []),
        ([{"op": "test", "path": "/spec/replicas", "value": 1}], 200, []),
        ([{"op": "test", "path": "/spec/replicas", "value": 1.0}], 422, []),
        ([{"op": "test", "path": "/spec/paused", "value": None}], 200, []),
        ([{"op": "test", "path": "/spec/paused"}], 422, []),
        ([{"op": "replace", "path": "/spec/replicas", "value": 1.0}], 422, ["patch"]),
        ([{"op": "add", "path": "/spec/template/spec/containers/-1", "value": NEW}], 200, []),
        ([{"op": "add", "path": "/spec/template/spec/containers/01", "value": NEW}], 200, []),
        ([{"op": "add", "path": "/spec/template/spec/containers/3", "value": NEW}], 422, []),
        ([{"op": "add", "path": "/spec/template/spec/containers/n", "value": NEW}], 422, []),
        ([{"op": "add", "path": "", "value": {}}], 422, []),
        ([{"op": "remove", "path": ""}], 422, []),
        ([{"op": "move", "from": "/spec", "path": "/spec/x"}], 422, []),
        ([{"op": "copy", "from": "/spec/nope", "path": "/metadata/annotations"}], 200, []),
        ([{"op": "move", "from": "/spec/nope", "path": "/metadata/annotations"}], 422, []),
        (
            [
                {"op": "add", "path": "/metadata/annotations", "value": {}},
                {"op": "add", "path": "/metadata/annotations/x.y~1z", "value": "1"},
            ],
            200,
            [],
        ),
        ([{"op": "add", "path": "/metadata/annotations/x", "value": "1"}], 422, []),
        ([{"op": "replace", "path": "/metadata/name", "value": "z"}], 400, []),
        ([{"op": "remove", "path": "/metadata/name"}], 400, []),
        ([{"op": "remove", "path": "/metadata/uid"}], 200, []),
        ([{"op": "replace", "path": "/apiVersion", "value": "v1"}], 422, ["patch"]),
    ],
)
async def test_json_patches(server: Server, patch: Any, code: int, fields: list[str]) -> None:
    answer = await _patched(server, patch, kind=OPERATIONS)
    reason = {200: "", 400: "BadRequest", 422: "Invalid"}[code]
    assert (answer.code, answer.reason, answer.fields) == (code, reason, fields), answer.message


@pytest.mark.parametrize(
    ("patch", "code", "fields"),
    [
        (["x"], 400, []),
        (b"null", 400, []),
        (b"", 400, []),
        ({}, 200, []),
        ({"spec": {"replicas": 1.0}}, 422, ["patch"]),
        ({"spec": {"template": {"spec": {"containers": [NEW | {"env": None}]}}}}, 200, []),
        ({"status": None}, 200, []),
        ({"spec": {"template": {"spec": {"containers": []}}}}, 422, ["spec.template.spec.containers"]),
        ({"metadata": "x"}, 422, ["patch"]),
        ({"metadata": {"namespace": "z"}}, 400, []),
        ({"metadata": None}, 400, []),
        ({"kind": "Pod", "apiVersion": "v1"}, 422, ["patch"]),
        ({"metadata": {"resourceVersion": "1"}}, 409, []),
        ({"metadata": {"resourceVersion": None, "uid": None}}, 200, []),
        ({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}}, 422, ["metadata.deletionTimestamp"] * 2),
        ({"metadata": {"$patch": "delete"}}, 200, []),
        ({"spec": {"selector": None}}, 422, ["spec.selector", "spec.template.metadata.labels", "spec.selector"]),
    ],
)
async def test_merge_patches(server: Server, patch: Any, code: int, fields: list[str]) -> None:
    answer = await _patched(server, patch, kind=MERGE)
    reason = {200: "", 400: "BadRequest", 409: "Conflict", 422: "Invalid"}[code]
    assert (answer.code, answer.reason, answer.fields) == (code, reason, fields), answer.message
