"""Sums by node, namespace and workload: of what the scheduler counts, of usage where all is known, of targets."""

from typing import Any

import pytest

from answers.conversation import METRICS, Conversation, pod
from answers.test_top import DEPLOYMENT, PROXY, VPAS, metrics, with_vpa
from podfit.answers.allocation import Allocation, By, allocation, read_allocation
from podfit.core.errors import ApiError
from support.clock import FakeClock

REPLICA_SETS, DEPLOYMENTS = (f"/apis/apps/v1/namespaces/shop/{kind}" for kind in ("replicasets", "deployments"))
ALL_METRICS = "/apis/metrics.k8s.io/v1beta1/pods"


def owner(kind: str, name: str, uid: str) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}


def shop() -> Conversation:
    """Three pods of a node of 4 CPUs and 8Gi: two of a Deployment, one of them with a resize that waits."""
    pods = [pod("web-1", cpu="1", allocated="500m"), pod("web-2"), pod("alone", cpu="2")]
    for made in pods[:2]:
        made["metadata"] |= {"labels": {"app": "web"}, "ownerReferences": [owner("ReplicaSet", "web-abc", "r")]}
    conversation = Conversation(36, *pods)
    items = [metrics("100m", "64Mi", made["metadata"]["name"]) for made in pods]
    replica_set = {
        "name": "web-abc",
        "namespace": "shop",
        "uid": "r",
        "ownerReferences": [owner("Deployment", "web", "d")],
    }
    deployment = {"name": "web", "namespace": "shop", "uid": "d"}
    selector = {"matchLabels": {"app": "web"}}
    conversation.documents |= {
        "/api/v1/namespaces/shop/pods": {"items": pods},
        METRICS: {"items": items},
        ALL_METRICS: {"items": items},
        REPLICA_SETS: {"items": [{"metadata": replica_set}]},
        f"{REPLICA_SETS}/web-abc": {"metadata": replica_set},
        DEPLOYMENTS: {"items": [{"metadata": deployment}]},
        DEPLOYMENT: {"metadata": deployment, "spec": {"selector": selector}},
    }
    return conversation


async def told(conversation: Conversation, by: By, namespace: str = "shop", **options: str) -> Allocation:
    return allocation(await read_allocation(conversation.client, namespace, by, FakeClock(), **options), by)


async def test_by_node() -> None:
    answer = await told(shop(), "node", "")
    (row,) = answer.rows
    assert (row.name, row.pods, answer.source) == ("n1", 3, "metrics.k8s.io")
    assert (row.cpu.requested, row.cpu.allocated, row.cpu.used, row.cpu.capacity) == ("3500m", "3", "300m", "4")
    assert (row.memory.requested, row.memory.used, row.memory.capacity) == ("768Mi", "192Mi", "8Gi")
    assert (row.cpu.recommended, answer.missing) == ("", ())


async def test_by_workload_the_largest_first() -> None:
    answer = await told(shop(), "workload")
    assert [(row.namespace, row.name, row.pods, row.cpu.requested) for row in answer.rows] == [
        ("shop", "pod/alone", 1, "2"),
        ("shop", "deployment/web", 2, "1500m"),
    ]
    assert (answer.total.pods, answer.total.cpu.requested, answer.total.cpu.capacity) == (3, "3500m", "")


async def test_by_namespace() -> None:
    (row,) = (await told(shop(), "namespace", "")).rows
    assert (row.name, row.pods, row.cpu.capacity) == ("shop", 3, "")


async def test_recommended_is_the_target_in_place_of_the_request() -> None:
    conversation = shop()
    conversation.documents[VPAS] = {"items": [with_vpa()]}
    answer = await told(conversation, "workload")
    alone, web = answer.rows
    assert (alone.cpu.recommended, web.cpu.recommended) == ("", "600m"), "300m for each of two pods"
    assert answer.total.cpu.recommended == "2600m"


async def test_usage_that_is_not_known_of_one_pod_is_no_sum() -> None:
    conversation = shop()
    conversation.documents[METRICS]["items"].pop()
    conversation.documents[f"{PROXY}/stats/summary"] = {"pods": []}
    answer = await told(conversation, "workload")
    assert [(row.name, row.cpu.used) for row in answer.rows] == [("pod/alone", ""), ("deployment/web", "200m")]
    assert (answer.total.cpu.used, answer.missing) == (
        "",
        ("of 1 of 3 pods usage is not known yet: sums with them are left out",),
    )


async def test_rights_that_are_missing_are_named() -> None:
    conversation = shop()
    conversation.denied |= {"/api/v1/nodes", DEPLOYMENTS}
    by_node = await told(conversation, "node", "")
    assert by_node.rows[0].cpu.capacity == ""
    assert any("nodes" in note for note in by_node.notes)
    by_workload = await told(conversation, "workload")
    assert any("Deployments" in note for note in by_workload.notes)
    conversation.denied.add("/api/v1/pods")
    with pytest.raises(ApiError, match="pods"):
        await told(conversation, "node", "")


async def test_a_node_without_pods_has_a_row_and_what_has_ended_counts_nowhere() -> None:
    conversation = shop()
    for made in conversation.documents["/api/v1/pods"]["items"]:
        made["status"]["phase"] = "Succeeded"
    (row,) = (await told(conversation, "node", "")).rows
    assert (row.pods, row.cpu.requested, row.cpu.used) == (0, "0", "0")
