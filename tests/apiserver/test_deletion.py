"""How objects end: at once, after their grace, or when nobody holds them any more."""

import json
from typing import Any

import pytest

from podfit.apiserver.handlers.patching import MERGE_PATCH
from support.server import Server, document

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


async def send(server: Server, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
    answer = await server.ask(method, path, b"" if body is None else json.dumps(body).encode(), content_type=kind)
    return document(await answer.read()) | {"http": answer.status}


async def pod(server: Server, *, node: str = "n1", grace: int | None = None, **meta: Any) -> None:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "busybox"}]}
    spec |= {"terminationGracePeriodSeconds": grace} if grace is not None else {}
    made = await send(server, "POST", PODS, {"metadata": {"name": "p", **meta}, "spec": spec})
    assert made["http"] == 201, made
    if node:
        bound = await send(server, "POST", f"{PODS}/p/binding", {"target": {"kind": "Node", "name": node}})
        assert bound["http"] == 201


async def there(server: Server, path: str) -> bool:
    return (await server.ask("GET", path)).status == 200


async def test_a_pod_on_no_node_goes_at_once(server: Server) -> None:
    await pod(server, node="")
    assert (await send(server, "DELETE", f"{PODS}/p"))["kind"] == "Pod"
    assert not await there(server, f"{PODS}/p")


@pytest.mark.parametrize(
    ("own", "asked", "seconds"),
    [(None, "", 30), (None, "?gracePeriodSeconds=7", 7), (5, "", 5), (5, "?gracePeriodSeconds=60", 60)],
)
async def test_a_pod_on_a_node_waits_for_its_kubelet(server: Server, own: int | None, asked: str, seconds: int) -> None:
    await pod(server, grace=own)
    meta = (await send(server, "DELETE", f"{PODS}/p{asked}"))["metadata"]
    assert meta["deletionGracePeriodSeconds"] == seconds
    assert meta["deletionTimestamp"] == f"2026-01-01T00:{seconds // 60:02}:{seconds % 60:02}Z"
    assert meta["generation"] == 2
    assert await there(server, f"{PODS}/p")
    await send(server, "DELETE", f"{PODS}/p?gracePeriodSeconds=0")
    assert not await there(server, f"{PODS}/p")


async def test_grace_can_be_shortened_and_not_lengthened(server: Server) -> None:
    await pod(server)
    seen = []
    for seconds in (20, 40, 10):
        meta = (await send(server, "DELETE", f"{PODS}/p", {"gracePeriodSeconds": seconds}))["metadata"]
        seen.append((meta["deletionGracePeriodSeconds"], meta["generation"]))
    assert seen == [(20, 2), (20, 2), (10, 2)]


async def test_a_pod_that_has_ended_goes_at_once(server: Server) -> None:
    await pod(server)
    await send(server, "PATCH", f"{PODS}/p/status", {"status": {"phase": "Succeeded"}}, MERGE_PATCH)
    await send(server, "DELETE", f"{PODS}/p")
    assert not await there(server, f"{PODS}/p")


async def test_finalizers_hold_an_object_until_the_last_is_gone(server: Server) -> None:
    await send(server, "POST", MAPS, {"metadata": {"name": "a", "finalizers": ["x.io/a", "x.io/b"]}})
    meta = (await send(server, "DELETE", f"{MAPS}/a"))["metadata"]
    assert (meta["deletionGracePeriodSeconds"], meta["deletionTimestamp"]) == (0, "2026-01-01T00:00:00Z")
    await send(server, "PATCH", f"{MAPS}/a", {"metadata": {"finalizers": ["x.io/b"]}}, MERGE_PATCH)
    assert await there(server, f"{MAPS}/a")
    written = server.context.store.revision
    await send(server, "PATCH", f"{MAPS}/a", {"metadata": {"finalizers": None}}, MERGE_PATCH)
    assert not await there(server, f"{MAPS}/a")
    assert server.context.store.revision == written + 1, "one write, so no crash can leave the object behind"


async def test_a_pod_with_a_finalizer_waits_for_kubelet_and_finalizer(server: Server) -> None:
    await pod(server, finalizers=["x.io/a"])
    await send(server, "DELETE", f"{PODS}/p")
    await send(server, "DELETE", f"{PODS}/p?gracePeriodSeconds=0")
    assert await there(server, f"{PODS}/p")
    await send(server, "PATCH", f"{PODS}/p", {"metadata": {"finalizers": None}}, MERGE_PATCH)
    assert not await there(server, f"{PODS}/p")


async def test_no_finalizer_is_added_to_what_is_going(server: Server) -> None:
    await send(server, "POST", MAPS, {"metadata": {"name": "a", "finalizers": ["x.io/a"]}})
    await send(server, "DELETE", f"{MAPS}/a")
    change = {"metadata": {"finalizers": ["x.io/a", "x.io/b"]}}
    assert (await send(server, "PATCH", f"{MAPS}/a", change, MERGE_PATCH))["http"] == 422


async def test_a_namespace_waits_for_its_contents(server: Server) -> None:
    await server.namespace("n")
    gone = await send(server, "DELETE", "/api/v1/namespaces/n")
    assert (gone["status"]["phase"], gone["spec"]["finalizers"]) == ("Terminating", ["kubernetes"])
    assert await there(server, "/api/v1/namespaces/n")
    done = {"metadata": {"name": "n"}, "spec": {"finalizers": []}}
    await send(server, "PUT", "/api/v1/namespaces/n/finalize", done)
    assert not await there(server, "/api/v1/namespaces/n")


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
async def test_preconditions(server: Server, field: str) -> None:
    meta = (await send(server, "POST", MAPS, {"metadata": {"name": "a"}}))["metadata"]
    refused = await send(server, "DELETE", f"{MAPS}/a", {"preconditions": {field: "7"}})
    assert (refused["http"], refused["reason"]) == (409, "Conflict")
    assert f"(7) does not match the {field[:1].upper()}{field[1:]} in record".lower() in refused["message"].lower()
    assert (await send(server, "DELETE", f"{MAPS}/a", {"preconditions": {field: meta[field]}}))["http"] == 200


async def test_what_is_deleted_says_which_it_was(server: Server) -> None:
    meta = (await send(server, "POST", MAPS, {"metadata": {"name": "a"}}))["metadata"]
    done = await send(server, "DELETE", f"{MAPS}/a")
    assert done["status"] == "Success"
    assert done["details"] == {"name": "a", "kind": "configmaps", "uid": meta["uid"]}
    again = await send(server, "DELETE", f"{MAPS}/a")
    assert (again["http"], again["message"]) == (404, 'configmaps "a" not found')


async def test_a_collection_is_deleted_as_far_as_it_is_selected(server: Server) -> None:
    for name, colour in (("a", "red"), ("b", "blue"), ("c", "red")):
        await send(server, "POST", MAPS, {"metadata": {"name": name, "labels": {"colour": colour}}})
    found = await send(server, "DELETE", f"{MAPS}?labelSelector=colour=red")
    assert [item["metadata"]["name"] for item in found["items"]] == ["a", "c"]
    left = await send(server, "GET", MAPS)
    assert [item["metadata"]["name"] for item in left["items"]] == ["b"]


async def test_finalizers_of_a_namespace_are_names(server: Server) -> None:
    """What is stored through `finalize` has to be valid as well, or no later update would be."""
    await server.namespace("room")
    body = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "room"}, "spec": {"finalizers": ["/tmp"]}}
    answer = await server.ask("PUT", "/api/v1/namespaces/room/finalize", json.dumps(body).encode())
    assert answer.status == 422
    assert b"spec.finalizers" in await answer.read()
