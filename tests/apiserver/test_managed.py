"""Which manager is recorded for which field."""

import json
from typing import Any

import pytest

from podfit.apiserver.handlers.patching import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from support.clock import FakeClock
from support.server import Server, document

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
AS_WRITTEN = 'k:{"name":"c"}'


async def send(
    server: Server, method: str, path: str, body: Any, *, who: str = "kubectl", kind: str = "application/json"
) -> Any:
    headers = {"user_agent": f"{who}/v1.36 (linux/amd64)"}
    answer = await server.ask(method, path, json.dumps(body).encode(), content_type=kind, **headers)  # type: ignore[arg-type]  # keywords of several types
    assert answer.status < 300, await answer.read()
    return document(await answer.read())


def owners(obj: Any) -> dict[str, Any]:
    """Fields by manager, or by manager and subresource."""
    found = {}
    for entry in obj["metadata"]["managedFields"]:
        assert (entry["operation"], entry["fieldsType"], entry["apiVersion"]) == ("Update", "FieldsV1", "v1")
        found["/".join(filter(None, (entry["manager"], entry.get("subresource"))))] = entry["fieldsV1"]
    return found


async def config_map(server: Server, **data: str) -> Any:
    return await send(server, "POST", MAPS, {"metadata": {"name": "a", "labels": {"t": "x"}}, "data": data})


async def test_a_creator_owns_what_it_wrote_and_what_became_of_it(server: Server) -> None:
    spec = {
        "containers": [
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}, "ports": [{"containerPort": 80}]}
        ],
        "tolerations": [{"operator": "Exists"}],
    }
    made = await send(server, "POST", PODS, {"metadata": {"name": "p"}, "spec": spec})
    assert owners(made) == {
        "kubectl": {
            "f:spec": {
                "f:containers": {
                    AS_WRITTEN: {
                        ".": {},
                        "f:image": {},
                        "f:imagePullPolicy": {},
                        "f:name": {},
                        "f:ports": {
                            ".": {},
                            'k:{"containerPort":80,"protocol":"TCP"}': {
                                ".": {},
                                "f:containerPort": {},
                                "f:protocol": {},
                            },
                        },
                        "f:resources": {".": {}, "f:requests": {".": {}, "f:cpu": {}}},
                        "f:terminationMessagePath": {},
                        "f:terminationMessagePolicy": {},
                    }
                },
                "f:dnsPolicy": {},
                "f:enableServiceLinks": {},
                "f:restartPolicy": {},
                "f:schedulerName": {},
                "f:securityContext": {},
                "f:terminationGracePeriodSeconds": {},
                "f:tolerations": {},
            }
        }
    }


@pytest.mark.row("R-011")
async def test_r_011_a_resize_is_recorded_with_its_subresource(server: Server) -> None:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]
    await send(server, "POST", PODS, {"metadata": {"name": "p"}, "spec": {"containers": containers}})
    change = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}
    resized = await send(server, "PATCH", f"{PODS}/p/resize", change, who="vpa", kind=STRATEGIC_PATCH)
    mine: dict[str, Any] = {"f:spec": {"f:containers": {AS_WRITTEN: {"f:resources": {"f:requests": {"f:cpu": {}}}}}}}
    assert owners(resized)["vpa/resize"] == mine
    left = owners(resized)["kubectl"]["f:spec"]["f:containers"][AS_WRITTEN]["f:resources"]
    assert left == {".": {}, "f:requests": {".": {}, "f:memory": {}}}


async def test_what_another_writes_is_the_others(server: Server) -> None:
    await config_map(server, a="1", b="1")
    changed = await send(server, "PATCH", f"{MAPS}/a", {"data": {"a": "2", "c": "2"}}, who="other", kind=MERGE_PATCH)
    assert owners(changed) == {
        "kubectl": {"f:metadata": {"f:labels": {".": {}, "f:t": {}}}, "f:data": {".": {}, "f:b": {}}},
        "other": {"f:data": {"f:a": {}, "f:c": {}}},
    }


