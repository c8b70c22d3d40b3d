"""The `pods/resize` endpoint: what it shows, takes, drops and counts."""

import copy
from typing import Any

import pytest

from podfit.apiserver.handlers.patching import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from support.resizing import (
    BURSTABLE,
    POD,
    PODS,
    RESIZE,
    asking,
    container,
    cpu,
    read,
    refusal,
    resize,
    send,
    spec,
    stored,
)
from support.server import Server

GREW = spec(container("c", {"cpu": "1500m", "memory": "1Gi"}, {"cpu": "2", "memory": "2Gi"}))["containers"]


@pytest.mark.row("R-001")
async def test_it_shows_the_pod_itself(server: Server) -> None:
    await stored(server, labels={"a": "b"}, status={"phase": "Running"})
    assert await send(server, "GET", RESIZE) == (200, await read(server))


@pytest.mark.row("R-002")
async def test_discovery_lists_its_three_verbs(server: Server) -> None:
    _, found = await send(server, "GET", "/api/v1")
    (listed,) = (resource for resource in found["resources"] if resource["name"] == "pods/resize")
    assert (listed["kind"], sorted(listed["verbs"])) == ("Pod", ["get", "patch", "update"])


@pytest.mark.row("R-003", "R-009")
@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        (JSON_PATCH, [{"op": "replace", "path": "/spec/containers/0/resources/requests/cpu", "value": "1500m"}]),
        (MERGE_PATCH, {"spec": {"containers": GREW}}),
        (STRATEGIC_PATCH, asking(c="1500m")),
    ],
)
async def test_every_kind_of_patch_resizes(server: Server, kind: str, patch: Any) -> None:
    await stored(server)
    code, found = await resize(server, patch, kind)
    assert (code, cpu(found), found["metadata"]["generation"]) == (200, "1500m", 2)


@pytest.mark.row("R-003", "R-005")
async def test_a_whole_pod_is_put_with_or_without_its_version(server: Server) -> None:
    first = await stored(server)
    wanted = copy.deepcopy(first) | {"spec": {**first["spec"], "containers": GREW}}
    code, second = await send(server, "PUT", RESIZE, wanted)
    assert (code, cpu(second)) == (200, "1500m")
    stale = copy.deepcopy(wanted)
    stale["spec"]["containers"] = BURSTABLE["containers"]
    code, body = await send(server, "PUT", RESIZE, stale)
    assert (code, body["reason"]) == (409, "Conflict")
    del stale["metadata"]["resourceVersion"]
    code, third = await send(server, "PUT", RESIZE, stale)
    assert (code, cpu(third)) == (200, "1")


@pytest.mark.row("R-004")
@pytest.mark.parametrize(("method", "query"), [("POST", ""), ("DELETE", ""), ("GET", "?watch=1")])
async def test_other_verbs_are_not_allowed(server: Server, method: str, query: str) -> None:
    pod = await stored(server)
    code, body = await send(server, method, RESIZE + query, pod if method == "POST" else None)
    assert (code, body["reason"]) == (405, "MethodNotAllowed")


@pytest.mark.row("R-004")
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH"])
async def test_a_pod_that_is_not_there_is_not_made(server: Server, method: str) -> None:
    body = {"metadata": {"name": "p", "namespace": "default"}, "spec": BURSTABLE} if method == "PUT" else {}
    kind = STRATEGIC_PATCH if method == "PATCH" else "application/json"
    code, refused = await send(server, method, RESIZE, body, kind)
    assert (code, refused["message"]) == (404, 'pods "p" not found')


@pytest.mark.row("R-006")
async def test_a_dry_run_validates_and_admits_and_keeps_nothing(server: Server) -> None:
    before = await stored(server)
    code, shown = await resize(server, asking(c="1500m"), query="?dryRun=All")
    assert (code, cpu(shown), shown["metadata"]["generation"]) == (200, "1500m", 2)
    assert (await resize(server, asking(c="3"), query="?dryRun=All"))[0] == 422
    limits = {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "1200m"}}]}}
    assert (await send(server, "POST", "/api/v1/namespaces/default/limitranges", limits))[0] == 201
    assert (await resize(server, asking(c="1500m"), query="?dryRun=All"))[0] == 403
    assert await read(server) == before


@pytest.mark.row("R-007")
async def test_the_main_endpoint_does_not_resize(server: Server) -> None:
    await stored(server)
    code, body = await send(server, "PATCH", POD, asking(c="1500m"), STRATEGIC_PATCH)
    (cause,) = body["details"]["causes"]
    assert (code, cause["field"]) == (422, "spec")
    assert "pod updates may not change fields other than" in body["message"]


