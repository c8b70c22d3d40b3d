"""Create, update and patch: what the server gives, what it refuses, and when it writes."""

import json
from typing import Any

import pytest

from podfit.apiserver.handlers.patching import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from support.clock import FakeClock
from support.server import Server, document

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
POD: dict[str, Any] = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "busybox"}]}}


async def send(server: Server, method: str, path: str, body: Any, kind: str = "application/json") -> tuple[int, Any]:
    answer = await server.ask(method, path, json.dumps(body).encode(), content_type=kind)
    return answer.status, document(await answer.read())


async def made(server: Server, path: str, body: Any) -> Any:
    status, obj = await send(server, "POST", path, body)
    assert status == 201, obj
    return obj


async def test_what_the_server_gives_cannot_be_chosen(server: Server) -> None:
    forged = {
        "name": "a",
        "uid": "mine",
        "generation": 7,
        "creationTimestamp": "1999-01-01T00:00:00Z",
        "deletionTimestamp": "1999-01-01T00:00:00Z",
        "selfLink": "/x",
    }
    meta = (await made(server, PODS, {**POD, "metadata": forged}))["metadata"]
    assert meta["uid"] != "mine"
    assert (meta["generation"], meta["creationTimestamp"]) == (1, "2026-01-01T00:00:00Z")
    assert not {"deletionTimestamp", "selfLink"} & set(meta)


async def test_generated_names_are_new_each_time(server: Server) -> None:
    body = {"metadata": {"generateName": "job-"}}
    names = {(await made(server, MAPS, body))["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20
    assert all(name.startswith("job-") and len(name) == len("job-") + 5 for name in names)


async def test_a_name_is_taken_once(server: Server) -> None:
    await made(server, MAPS, {"metadata": {"name": "a"}})
    status, refused = await send(server, "POST", MAPS, {"metadata": {"name": "a"}})
    assert (status, refused["reason"]) == (409, "AlreadyExists")
    assert refused["message"] == 'configmaps "a" already exists'


async def test_nothing_is_created_where_there_is_no_namespace(server: Server) -> None:
    status, refused = await send(server, "POST", "/api/v1/namespaces/no/pods", POD)
    assert (status, refused["message"]) == (404, 'namespaces "no" not found')


async def test_nothing_is_created_in_a_namespace_that_goes(server: Server) -> None:
    await server.namespace("going")
    assert (await server.ask("DELETE", "/api/v1/namespaces/going")).status == 200
    status, refused = await send(server, "POST", "/api/v1/namespaces/going/pods", POD)
    assert status == 403
    assert refused["message"] == (
        'pods "p" is forbidden: unable to create new content in namespace going because it is being terminated'
    )
    assert refused["details"]["causes"][0]["reason"] == "NamespaceTerminating"


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_some_namespaces_never_go(server: Server, name: str) -> None:
    refused = await server.ask("DELETE", f"/api/v1/namespaces/{name}")
    assert (refused.status, document(await refused.read())["reason"]) == (403, "Forbidden")


async def test_a_stale_update_conflicts_and_an_unconditional_one_does_not(server: Server) -> None:
    first = await made(server, MAPS, {"metadata": {"name": "a"}})
    _, second = await send(server, "PUT", f"{MAPS}/a", {**first, "data": {"k": "1"}})
    status, refused = await send(server, "PUT", f"{MAPS}/a", {**first, "data": {"k": "2"}})
    assert (status, refused["reason"]) == (409, "Conflict")
    assert refused["message"] == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    status, third = await send(server, "PUT", f"{MAPS}/a", {"metadata": {"name": "a"}, "data": {"k": "3"}})
    assert (status, third["data"]) == (200, {"k": "3"})
    assert third["metadata"]["uid"] == second["metadata"]["uid"]


async def test_an_update_that_changes_nothing_writes_nothing(server: Server) -> None:
    first = await made(server, MAPS, {"metadata": {"name": "a"}, "data": {"k": "1"}})
    for method, kind, body in (
        ("PUT", "application/json", first),
        ("PATCH", MERGE_PATCH, {}),
        ("PATCH", JSON_PATCH, []),
        ("PATCH", STRATEGIC_PATCH, {"data": {"k": "1"}}),
    ):
        assert await send(server, method, f"{MAPS}/a", body, kind) == (200, first)


async def test_the_wrong_uid_is_a_conflict(server: Server) -> None:
    await made(server, MAPS, {"metadata": {"name": "a"}})
    whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "other"}}
    status, refused = await send(server, "PUT", f"{MAPS}/a", whole, "application/json")
    assert status == 409
    assert "Precondition failed: UID in precondition: other" in refused["message"]