async def test_what_is_gone_is_nobodys(server: Server) -> None:
    await config_map(server, a="1")
    await send(server, "PATCH", f"{MAPS}/a", {"data": {"b": "1"}}, who="other", kind=MERGE_PATCH)
    left = await send(server, "PATCH", f"{MAPS}/a", {"data": {"b": None}}, kind=MERGE_PATCH)
    assert owners(left) == {
        "kubectl": {"f:metadata": {"f:labels": {".": {}, "f:t": {}}}, "f:data": {".": {}, "f:a": {}}}
    }


async def test_writing_the_same_value_takes_nothing_and_moves_no_time(server: Server) -> None:
    made = await config_map(server, a="1")
    clock = server.context.clock
    assert isinstance(clock, FakeClock)
    await clock.advance(60)
    assert await send(server, "PATCH", f"{MAPS}/a", {"data": {"a": "1"}}, who="other", kind=MERGE_PATCH) == made


async def test_another_value_of_a_managers_own_field_moves_its_time_alone(server: Server) -> None:
    """As the API's documentation of `time` says."""
    made = await config_map(server, a="1")
    clock = server.context.clock
    assert isinstance(clock, FakeClock)
    await clock.advance(60)
    again = await send(server, "PATCH", f"{MAPS}/a", {"data": {"a": "2"}}, kind=MERGE_PATCH)
    (before,), (after,) = made["metadata"]["managedFields"], again["metadata"]["managedFields"]
    assert after == before | {"time": "2026-01-01T00:01:00Z"}


@pytest.mark.parametrize("body", [{}, {"managedFields": None}, {"managedFields": [{"manager": "forged"}]}])
async def test_clients_do_not_write_managed_fields(server: Server, body: dict[str, Any]) -> None:
    made = await config_map(server, a="1")
    same = {**made, "metadata": {"name": "a", "labels": {"t": "x"}, **body}}
    assert owners(await send(server, "PUT", f"{MAPS}/a", same, who="other")) == owners(made)


@pytest.mark.parametrize("nobody", [[], [{}]])
async def test_an_empty_list_or_entry_forgets_everyone(server: Server, nobody: Any) -> None:
    await config_map(server, a="1")
    change = [{"op": "replace", "path": "/metadata/managedFields", "value": nobody}]
    assert "managedFields" not in (await send(server, "PATCH", f"{MAPS}/a", change, kind=JSON_PATCH))["metadata"]


async def test_the_manager_is_the_parameter_else_the_agents_name(server: Server) -> None:
    named = await send(server, "POST", f"{MAPS}?fieldManager=me", {"metadata": {"name": "a"}, "data": {"k": "1"}})
    agent = await send(server, "POST", MAPS, {"metadata": {"name": "b"}, "data": {"k": "1"}}, who="curl")
    nameless = await send(server, "POST", MAPS, {"metadata": {"name": "c"}, "data": {"k": "1"}}, who="")
    assert [list(owners(written)) for written in (named, agent, nameless)] == [["me"], ["curl"], ["unknown"]]


async def test_a_managers_name_has_bounds(server: Server) -> None:
    answer = await server.ask("POST", f"{MAPS}?fieldManager={'x' * 129}", b'{"metadata":{"name":"a"}}')
    refused = document(await answer.read())
    assert (answer.status, refused["details"]["kind"]) == (422, "CreateOptions")
    assert refused["details"]["causes"][0]["field"] == "fieldManager"


async def test_status_is_its_writers(server: Server) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    await send(server, "POST", PODS, {"metadata": {"name": "p"}, "spec": spec})
    patch = {"status": {"conditions": [{"type": "Ready", "status": "True"}], "podIP": "10.0.0.1"}}
    changed = await send(server, "PATCH", f"{PODS}/p/status", patch, who="kubelet", kind=STRATEGIC_PATCH)
    status = owners(changed)["kubelet/status"]["f:status"]
    assert status["f:podIP"] == {}
    assert set(status["f:conditions"]) == {".", 'k:{"type":"Ready"}'}
