"""Server-side apply, scales and managers of fields, with inputs of no recording.

Known from upstream's code: `applyPatcher`, `patcher.applyPatch`, `FieldManager.Apply` and `Update`,
`scaleUpdatedObjectInfo`, `autoscaling/validation.ValidateScale`, `decodeLiveOrNew`.
"""

from typing import Any

from support.rules import CONFIGMAPS, DEPLOYMENTS, NAMESPACE, asked, configmap, deployment, made
from support.server import Server

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
BASE = {"apiVersion": "v1", "kind": "ConfigMap"}
TWICE = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: '5', a: '6'}\n"
NO_OBJECT = "cannot unmarshal %s into Go value of type map[string]interface {}"


async def test_what_is_applied_to_an_object(server: Server) -> None:
    await server.namespace(NAMESPACE)
    await asked(server, "PATCH", f"{CONFIGMAPS}/a?fieldManager=m", configmap("a", data={"a": "1"}), content_type=APPLY)
    rows: list[tuple[str, Any, int, str]] = [
        ("", b"", 400, "invalid object type: /, Kind="),
        ("", b"null", 400, "invalid object type: /, Kind="),
        ("", b"{}", 400, "invalid object type: /, Kind="),
        ("", b"[]", 400, NO_OBJECT % "array"),
        ("", b"3", 400, NO_OBJECT % "number"),
        ("", b"text", 400, NO_OBJECT % "string"),
        ("", b"a: b: c", 400, "error decoding YAML: error converting YAML to JSON"),
        ("", {"apiVersion": 1, "kind": "ConfigMap"}, 400, "invalid object type: /, Kind=ConfigMap"),
        ("", {"apiVersion": "v1", "kind": ["ConfigMap"]}, 400, "invalid object type: /v1, Kind="),
        ("", BASE | {"metadata": {"name": "b", "namespace": "x"}}, 400, "the namespace of the provided object"),
        ("", BASE | {"metadata": {"name": "b"}}, 400, "the name of the object (b)"),
        ("", BASE | {"metadata": {"resourceVersion": "1"}}, 409, "has been modified"),
        ("", BASE | {"metadata": {"resourceVersion": "0"}}, 200, ""),
        ("", BASE | {"metadata": {"creationTimestamp": "2040-01-01T00:00:00Z"}}, 200, ""),
        ("", BASE | {"metadata": {"managedFields": []}}, 400, "metadata.managedFields must be nil"),
        ("", BASE | {"metadata": {"managedFields": None}}, 200, ""),
        ("", BASE | {"metadata": {"finalizers": ["x/a", "x/a"]}}, 400, 'duplicate entries for key [="x/a"]'),
        ("&fieldValidation=Strict", TWICE, 409, "conflict with"),
        ("&fieldValidation=Strict&force=true", TWICE, 400, "error strict decoding YAML"),
        ("&fieldValidation=Strict", TWICE.replace(b"a}", b"a, managedFields: []}"), 400, "must be nil"),
        ("&fieldValidation=Ignore&force=true", TWICE, 200, ""),
    ]
    for query, body, code, text in rows:
        answer = await asked(server, "PATCH", f"{CONFIGMAPS}/a?fieldManager=n{query}", body, content_type=APPLY)
        assert (answer.code, text in answer.message) == (code, True), (body, answer.message)


async def test_what_is_applied_to_nothing(server: Server) -> None:
    await server.namespace(NAMESPACE)
    rows: list[tuple[dict[str, Any], int, str]] = [
        ({}, 400, "undeterminable"),
        ({"generateName": "b"}, 400, "undeterminable"),
        ({"name": "c"}, 400, "the name of the object (c)"),
        ({"name": "c", "namespace": "x"}, 400, "namespace"),
        ({"name": "c", "uid": "1"}, 409, "uid mismatch: the provided object specified uid 1"),
        ({"name": "b", "labels": {"a b": ""}}, 422, "metadata.labels"),
        ({"name": "b", "resourceVersion": "5", "creationTimestamp": "2040-01-01T00:00:00Z"}, 201, ""),
    ]
    for query in ("&dryRun=All", ""):
        for metadata, code, text in rows:
            body = BASE | {"metadata": metadata}
            answer = await asked(server, "PATCH", f"{CONFIGMAPS}/b?fieldManager=n{query}", body, content_type=APPLY)
            assert (answer.code, text in answer.message) == (code, True), (body, answer.message)


def _scale(replicas: int, **metadata: Any) -> dict[str, Any]:
    meta = {"name": "d"} | metadata
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": meta, "spec": {"replicas": replicas}}


