"""A plan names the VPA that takes a resize back, and the HPA that measures by the new request."""

from typing import Any

import pytest

from answers.conversation import LEASES, Conversation, lease, pod
from answers.test_why_vpa import recommended, vpa
from podfit.answers.facts.snapshot import Reader
from podfit.answers.facts.target import POD, Target
from podfit.answers.plan.amounts import parse_amount
from podfit.answers.plan.plan import plan
from podfit.answers.plan.resize_request import ResizeRequest
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
    selector = {"matchLabels": {"app": "web"}}
    cluster.documents[f"{APPS}/replicasets/web-abc"] = {
        "metadata": {
            "name": "web-abc",
            "namespace": "shop",
            "uid": "web-abc",
            "ownerReferences": [owned("Deployment", "web")],
        },
        "spec": {"selector": selector, "template": {"spec": pods[0]["spec"]}},
    }
    cluster.documents[f"{APPS}/deployments/web"] = {
        "metadata": {"name": "web", "namespace": "shop", "uid": "web"},
        "spec": {"selector": selector},
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


async def test_what_is_taken_back_is_not_what_the_api_refuses() -> None:
    """550m are planned, which leaves 100m of the quota; the VPA wants 700m."""
    quota = {
        "metadata": {"name": "small", "namespace": "shop"},
        "spec": {"hard": {"requests.cpu": "2"}},
        "status": {"hard": {"requests.cpu": "2"}, "used": {"requests.cpu": "1850m"}},
    }
    path = "/api/v1/namespaces/shop/resourcequotas"
    told = []
    for quotas in ([], [quota]):
        cluster = shop(**{VPAS: {"items": [vpa("InPlace")]}, path: {"items": quotas}})
        told += [note for note in (await planned(cluster, cpu="550m")).notes if note.startswith("vpa/")]
    free, full = told
    assert "takes it back: in its next pass it resizes web-1 in place: cpu request 700m" in free
    assert "would take it back: in its next pass it asks to resize web-1 in place: cpu request 700m" in full
    assert "exceeded quota: small, requested: requests.cpu=150m, used: requests.cpu=1900m" in full


async def test_the_oldest_of_two_and_none_of_another_workload() -> None:
    old, new, other = vpa("InPlaceOrRecreate"), vpa("InPlaceOrRecreate"), vpa("InPlaceOrRecreate")
    old["metadata"] |= {"name": "old", "creationTimestamp": "2026-01-01T00:00:00Z"}
    new["metadata"] |= {"name": "new", "creationTimestamp": "2026-01-01T00:00:01Z"}
    other["spec"]["targetRef"]["name"] = "db"
    notes = (await planned(shop(**{VPAS: {"items": [new, other, old]}}), cpu="3")).notes
    assert [note.partition(" ")[0] for note in notes if note.startswith("vpa/")] == ["vpa/old"]


async def test_an_older_one_that_changes_nothing_is_in_nobodys_way() -> None:
    """The updater does not look at it; the answer took it for the pod's own."""
    off, acts = vpa("Off"), vpa("InPlaceOrRecreate")
    off["metadata"] |= {"name": "off", "creationTimestamp": "2026-01-01T00:00:00Z"}
    acts["metadata"] |= {"name": "acts", "creationTimestamp": "2026-01-01T00:00:01Z"}
    notes = (await planned(shop(**{VPAS: {"items": [acts, off]}}), cpu="3")).notes
    assert [note.partition(" ")[0] for note in notes if note.startswith("vpa/")] == ["vpa/acts"]


async def test_one_whose_labels_do_not_match_is_of_no_concern() -> None:
    documents = {VPAS: {"items": [vpa("InPlaceOrRecreate")]}}
    cluster = shop(**documents)
    cluster.documents[f"{APPS}/deployments/web"]["spec"]["selector"] = {"matchLabels": {"app": "other"}}
    assert not [note for note in (await planned(cluster, cpu="3")).notes if note.startswith("vpa/")]


@pytest.mark.parametrize("where", [f"{APPS}/replicasets/web-abc", f"{APPS}/deployments/web"])
async def test_who_names_an_owner_that_was_made_anew_belongs_to_nobody(where: str) -> None:
    """A reference is of one UID: neither the VPA nor the HPA of the new one is the pod's."""
    documents = {VPAS: {"items": [vpa("InPlaceOrRecreate")]}, HPAS: {"items": [hpa(cpu_share(averageUtilization=80))]}}
    cluster = shop(**documents)
    assert {note[:4] for note in (await planned(cluster, cpu="3")).notes} >= {"vpa/", "hpa/"}
    cluster.documents[where]["metadata"]["uid"] = "another"
    assert not {note[:4] for note in (await planned(cluster, cpu="3")).notes} & {"vpa/", "hpa/"}


async def test_assumed_settings_of_the_updater_are_named() -> None:
    cluster = shop(**{VPAS: {"items": [vpa("InPlaceOrRecreate")]}})
    cluster.documents[f"{LEASES}/vpa-updater"] = lease("upstream")
    (note,) = [note for note in (await planned(cluster, cpu="3")).notes if note.startswith("vpa/")]
    assert note.endswith("are assumed: upstream holds the Lease kube-system/vpa-updater and does not say them")


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


async def test_an_hpa_measures_by_what_lasts_and_not_by_what_only_starts() -> None:
    """An init container that needs more than all others is in the pod's requests, and not in what an HPA divides by."""
    cluster = shop(**{HPAS: {"items": [hpa(cpu_share(averageUtilization=80))]}})
    for made in cluster.documents["/api/v1/pods"]["items"]:
        amounts = {"cpu": "3", "memory": "1Gi"}
        init = {"name": "init", "image": "i", "resources": {"requests": amounts, "limits": amounts}}
        made["spec"]["initContainers"] = [init]
    notes = (await planned(cluster, cpu="1")).notes
    assert [note.partition(":")[0] for note in notes if note.startswith("hpa/")] == [
        "hpa/h keeps cpu at 80 % of the request"
    ]


async def test_who_may_not_read_them_is_told_which_right_that_needs() -> None:
    cluster = shop()
    cluster.forbidden = (VPAS, HPAS)
    notes = (await planned(cluster, cpu="1")).notes
    assert [note.partition(" of shop")[0] for note in notes if "autoscalers" in note] == [
        "not read: verticalpodautoscalers",
        "not read: horizontalpodautoscalers",
    ]