@pytest.mark.row("R-008")
async def test_what_is_not_a_resize_is_dropped_silently(server: Server) -> None:
    pod = await stored(server, labels={"a": "b"})
    pod["metadata"] |= {
        "labels": {"x": "y"},
        "annotations": {"x": "y"},
        "finalizers": ["a.b/c"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}],
    }
    pod["spec"]["containers"][0] |= {"image": "other"}
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1500m"
    pod["status"] = {"phase": "Failed"}
    code, found = await send(server, "PUT", RESIZE, pod)
    assert (code, cpu(found)) == (200, "1500m")
    assert found["metadata"]["labels"] == {"a": "b"}
    assert not found["metadata"].keys() & {"annotations", "finalizers", "ownerReferences"}
    assert found["spec"]["containers"][0]["image"] == "busybox"
    assert found["status"]["phase"] == "Pending"


@pytest.mark.row("R-009", "R-010")
@pytest.mark.parametrize("same", ["1", "1000m", "1.0"])
async def test_an_equal_amount_changes_nothing(server: Server, same: str) -> None:
    before = await stored(server)
    code, after = await resize(server, asking(c=same))
    assert (code, after) == (200, before)


@pytest.mark.row("R-014", "R-015")
@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
async def test_a_pod_that_does_not_run_may_be_resized(server: Server, phase: str) -> None:
    await stored(server, status={"phase": phase})
    code, found = await resize(server, asking(c="1500m"))
    assert (code, cpu(found)) == (200, "1500m")


@pytest.mark.row("R-015")
async def test_a_pod_on_its_way_out_may_be_resized(server: Server) -> None:
    await stored(server, finalizers=["a.b/c"])
    assert (await send(server, "DELETE", POD))[1]["metadata"]["deletionTimestamp"]
    code, found = await resize(server, asking(c="1500m"))
    assert (code, cpu(found), found["metadata"]["generation"]) == (200, "1500m", 3)


@pytest.mark.row("R-016", "R-035")
async def test_a_limit_brings_its_request(server: Server) -> None:
    await stored(server, spec(container("c", {"memory": "1Gi"})))
    patch = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]}}
    code, found = await resize(server, patch)
    assert code == 200
    assert found["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "2"},
        "requests": {"cpu": "2", "memory": "1Gi"},
    }


@pytest.mark.row("R-017")
async def test_a_policy_is_not_defaulted(server: Server) -> None:
    assert "resizePolicy" not in (await stored(server))["spec"]["containers"][0]


@pytest.mark.row("R-018", "H-01")
async def test_the_server_does_not_write_status_resize(server: Server) -> None:
    made = await stored(server)
    _, resized = await resize(server, asking(c="1500m"))
    _, listed = await send(server, "GET", PODS)
    for answer in (made, resized, await read(server), *listed["items"]):
        assert "resize" not in answer["status"]


@pytest.mark.row("R-019")
@pytest.mark.parametrize(("given", "canonical"), [("1.5", "1500m"), ("0.5", "500m"), ("2000m", "2"), ("1e0", "1")])
async def test_quantities_come_back_in_canonical_form(server: Server, given: str, canonical: str) -> None:
    await stored(server)
    _, found = await resize(server, asking(c=given))
    assert cpu(found) == canonical


@pytest.mark.row("R-019")
async def test_the_family_of_a_suffix_stays(server: Server) -> None:
    await stored(server)
    patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"memory": "0.5Gi"}}}]}}
    _, found = await resize(server, patch)
    assert found["spec"]["containers"][0]["resources"]["requests"]["memory"] == "512Mi"


@pytest.mark.row("R-048", "R-049")
async def test_every_fault_is_named_once_with_a_cause_each(server: Server) -> None:
    await stored(server, spec(container("a", {"cpu": "1"}), container("b", {"cpu": "1"})))
    first, second = (
        {
            "name": name,
            "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}],
            "resources": {"requests": {"cpu": "-1"}},
        }
        for name in "ab"
    )
    code, body = await resize(server, {"spec": {"containers": [first, second]}})
    negative = 'Invalid value: "-1": must be greater than or equal to 0'
    only = "Forbidden: only cpu and memory resources are mutable"
    where = [f"spec.containers[{index}].resources.requests[cpu]" for index in (0, 1)]
    qos = 'Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing'
    texts = [f"{where[0]}: {negative}", f"{where[1]}: {negative}", f"spec: {qos}", f"spec: {only}"]
    assert (code, body["reason"], body["details"]["name"]) == (422, "Invalid", "p")
    assert body["message"] == f'Pod "p" is invalid: [{", ".join(texts)}]'
    assert [f"{cause['field']}: {cause['message']}" for cause in body["details"]["causes"]] == [*texts, f"spec: {only}"]


@pytest.mark.row("R-049")
async def test_an_admission_plugin_refuses_with_a_403(server: Server) -> None:
    await stored(server, spec(container("c", {"cpu": "1"}), nodeName="away"))
    assert await refusal(server, asking(c="2")) == 'node "away" not found'
