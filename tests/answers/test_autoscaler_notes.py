"""A plan names the VPA that takes a resize back, and the HPA that measures by the new request."""

from typing import Any

import pytest

from answers.conversation import Conversation, pod
from answers.test_why_vpa import recommended, vpa
from podfit.answers.facts.snapshot import Reader
from podfit.answers.facts.target import POD, Target
from podfit.answers.plan.plan import plan
from podfit.answers.plan.resize_request import ResizeRequest, parse_amount
from podfit.answers.plan.result import Plan

APPS = "/apis/apps/v1/namespaces/shop"
VPAS = "/apis/autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalers"
HPAS = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers"


def owned(kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": True}


def shop(**documents: Any) -> Conversation:
    """A Deployment of two pods, so that one may be disturbed."""
    pods = [pod("web-1"), pod("web-2")]
    for made in pods:
        made["metadata"] |= {"ownerReferences": [owned("ReplicaSet", "web-abc")], "labels": {"app": "web"}}
        made["status"]["startTime"] = "2099-01-01T00:00:00Z"  # not long-lived, by any clock
    cluster = Conversation(36, *pods)
    cluster.documents[f"{APPS}/replicasets/web-abc"] = {
        "metadata": {"name": "web-abc", "ownerReferences": [owned("Deployment", "web")]},
        "spec": {"template": {"spec": pods[0]["spec"]}},
    }
    cluster.documents |= documents
    return cluster


async def planned(cluster: Conversation, **amounts: str) -> Plan:
    request = ResizeRequest({name: parse_amount(f"--{name}", text) for name, text in amounts.items()})
    found = await Reader(cluster.client, "shop").read(Target(POD, "web-1"), usage=True)
    return plan(found, request)


def hpa(metric: dict[str, Any], name: str = "web") -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    meta = {"name": "h", "namespace": "shop"}
    return {"metadata": meta, "spec": {"scaleTargetRef": target, "maxReplicas": 5, "metrics": [metric]}}


def cpu_share(**more: Any) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", **more}}}


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (vpa("InPlaceOrRecreate"), "vpa/web (InPlaceOrRecreate) takes it back: in its next pass it resizes web-1 in "),
        (vpa("InPlaceOrRecreate", {"maxAllowed": {"cpu": "700m"}}), '; its policy allows cpu at most 700m of "*"'),
        (vpa("", {"minAllowed": {"cpu": "1"}, "maxAllowed": {"cpu": "2"}}), '; its policy allows cpu 1 to 2 of "*"'),
        (vpa("Recreate", recommendation=None), "vpa/web (Recreate) recommends nothing yet, and may change these"),
        (vpa("Off"), ""),
        (vpa("Initial"), ""),
    ],
)
async def test_an_active_vpa_says_what_it_makes_of_it(document: dict[str, Any], told: str) -> None:
    notes = (await planned(shop(**{VPAS: {"items": [document]}}), cpu="3")).notes
    about = [note for note in notes if note.startswith("vpa/")]
    assert [told in note for note in about] == ([True] if told else [])


async def test_what_the_vpa_would_set_is_named_and_the_updater_is_asked() -> None:
    document = vpa("InPlaceOrRecreate")
    (back,) = [note for note in (await planned(shop(**{VPAS: {"items": [document]}}), cpu="3")).notes if "vpa/" in note]
    assert "cpu request 700m" in back
    within = vpa("InPlaceOrRecreate")
    within["status"]["recommendation"]["containerRecommendations"] = [
        recommended(upperBound={"cpu": "2", "memory": "1Gi"})
    ]
    (left,) = [note for note in (await planned(shop(**{VPAS: {"items": [within]}}), cpu="1")).notes if "vpa/" in note]
    assert left == "vpa/web (InPlaceOrRecreate) leaves these sizes in its next pass, and may change them later"


async def test_the_oldest_of_two_and_none_of_another_workload() -> None:
    old, new, other = vpa("InPlaceOrRecreate"), vpa("InPlaceOrRecreate"), vpa("InPlaceOrRecreate")
    old["metadata"] |= {"name": "old", "creationTimestamp": "2026-01-01T00:00:00Z"}
    new["metadata"] |= {"name": "new", "creationTimestamp": "2026-01-01T00:00:01Z"}
    other["spec"]["targetRef"]["name"] = "db"
    notes = (await planned(shop(**{VPAS: {"items": [new, other, old]}}), cpu="3")).notes
    assert [note.partition(" ")[0] for note in notes if note.startswith("vpa/")] == ["vpa/old"]


@pytest.mark.parametrize(
    ("metric", "moves"),
    [
        (cpu_share(averageUtilization=80), True),
        (
            {
                "type": "ContainerResource",
                "containerResource": {"name": "cpu", "container": "app", "target": {"averageUtilization": 80}},
            },
            True,
        ),
        (cpu_share(averageValue="300m"), False),
        ({"type": "Resource", "resource": {"name": "memory", "target": {"averageUtilization": 80}}}, False),
    ],
)
async def test_an_hpa_whose_share_moves_with_the_request(metric: dict[str, Any], moves: bool) -> None:
    notes = (await planned(shop(**{HPAS: {"items": [hpa(metric)]}}), cpu="1")).notes
    moved = (
        "hpa/h keeps cpu at 80 % of the request: with 1 instead of 500m the same usage is 0.5 times that share, "
        "and it wants fewer pods"
    )
    assert [note for note in notes if note.startswith("hpa/")] == ([moved] if moves else [])
    other = (await planned(shop(**{HPAS: {"items": [hpa(metric, "db")]}}), cpu="1")).notes
    assert not [note for note in other if note.startswith("hpa/")]


async def test_who_may_not_read_them_is_told_which_right_that_needs() -> None:
    cluster = shop()
    cluster.forbidden = (VPAS, HPAS)
    notes = (await planned(cluster, cpu="1")).notes
    assert [note.partition(" of shop")[0] for note in notes if "autoscalers" in note] == [
        "not read: verticalpodautoscalers",
        "not read: horizontalpodautoscalers",
    ]
