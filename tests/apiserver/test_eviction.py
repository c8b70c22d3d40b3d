"""Evictions through the server: budgets are charged, pods say why they go, and who may not is told."""

import json
from typing import Any

import pytest

from support.server import Server, document

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
MERGE = "application/merge-patch+json"


async def send(server: Server, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
    answer = await server.ask(method, path, b"" if body is None else json.dumps(body).encode(), content_type=kind)
    return document(await answer.read()) | {"http": answer.status}


async def running(server: Server, name: str) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}
    await send(server, "POST", PODS, {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec})
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await send(server, "PATCH", f"{PODS}/{name}/status", {"status": status}, MERGE)


async def budget(server: Server, allowed: int) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    assert (await send(server, "POST", BUDGETS, {"metadata": {"name": "b"}, "spec": spec}))["http"] == 201
    status = {"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 2, "desiredHealthy": 1}
    await send(server, "PATCH", f"{BUDGETS}/b/status", {"status": status}, MERGE)


async def evict(server: Server, name: str, query: str = "", **options: Any) -> Any:
    body = {"metadata": {"name": name}} | ({"deleteOptions": options} if options else {})
    return await send(server, "POST", f"{PODS}/{name}/eviction{query}", body)


async def test_a_budget_lets_one_go_and_keeps_the_other(server: Server) -> None:
    await running(server, "a")
    await running(server, "b")
    await budget(server, 1)
    assert (await evict(server, "a"))["http"] == 201
    going = await send(server, "GET", f"{PODS}/a")
    assert going["metadata"]["deletionTimestamp"]
    assert ("DisruptionTarget", "EvictionByEvictionAPI") in [
        (condition["type"], condition.get("reason")) for condition in going["status"]["conditions"]
    ]
    charged = (await send(server, "GET", f"{BUDGETS}/b"))["status"]
    assert (charged["disruptionsAllowed"], list(charged["disruptedPods"])) == (0, ["a"])
    refused = await evict(server, "b")
    assert (refused["http"], refused["reason"]) == (429, "TooManyRequests")
    assert "deletionTimestamp" not in (await send(server, "GET", f"{PODS}/b"))["metadata"]


async def test_a_budget_that_nobody_has_counted_yet_keeps_its_pods(server: Server) -> None:
    await running(server, "a")
    spec = {"minAvailable": 0, "selector": {}}
    await send(server, "POST", BUDGETS, {"metadata": {"name": "b"}, "spec": spec})
    refused = await evict(server, "a")
    assert (refused["http"], refused["details"]["retryAfterSeconds"]) == (429, 10)


@pytest.mark.parametrize(("query", "options"), [("?dryRun=All", {}), ("", {"dryRun": ["All"]})])
async def test_a_dry_run_evicts_and_charges_nothing(server: Server, query: str, options: dict[str, Any]) -> None:
    await running(server, "a")
    await budget(server, 1)
    assert (await evict(server, "a", query, **options))["http"] == 201
    assert "deletionTimestamp" not in (await send(server, "GET", f"{PODS}/a"))["metadata"]
    assert (await send(server, "GET", f"{BUDGETS}/b"))["status"]["disruptionsAllowed"] == 1


async def test_options_of_the_deletion_count(server: Server) -> None:
    await running(server, "a")
    assert (await evict(server, "a", preconditions={"resourceVersion": "1"}))["http"] == 409
    assert (await evict(server, "a", gracePeriodSeconds=0))["http"] == 201
    assert (await send(server, "GET", f"{PODS}/a"))["http"] == 404


async def test_a_pod_of_two_budgets_is_a_mistake_of_the_cluster(server: Server) -> None:
    await running(server, "a")
    await budget(server, 1)
    await send(server, "POST", BUDGETS, {"metadata": {"name": "c"}, "spec": {"selector": {}}})
    refused = await evict(server, "a")
    assert (refused["http"], "more than one PodDisruptionBudget" in refused["message"]) == (500, True)
