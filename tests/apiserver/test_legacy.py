"""The legacy mode: clients of 1.27 to 1.32 read `status.resize` and ask in the ways of their time."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podfit.apiserver.handlers.patching import MERGE_PATCH, STRATEGIC_PATCH
from podfit.apiserver.request.legacy_options import Legacy
from podfit.net.wire import Identity
from podfit.process import config_file
from support.resizing import (
    BURSTABLE,
    NAMESPACE,
    POD,
    PODS,
    RESIZE,
    asking,
    container,
    cpu,
    read,
    resize,
    send,
    spec,
    stored,
)
from support.server import Server, running_server

BOUND = {**BURSTABLE, "nodeName": "n"}
NODE = Identity("system:node:n", ("system:nodes",))


def given(switches: str, clients: str = "") -> Legacy:
    """What the flags make of these."""
    return config_file.read(Legacy, {"legacy": switches, "legacy-clients": clients})


ALL = given("resize-status,pod-updates,draft-policies")


@pytest.fixture
async def legacy(tmp_path: Path) -> AsyncIterator[Server]:
    async with running_server(tmp_path, legacy=ALL) as made:
        await send(made, "POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
        status = {"allocatable": {"cpu": "8", "memory": "8Gi"}}
        assert (await send(made, "PATCH", "/api/v1/nodes/n/status", {"status": status}, MERGE_PATCH))[0] == 200
        yield made


async def report(server: Server, allocated: str, *conditions: dict[str, Any], seen: int, **more: Any) -> None:
    """The node's word on the pod."""
    amounts = {"cpu": allocated, "memory": "1Gi"}
    status = {
        "name": "c",
        "image": "x",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        "allocatedResources": amounts,
        "resources": {"requests": amounts, "limits": {"cpu": "2", "memory": "2Gi"}},
    }
    whole = {"containerStatuses": [status], "conditions": list(conditions), "observedGeneration": seen, **more}
    code, answer = await send(server, "PATCH", f"{POD}/status", {"status": whole}, MERGE_PATCH, who=NODE)
    assert code == 200, answer


def pending(reason: str) -> dict[str, Any]:
    return {"type": "PodResizePending", "status": "True", "reason": reason, "observedGeneration": 2}


IN_PROGRESS = {"type": "PodResizeInProgress", "status": "True", "observedGeneration": 2}


async def shown(server: Server) -> str | None:
    found: str | None = (await read(server))["status"].get("resize")
    return found


@pytest.mark.row("H-02", "R-191")
async def test_a_resize_is_proposed_then_in_progress_then_done(legacy: Server) -> None:
    await stored(legacy, BOUND)
    await report(legacy, "1", seen=1)
    assert await shown(legacy) is None
    _, answer = await resize(legacy, asking(c="1500m"))
    assert answer["status"]["resize"] == "Proposed"
    await report(legacy, "1500m", IN_PROGRESS, seen=2)
    assert await shown(legacy) == "InProgress"
    await report(legacy, "1500m", seen=2)
    assert await shown(legacy) is None


@pytest.mark.row("H-03", "H-04")
@pytest.mark.parametrize("reason", ["Deferred", "Infeasible"])
async def test_a_resize_without_room_says_why(legacy: Server, reason: str) -> None:
    await stored(legacy, BOUND)
    await resize(legacy, asking(c="1500m"))
    await report(legacy, "1", pending(reason), seen=2)
    assert await shown(legacy) == reason
    await report(legacy, "1500m", IN_PROGRESS, seen=2)
    assert await shown(legacy) == "InProgress"


@pytest.mark.row("H-01", "R-018", "R-191")
async def test_without_the_mode_nothing_is_derived(server: Server) -> None:
    await stored(server, status={"conditions": [pending("Deferred"), IN_PROGRESS]})
    assert await shown(server) is None
    await send(server, "PATCH", f"{POD}/status", {"status": {"resize": "Deferred"}}, MERGE_PATCH)
    assert await shown(server) == "Deferred"


