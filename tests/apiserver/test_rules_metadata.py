"""Metadata of writes: what a client may say of it, what is dropped, and what is refused, with inputs of no recording.

Known from upstream's code: `rest.BeforeCreate`, `rest.BeforeUpdate`, `registry.Store.Create` and `Update`,
`ValidateObjectMeta` and its kin, `dedupOwnerReferences`, `names.SimpleNameGenerator`.
"""

import json
from typing import Any

import msgspec
import pytest

from support.rules import CONFIGMAPS, NAMESPACE, asked, configmap, made
from support.server import Server, document

MERGE = "application/merge-patch+json"
GRACE = "metadata.deletionGracePeriodSeconds"
LATER = "2040-01-01T00:00:00Z"
ROLES = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles"
BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "wheels.rules.example.com"},
    "spec": {
        "group": "rules.example.com",
        "scope": "Namespaced",
        "names": {"plural": "wheels", "singular": "wheel", "kind": "Wheel", "listKind": "WheelList"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}
WHEELS = f"/apis/rules.example.com/v1/namespaces/{NAMESPACE}/wheels"


async def _begin(server: Server) -> None:
    await server.namespace(NAMESPACE)
    await made(server, CONFIGMAPS, configmap("a", data={"a": "1"}))
    await made(server, CONFIGMAPS, configmap("going", finalizers=["x.y/z"]))
    assert (await asked(server, "DELETE", f"{CONFIGMAPS}/going")).code == 200


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize(
    ("name", "metadata", "code", "field"),
    [
        ("a", {"creationTimestamp": LATER}, 200, ""),
        ("a", {"generation": 7, "selfLink": "/x"}, 200, ""),
        ("a", {"generation": -7}, 200, ""),
        ("a", {"uid": ""}, 200, ""),
        ("a", {"deletionTimestamp": LATER}, 422, "metadata.deletionTimestamp"),
        ("a", {"deletionGracePeriodSeconds": 3}, 422, GRACE),
        ("a", {"deletionGracePeriodSeconds": 0}, 422, GRACE),
        ("going", {"deletionTimestamp": LATER, "finalizers": ["x.y/z"]}, 200, ""),
        ("going", {"deletionTimestamp": None, "finalizers": ["x.y/z"]}, 200, ""),
        ("going", {"deletionGracePeriodSeconds": 3, "finalizers": ["x.y/z"]}, 422, GRACE),
        ("going", {"finalizers": ["x.y/z", "x.y/a"]}, 422, "metadata.finalizers"),
        ("a", {"resourceVersion": "0"}, 200, ""),
        ("a", {"resourceVersion": "000"}, 200, ""),
        ("a", {"resourceVersion": "1"}, 409, ""),
        ("a", {"resourceVersion": "-1"}, 409, ""),
    ],
)
async def test_what_an_update_says(
    server: Server, method: str, name: str, metadata: dict[str, Any], code: int, field: str
) -> None:
    await _begin(server)
    before = (await asked(server, "GET", f"{CONFIGMAPS}/{name}")).body["metadata"]
    body = configmap(name, **metadata)
    answer = await asked(server, method, f"{CONFIGMAPS}/{name}", body, content_type=_type(method))
    assert answer.code == code, answer.message
    if code == 200:
        for kept in ("creationTimestamp", "deletionTimestamp", "generation", "selfLink", "uid"):
            assert answer.body["metadata"].get(kept) == before.get(kept)
    if field:
        assert set(answer.fields) == {field}


def _type(method: str) -> str:
    return MERGE if method == "PATCH" else "application/json"


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ({"resourceVersion": "7"}, 400),
        ({"resourceVersion": "0"}, 201),
        ({"resourceVersion": "x"}, 201),
        ({"uid": "mine", "generation": -2, "selfLink": "/x", "creationTimestamp": LATER}, 201),
        ({"deletionTimestamp": LATER, "deletionGracePeriodSeconds": 5}, 201),
        ({"namespace": "other", "resourceVersion": "7"}, 400),
    ],
)
async def test_what_a_creation_says(server: Server, metadata: dict[str, Any], code: int) -> None:
    await _begin(server)
    answer = await asked(server, "POST", CONFIGMAPS, configmap("b", **metadata))
    assert answer.code == code, answer.message
    if code == 201:
        told = answer.body["metadata"]
        assert told["uid"] != "mine"
        assert told["creationTimestamp"] != LATER
        assert told.keys() & {"generation", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"} == set()


@pytest.mark.parametrize(
    ("method", "name", "body", "word"),
    [
        ("PUT", "a", {"name": "b", "namespace": "other"}, "namespace"),
        ("PATCH", "a", {"name": "b", "namespace": "other"}, "namespace"),
        ("PUT", "a", {"namespace": "other"}, "namespace"),
        ("PUT", "a", {"name": "b"}, "the name of the object (b)"),
        ("PATCH", "a", {"name": ""}, "undeterminable"),
        ("PATCH", "a", {"name": None}, "undeterminable"),
        ("PUT", "absent", {"name": "b", "namespace": "other"}, "namespace"),
    ],
)
async def test_the_namespace_is_looked_at_before_the_name(
    server: Server, method: str, name: str, body: dict[str, Any], word: str
) -> None:
    await _begin(server)
    sent = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": body}
    answer = await asked(server, method, f"{CONFIGMAPS}/{name}", sent, content_type=_type(method))
    assert answer.code == 400
    assert word in answer.message


@pytest.mark.parametrize("query", ["", "?dryRun=All"])
async def test_the_name_of_what_is_going_is_taken(server: Server, query: str) -> None:
    await _begin(server)
    answer = await asked(server, "POST", CONFIGMAPS + query, configmap("going"))
    assert (answer.code, answer.reason) == (409, "AlreadyExists")
    assert answer.message == 'object is being deleted: configmaps "going" already exists'
    answer = await asked(server, "POST", CONFIGMAPS + query, configmap("a"))
    assert answer.message == 'configmaps "a" already exists'


@pytest.mark.parametrize(
    ("metadata", "fields"),
    [
        ({"labels": {"a b": "c"}}, 4 * ["metadata.labels"]),
        ({"annotations": {"a b": "c"}}, 4 * ["metadata.annotations"]),
        ({"finalizers": ["a b/c"]}, 2 * ["metadata.finalizers"]),
        ({"finalizers": ["alone"]}, 2 * ["metadata.finalizers[0]"]),
        ({"finalizers": ["orphan", "foregroundDeletion"]}, 2 * ["metadata.finalizers"]),
        ({"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]}, 4 * ["metadata.ownerReferences.uid"]),
        ({"uid": "other"}, 2 * ["metadata.uid"]),
    ],
)
async def test_causes_of_an_update_repeat(server: Server, metadata: dict[str, Any], fields: list[str]) -> None:
    await _begin(server)
    answer = await asked(server, "PATCH", f"{CONFIGMAPS}/a", {"metadata": metadata}, content_type=MERGE)
    assert (answer.code, answer.fields) == (422, fields), answer.message


@pytest.mark.parametrize(
    ("path", "body", "times"),
    [
        (ROLES, {"metadata": {"name": "r"}}, 4),
        ("/api/v1/namespaces", {"metadata": {"name": "n"}}, 4),
        (f"/api/v1/namespaces/{NAMESPACE}/limitranges", {"metadata": {"name": "l"}}, 3),
        (f"/api/v1/namespaces/{NAMESPACE}/resourcequotas", {"metadata": {"name": "q"}}, 3),
        (f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": "s"}}, 4),
        ("/api/v1/nodes", {"metadata": {"name": "n"}}, 4),
        (f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases", {"metadata": {"name": "l"}}, 3),
    ],
)
async def test_how_often_a_kind_looks_at_labels(server: Server, path: str, body: dict[str, Any], times: int) -> None:
    await server.namespace(NAMESPACE)
    await made(server, path, body)
    name = body["metadata"]["name"]
    answer = await asked(server, "PATCH", f"{path}/{name}", {"metadata": {"labels": {"a b": ""}}}, content_type=MERGE)
    assert answer.fields == times * ["metadata.labels"], answer.message


def _owner(uid: str, name: str = "p", **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid} | more


@pytest.mark.parametrize(
    ("owners", "left", "dropped"),
    [
        ([_owner("1"), _owner("1")], 1, "1"),
        ([_owner("1"), _owner("1"), _owner("2"), _owner("1"), _owner("2")], 2, "1, 1, 2"),
        ([_owner("1"), _owner("1", "q")], 2, ""),
        ([_owner("1"), _owner("1", controller=False)], 2, ""),
        ([_owner("1", controller=True), _owner("1", controller=True)], 1, "1"),
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
async def test_the_same_owner_counts_once(
    server: Server, method: str, owners: list[dict[str, Any]], left: int, dropped: str
) -> None:
    await _begin(server)
    path = CONFIGMAPS if method == "POST" else f"{CONFIGMAPS}/a"
    name = "b" if method == "POST" else "a"
    body = configmap(name, ownerReferences=owners)
    answer = await server.ask(method, path, _encoded(body), content_type=_type(method))
    stored = document(await answer.read())
    assert len(stored["metadata"]["ownerReferences"]) == left
    said = [value for key, value in answer.headers.items() if key.lower() == "warning"]
    assert bool(said) is bool(dropped)
    if dropped:
        after = " after mutating admission happens" if method == "PATCH" else ""
        assert f"contains duplicate entries{after};" in said[0]
        assert said[0].endswith(f'observed: {dropped}"')


def _encoded(body: Any) -> bytes:
    return msgspec.json.encode(body)


@pytest.mark.parametrize(
    ("path", "metadata", "code", "length"),
    [
        (CONFIGMAPS, {"generateName": "x" * 100}, 201, 63),
        (CONFIGMAPS, {"generateName": "x" * 253}, 201, 63),
        (CONFIGMAPS, {"generateName": "x" * 254}, 422, 0),
        (CONFIGMAPS, {"generateName": "a-"}, 201, 7),
        (CONFIGMAPS, {"generateName": "a."}, 422, 0),
        (CONFIGMAPS, {"generateName": "-"}, 422, 0),
        (CONFIGMAPS, {"generateName": "Bad", "name": "good"}, 422, 0),
        (CONFIGMAPS, {"name": "x" * 253}, 201, 253),
        (CONFIGMAPS, {"name": "x" * 254}, 422, 0),
        (CONFIGMAPS, {"name": "", "generateName": ""}, 422, 0),
        ("/api/v1/namespaces", {"generateName": "x" * 63}, 201, 63),
        ("/api/v1/namespaces", {"generateName": "x" * 64}, 422, 0),
        ("/api/v1/namespaces", {"name": "x" * 63}, 201, 63),
        (ROLES, {"generateName": "System:a_"}, 201, 14),
        (ROLES, {"name": "a%b"}, 422, 0),
        (BUDGETS, {"name": "Bad_Name"}, 201, 8),
        (BUDGETS, {"name": "a/b"}, 422, 0),
    ],
)
async def test_names(server: Server, path: str, metadata: dict[str, Any], code: int, length: int) -> None:
    await server.namespace(NAMESPACE)
    answer = await asked(server, "POST", path, {"metadata": metadata})
    assert answer.code == code, answer.message
    if length:
        assert len(answer.body["metadata"]["name"]) == length


async def test_custom_resources_may_have_any_finalizer_that_is_a_name(server: Server) -> None:
    await server.namespace(NAMESPACE)
    await made(server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    wheel: dict[str, Any] = {"apiVersion": "rules.example.com/v1", "kind": "Wheel", "metadata": {"name": "w"}}
    wheel["metadata"]["finalizers"] = ["alone", "x.y/z", "orphan"]
    answer = await server.ask("POST", WHEELS, _encoded(wheel))
    assert answer.status == 201
    said = [value for key, value in answer.headers.items() if key.lower() == "warning"]
    assert len(said) == 1
    assert "prefer a domain-qualified finalizer name including a path (/)" in said[0]
    same = await server.ask("PATCH", f"{WHEELS}/w", _encoded({"metadata": {"labels": {"a": "b"}}}), content_type=MERGE)
    assert not [key for key in same.headers if key.lower() == "warning"]
    bad = await asked(server, "PATCH", f"{WHEELS}/w", {"metadata": {"finalizers": ["a b"]}}, content_type=MERGE)
    assert (bad.code, bad.fields) == (422, ["metadata.finalizers"])


@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        ("/apis/rbac.authorization.k8s.io/v1/namespaces/rules/roles", {}, ("rules",)),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", {}, ("rules",)),
        ("/apis/discovery.k8s.io/v1/namespaces/rules/endpointslices", {"addressType": "IPv4"}, ("endpoints",)),
        ("/apis/discovery.k8s.io/v1/namespaces/rules/endpointslices", {"addressType": "IPv4"}, ("ports",)),
        ("/api/v1/namespaces/rules/limitranges", {"spec": {}}, ("spec", "limits")),
    ],
)
@pytest.mark.parametrize("said", [None, []])
async def test_lists_that_are_always_there(
    server: Server, path: str, body: dict[str, Any], place: tuple[str, ...], said: list[Any] | None
) -> None:
    """A list is null where nobody said anything, and nobody's; one that is empty belongs to who said so."""
    await server.namespace(NAMESPACE)
    given = json.loads(json.dumps({"metadata": {"name": "x"}} | body))
    if said is not None:
        (given["spec"] if len(place) > 1 else given)[place[-1]] = said
    (found,) = await made(server, path, given)
    value: Any = found
    for name in place:
        value = value[name]
    owned = json.dumps(found["metadata"].get("managedFields", []))
    assert (value, f'"f:{place[-1]}"' in owned) == (said, said is not None)


async def test_an_event_of_the_core_group_always_has_its_reporter(server: Server) -> None:
    await server.namespace(NAMESPACE)
    about = {"kind": "Pod", "namespace": NAMESPACE, "name": "p"}
    (event,) = await made(
        server, f"/api/v1/namespaces/{NAMESPACE}/events", {"metadata": {"name": "e"}, "involvedObject": about}
    )
    assert (event["reportingComponent"], event["reportingInstance"]) == ("", "")
    other = await asked(server, "GET", f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events/e")
    assert "reportingController" not in other.body