async def test_a_patch_of_the_uid_is_invalid(server: Server) -> None:
    await made(server, MAPS, {"metadata": {"name": "a"}})
    status, refused = await send(server, "PATCH", f"{MAPS}/a", {"metadata": {"uid": "other"}}, MERGE_PATCH)
    assert status == 422
    assert [cause["field"] for cause in refused["details"]["causes"]] == ["metadata.uid", "metadata.uid"]


async def test_a_patch_with_a_version_is_conditional(server: Server) -> None:
    first = await made(server, MAPS, {"metadata": {"name": "a"}})
    version = first["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": version}, "data": {"k": "1"}}
    assert (await send(server, "PATCH", f"{MAPS}/a", body, MERGE_PATCH))[0] == 200
    assert (await send(server, "PATCH", f"{MAPS}/a", {**body, "data": {"k": "2"}}, MERGE_PATCH))[0] == 409


async def test_a_dry_run_answers_and_writes_nothing(server: Server) -> None:
    before = server.context.store.revision
    status, answered = await send(server, "POST", f"{MAPS}?dryRun=All", {"metadata": {"name": "dry"}})
    assert (status, "resourceVersion" in answered["metadata"]) == (201, False)
    await made(server, MAPS, {"metadata": {"name": "a"}})
    written = server.context.store.revision
    status, answered = await send(server, "PATCH", f"{MAPS}/a?dryRun=All", {"data": {"k": "1"}}, MERGE_PATCH)
    assert (status, answered["data"]) == (200, {"k": "1"})
    assert (await server.ask("DELETE", f"{MAPS}/a?dryRun=All")).status == 200
    assert (before + 1, written) == (written, server.context.store.revision)
    status, refused = await send(server, "POST", f"{MAPS}?dryRun=All", {"metadata": {"name": "a"}})
    assert (status, refused["reason"]) == (409, "AlreadyExists")


@pytest.mark.parametrize(
    ("level", "status", "warned"),
    [("Strict", 400, False), ("Warn", 201, True), ("", 201, True), ("Ignore", 201, False)],
)
async def test_unknown_fields(server: Server, level: str, status: int, warned: bool) -> None:
    spec = '{"containers":[{"name":"c","image":"i","colour":"red","image":"i"}],"foo":1}'
    body = f'{{"metadata":{{"name":"p"}},"spec":{spec}}}'
    answer = await server.ask("POST", f"{PODS}?fieldValidation={level}", body.encode())
    found = (
        'unknown field "spec.containers[0].colour"',
        'duplicate field "spec.containers[0].image"',
        'unknown field "spec.foo"',
    )
    assert answer.status == status
    assert ("warning" in answer.headers) is warned
    if warned:
        assert r'299 - "unknown field \"spec.foo\""' in answer.headers["warning"]
    if status == 400:
        message = document(await answer.read())["message"]
        said = 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
        assert message == said + ", ".join(found), "in the order of the document"


async def test_unknown_fields_of_a_patch(server: Server) -> None:
    await made(server, PODS, POD)
    path = f"{PODS}/p?fieldValidation=Strict"
    status, refused = await send(server, "PATCH", path, {"spec": {"foo": 1}}, STRATEGIC_PATCH)
    assert status == 422
    assert refused["message"].endswith(': strict decoding error: unknown field "spec.foo"')
    assert refused["details"]["causes"][0]["field"] == "patch"


async def test_directives_of_a_patch_are_no_unknown_fields(server: Server) -> None:
    await made(server, PODS, POD)
    path = f"{PODS}/p?fieldValidation=Strict"
    order = {"metadata": {"$retainKeys": ["name", "labels"], "labels": {"a": "b"}}}
    assert (await send(server, "PATCH", path, order, STRATEGIC_PATCH))[0] == 200
    inside = {"spec": {"$setElementOrder/containers": [{"name": "c"}], "containers": [{"name": "c", "colour": "red"}]}}
    status, refused = await send(server, "PATCH", path, inside, STRATEGIC_PATCH)
    assert status == 422
    assert refused["message"].endswith('unknown field "spec.containers[0].colour"')
    status, refused = await send(server, "PATCH", path, {"metadata": {"$retainKeys": []}}, MERGE_PATCH)
    assert status == 400 or "$retainKeys" in refused["message"]


async def test_status_and_spec_have_doors_of_their_own(server: Server) -> None:
    await made(server, PODS, {**POD, "status": {"phase": "Running"}})
    _, main = await send(server, "PATCH", f"{PODS}/p", {"status": {"phase": "Failed"}}, MERGE_PATCH)
    body = {"status": {"phase": "Running"}, "spec": {"nodeName": "n"}}
    _, status = await send(server, "PATCH", f"{PODS}/p/status", body, MERGE_PATCH)
    assert (main["status"]["phase"], status["status"]["phase"]) == ("Pending", "Running")
    assert "nodeName" not in status["spec"]