@pytest.mark.row("R-191")
async def test_every_way_of_reading_shows_it_and_the_store_does_not_have_it(legacy: Server) -> None:
    await stored(legacy, BOUND)
    await report(legacy, "1", pending("Deferred"), IN_PROGRESS, seen=2)
    for path in (POD, RESIZE):
        _, found = await send(legacy, "GET", path)
        assert found["status"]["resize"] == "Deferred"
    _, listed = await send(legacy, "GET", PODS)
    assert [item["status"]["resize"] for item in listed["items"]] == ["Deferred"]
    table = "application/json;as=Table;g=meta.k8s.io;v=v1"
    _, rows = await send(legacy, "GET", f"{PODS}?includeObject=Object", accept=table)
    assert rows["rows"][0]["object"]["status"]["resize"] == "Deferred"
    record = await legacy.context.store.get("/registry/pods/default/p")
    assert record is not None
    assert b'"resize"' not in record.value


@pytest.mark.row("R-191")
async def test_a_watch_shows_it_in_every_event(legacy: Server) -> None:
    await stored(legacy, BOUND)
    await report(legacy, "1", seen=1)
    answer = await legacy.ask("GET", f"{PODS}?watch=1")
    assert not isinstance(answer.body, bytes)
    events = aiter(answer.body)

    async def event() -> tuple[str, str | None]:
        (line,) = (await anext(events)).splitlines()
        found = msgspec.json.decode(line)
        return found["type"], found["object"]["status"].get("resize")

    assert await event() == ("ADDED", None)
    await resize(legacy, asking(c="1500m"))
    assert await event() == ("MODIFIED", "Proposed")
    await report(legacy, "1500m", IN_PROGRESS, seen=2)
    assert await event() == ("MODIFIED", "InProgress")
    await answer.body.aclose()  # type: ignore[attr-defined]  # a stream that can be closed
    with pytest.raises(StopAsyncIteration):
        await anext(events)


async def test_only_the_named_clients_are_shown_it(tmp_path: Path) -> None:
    async with running_server(tmp_path, legacy=given("resize-status", "old-tool")) as server:
        await stored(server, BOUND)
        await report(server, "1", pending("Deferred"), seen=2)
        for agent, resize_status in (("old-tool/1.2 (linux)", "Deferred"), ("kubectl/v1.36", None), ("", None)):
            _, found = await send(server, "GET", POD, user_agent=agent)
            assert found["status"].get("resize") == resize_status


async def test_a_node_reads_what_is_stored(legacy: Server) -> None:
    await stored(legacy, BOUND)
    await report(legacy, "1", pending("Deferred"), seen=2)
    _, found = await send(legacy, "GET", POD, who=NODE)
    assert "resize" not in found["status"]


@pytest.mark.row("H-07")
@pytest.mark.parametrize(("rights", "code"), [("pods", 403), ("pods pods/resize", 200)])
async def test_the_pod_itself_takes_a_resize_from_who_may_resize(legacy: Server, rights: str, code: int) -> None:
    await stored(legacy)
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    rules = [{"verbs": ["get", "patch"], "apiGroups": [""], "resources": rights.split()}]
    await send(legacy, "POST", f"{rbac}/roles", {"metadata": {"name": "r"}, "rules": rules})
    binding = {
        "metadata": {"name": "b"},
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "jane"}],
    }
    await send(legacy, "POST", f"{rbac}/rolebindings", binding)
    got, answer = await send(legacy, "PATCH", POD, asking(c="1500m"), STRATEGIC_PATCH, who=Identity("jane"))
    assert got == code, answer
    assert cpu(await read(legacy)) == ("1500m" if code == 200 else "1")
    if code == 403:
        assert 'cannot patch resource "pods/resize"' in answer["message"]