async def test_scales(server: Server) -> None:
    await server.namespace(NAMESPACE)
    (known,) = await made(server, DEPLOYMENTS, deployment("d"))
    mine, path = known["metadata"]["uid"], f"{DEPLOYMENTS}/d/scale"
    rows: list[tuple[str, str, Any, int, str]] = [
        ("PUT", path, _scale(2, uid=mine), 200, ""),
        ("PUT", path, _scale(2, uid="1"), 409, "StorageError: invalid object, Code: 4"),
        ("PATCH", path, _scale(2, uid="1"), 409, 'deployments/scale.apps "d": Precondition failed: UID in'),
        ("PATCH", path, {"metadata": {"uid": mine}}, 200, ""),
        ("PATCH", path, {"metadata": {"labels": {"a b": ""}}}, 422, "metadata.labels"),
        ("PATCH", path, {"metadata": {"labels": {"a b": ""}}, "spec": {"replicas": -1}}, 422, "metadata.labels"),
        ("PATCH", path, {"metadata": {"uid": "1"}, "spec": {"replicas": -1}}, 422, "spec.replicas"),
        ("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, 200, ""),
        ("PATCH", path, {"metadata": {"name": "x", "namespace": "y"}}, 400, "the namespace of the provided"),
        ("PUT", f"{DEPLOYMENTS}/absent/scale", _scale(2), 400, "the name of the object (d)"),
        ("PUT", f"{DEPLOYMENTS}/absent/scale", _scale(2, name="absent"), 404, "not found"),
        ("PUT", path, _scale(3, resourceVersion="0"), 200, ""),
        ("PUT", path, _scale(3, resourceVersion="1"), 409, "modified"),
    ]
    for method, where, body, code, text in rows:
        kind = MERGE if method == "PATCH" else "application/json"
        answer = await asked(server, method, where, body, content_type=kind)
        assert (answer.code, text in answer.message) == (code, True), (body, answer.message)


def _managers(answer: Any) -> list[tuple[str, str, Any]]:
    entries = answer.body["metadata"].get("managedFields", [])
    return [(entry["manager"], entry["operation"], entry["fieldsV1"]) for entry in entries]


async def test_a_new_object_keeps_the_managers_that_its_client_names(server: Server) -> None:
    await server.namespace(NAMESPACE)
    owned: Any = {"f:data": {"f:a": {}, "f:q": {}}}
    entry = {"manager": "z", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": owned}
    written: Any = ("w", "Update", {"f:data": {".": {}, "f:a": {}}})
    rows: list[tuple[Any, list[tuple[str, str, Any]]]] = [
        ([entry], [("z", "Apply", {"f:data": {"f:q": {}}}), written]),
        ([entry | {"operation": ""}], [written]),
        ([entry | {"fieldsType": "FieldsV2"}], [written]),
        ([{}], [written]),
        ([], [written]),
        (None, [written]),
    ]
    for given, expected in rows:
        body = configmap("x", data={"a": "b"}, managedFields=given)
        answer = await asked(server, "POST", f"{CONFIGMAPS}?fieldManager=w&dryRun=All", body)
        assert _managers(answer) == expected, given


async def test_a_manager_is_cut_at_128_bytes(server: Server) -> None:
    await server.namespace(NAMESPACE)
    answer = await server.ask("POST", CONFIGMAPS, b'{"metadata":{"name":"x"},"data":{"a":"b"}}', user_agent="é" * 100)
    assert answer.status == 201
    found = await asked(server, "GET", f"{CONFIGMAPS}/x")
    assert _managers(found)[0][0] == "é" * 64


async def test_what_a_namespace_is_finalized_with(server: Server) -> None:
    await made(server, "/api/v1/namespaces", {"metadata": {"name": "n"}})
    path = "/api/v1/namespaces/n"
    body = {"metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {"finalizers": ["x.y/z"]}}
    answer = await asked(server, "PUT", f"{path}/finalize", body)
    assert answer.body["metadata"]["labels"] == {"a": "b", "kubernetes.io/metadata.name": "n"}
    assert answer.body["spec"] == {"finalizers": ["x.y/z"]}
    for name, value in (("uid", "x"), ("resourceVersion", "1")):
        refused = await asked(server, "DELETE", path, {"preconditions": {name: value}})
        assert refused.code == 409
        assert f'namespaces "n": Precondition failed: {name[0].upper()}' in refused.message.replace("UID", "Uid")


async def test_what_is_created_by_an_update(server: Server) -> None:
    await server.namespace(NAMESPACE)
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
    rows: list[tuple[dict[str, Any], int, str]] = [
        ({"name": "l", "uid": "1"}, 409, "UID in precondition: 1, UID in object meta: "),
        ({"name": "m"}, 400, "the name of the object (m)"),
        ({"name": "l", "resourceVersion": "5"}, 201, ""),
    ]
    for metadata, code, text in rows:
        answer = await asked(server, "PUT", f"{leases}/l", {"metadata": metadata})
        assert (answer.code, text in answer.message) == (code, True), answer.message
    absent = {"metadata": {"name": "b", "uid": "1"}}
    assert (await asked(server, "PUT", f"{CONFIGMAPS}/b", absent)).code == 404


async def test_a_namespace_without_finalizers_goes_with_the_second_request(server: Server) -> None:
    path = "/api/v1/namespaces/n"
    await made(server, "/api/v1/namespaces", {"metadata": {"name": "n"}})
    await asked(server, "PUT", f"{path}/finalize", {"metadata": {"name": "n"}, "spec": {}})
    first = await asked(server, "DELETE", path)
    assert (first.code, first.body["status"]["phase"]) == (200, "Terminating")
    assert (await asked(server, "GET", path)).body["metadata"]["deletionTimestamp"]
    assert (await asked(server, "DELETE", path)).code == 200
    assert (await asked(server, "GET", path)).code == 404


async def test_a_deletion_without_warnings_has_no_header_of_them(server: Server) -> None:
    await made(server, "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})
    answer = await server.ask("DELETE", "/api/v1/namespaces/default/configmaps/a")
    assert "warning" not in answer.headers