async def test_a_new_pod_has_what_admission_gives(server: Server) -> None:
    spec = (await made(server, PODS, POD))["spec"]
    assert spec["serviceAccountName"] == "default"
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert {
        (toleration["key"], toleration["effect"], toleration["tolerationSeconds"]) for toleration in spec["tolerations"]
    } == {("node.kubernetes.io/not-ready", "NoExecute", 300), ("node.kubernetes.io/unreachable", "NoExecute", 300)}


async def test_priority_comes_from_a_class(server: Server) -> None:
    spec = {**POD["spec"], "priorityClassName": "system-node-critical"}
    assert (await made(server, PODS, {**POD, "spec": spec}))["spec"]["priority"] == 2_000_001_000
    status, refused = await send(server, "POST", PODS, {**POD, "spec": {**spec, "priorityClassName": "none"}})
    assert (status, refused["message"]) == (403, 'pods "p" is forbidden: no PriorityClass with name none was found')


async def test_what_a_quota_leaves_is_given_once(server: Server) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}
    await made(server, "/api/v1/namespaces/default/resourcequotas", quota)
    first = await send(server, "POST", PODS, POD)
    second = await send(server, "POST", PODS, {**POD, "metadata": {"name": "q"}})
    assert (first[0], second[0]) == (201, 403)
    assert "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1" in second[1]["message"]


@pytest.mark.row("R-077")
async def test_validation_speaks_before_admission_refuses(server: Server) -> None:
    """R-077: what is invalid is a 422, even where a quota would refuse it too."""
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}
    await made(server, "/api/v1/namespaces/default/resourcequotas", quota)
    assert (await send(server, "POST", PODS, {"metadata": {"name": "p"}}))[0] == 422
    assert (await send(server, "POST", PODS, POD))[0] == 403


async def test_a_pod_is_bound_once(server: Server) -> None:
    pod = await made(server, PODS, POD)
    target = {"target": {"kind": "Node", "name": "n1"}}
    wrong = {**target, "metadata": {"name": "p", "uid": "other"}}
    assert (await send(server, "POST", f"{PODS}/p/binding", wrong))[0] == 409
    assert (await send(server, "POST", f"{PODS}/p/binding", {"target": {"kind": "Node"}}))[0] == 422
    right = {**target, "metadata": {"name": "p", "uid": pod["metadata"]["uid"]}}
    assert (await send(server, "POST", f"{PODS}/p/binding", right))[0] == 201
    status, refused = await send(server, "POST", f"{PODS}/p/binding", target)
    assert (status, refused["message"]) == (
        409,
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"',
    )
    bound = document(await (await server.ask("GET", f"{PODS}/p")).read())
    assert bound["spec"]["nodeName"] == "n1"
    assert [(condition["type"], condition["status"]) for condition in bound["status"]["conditions"]] == [
        ("PodScheduled", "True")
    ]


async def test_events_are_kept_for_an_hour(server: Server) -> None:
    clock = server.context.clock
    assert isinstance(clock, FakeClock)
    path = "/api/v1/namespaces/default/events"
    event = {"metadata": {"name": "old"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}}
    await made(server, path, event)
    await clock.advance(3000)
    await made(server, path, {**event, "metadata": {"name": "new"}})
    for _ in range(10):
        await clock.advance(300)
        await made(server, MAPS, {"metadata": {"generateName": "after-"}})  # the store's thread gets a turn
    found = document(await (await server.ask("GET", path)).read())
    assert [item["metadata"]["name"] for item in found["items"]] == ["new"]


async def test_tolerations_given_by_default_come_back_when_the_list_is_replaced(server: Server) -> None:
    """As recorded (`label-annotation-change-running`): a patch that names one more replaces the whole list."""
    await made(server, PODS, POD)
    status, pod = await send(
        server, "PATCH", f"{PODS}/p", {"spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}}, STRATEGIC_PATCH
    )
    assert status == 200, pod
    assert [toleration["key"] for toleration in pod["spec"]["tolerations"]] == [
        "k",
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]


@pytest.mark.parametrize("kind", [MERGE_PATCH, STRATEGIC_PATCH, JSON_PATCH])
@pytest.mark.parametrize(
    ("sent", "kept"),
    [("2026-01-02T05:04:05+02:00", "2026-01-02T03:04:05Z"), ("2026-01-02T03:04:05.25Z", "2026-01-02T03:04:05Z")],
)
async def test_a_time_that_is_patched_is_written_as_every_time(server: Server, kind: str, sent: str, kept: str) -> None:
    """In UTC and whole seconds, as one that is sent in a whole object."""
    await made(server, PODS, POD)
    changes: Any = {"status": {"startTime": sent}}
    if kind == JSON_PATCH:
        changes = [{"op": "add", "path": "/status/startTime", "value": sent}]
    status, pod = await send(server, "PATCH", f"{PODS}/p/status", changes, kind)
    assert (status, pod["status"]["startTime"]) == (200, kept)