@pytest.mark.row("H-07")
async def test_a_resize_through_the_pod_obeys_the_rules_of_resizes(legacy: Server) -> None:
    await stored(legacy)
    code, answer = await send(legacy, "PATCH", POD, asking(c="3"), STRATEGIC_PATCH)
    assert (code, "must be less than or equal to cpu limit of 2" in answer["message"]) == (422, True)
    limits = {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "min": {"cpu": "500m"}}]}}
    await send(legacy, "POST", f"{NAMESPACE}/limitranges", limits)
    assert (await send(legacy, "PATCH", POD, asking(c="100m"), STRATEGIC_PATCH))[0] == 403
    whole = await read(legacy)
    whole["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1500m"
    code, found = await send(legacy, "PUT", POD, whole)
    assert (code, cpu(found), found["metadata"]["generation"]) == (200, "1500m", 2)
    assert [field.get("subresource") for field in found["metadata"]["managedFields"]] == [None, "resize"]


@pytest.mark.row("H-07")
async def test_a_mixed_change_is_refused_as_ever(legacy: Server) -> None:
    await stored(legacy)
    mixed = {"metadata": {"labels": {"a": "b"}}, **asking(c="1500m")}
    code, answer = await send(legacy, "PATCH", POD, mixed, STRATEGIC_PATCH)
    assert (code, "pod updates may not change fields other than" in answer["message"]) == (422, True)


@pytest.mark.row("H-07")
async def test_without_the_switch_the_pod_takes_no_resize(tmp_path: Path) -> None:
    async with running_server(tmp_path, legacy=given("resize-status")) as server:
        await stored(server)
        assert (await send(server, "PATCH", POD, asking(c="1500m"), STRATEGIC_PATCH))[0] == 422


DRAFT = spec(container("c", {"cpu": "1"}, resizePolicy=[{"resourceName": "cpu", "policy": "Restart"}]))


@pytest.mark.row("H-08")
async def test_policies_of_the_drafts_read_back_in_todays_names(legacy: Server) -> None:
    body = json.dumps({"metadata": {"name": "p"}, "spec": DRAFT}).encode()
    answer = await legacy.ask("POST", PODS, body)
    assert answer.status == 201
    assert 'unknown field \\"spec.containers[0].resizePolicy[0].policy\\"' in answer.headers["warning"]
    policies = (await read(legacy))["spec"]["containers"][0]["resizePolicy"]
    assert policies == [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    assert (await legacy.ask("POST", f"{PODS}?fieldValidation=Strict", body)).status == 400


@pytest.mark.row("H-08")
async def test_without_the_switch_policies_of_the_drafts_are_refused(server: Server) -> None:
    code, _ = await send(server, "POST", PODS, {"metadata": {"name": "p"}, "spec": DRAFT})
    assert code == 422


@pytest.mark.row("H-09")
async def test_an_old_nodes_word_is_for_old_and_new_clients(tmp_path: Path) -> None:
    async with running_server(tmp_path, legacy=given("resize-status", "old-tool")) as server:
        await stored(server, BOUND)
        await report(server, "1", seen=1, resize="Infeasible")
        for agent in ("old-tool", "kubectl"):
            _, found = await send(server, "GET", POD, user_agent=agent)
            assert found["status"]["resize"] == "Infeasible"
            (condition,) = found["status"]["conditions"]
            assert (condition["type"], condition["reason"]) == ("PodResizePending", "Infeasible")


@pytest.mark.row("H-10")
@pytest.mark.parametrize("door", ["", "/resize", "/status"])
async def test_sending_the_derived_field_back_changes_nothing(legacy: Server, door: str) -> None:
    await stored(legacy, BOUND)
    await report(legacy, "1", pending("Deferred"), seen=2)
    before = await read(legacy)
    assert before["status"]["resize"] == "Deferred"
    code, after = await send(legacy, "PUT", POD + door, before)
    assert (code, after) == (200, before)
    await report(legacy, "1", seen=2)
    assert await shown(legacy) is None
