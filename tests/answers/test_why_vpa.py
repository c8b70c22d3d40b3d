"""A VPA's numbers: where they come from, what capped them, and why pods have others."""

from typing import Any

import pytest

from answers.conversation import PODS, Conversation, pod
from answers.test_top import DEPLOYMENT, VPAS
from podfit.answers.autoscaling.estimate_steps import estimate_steps
from podfit.answers.why.vpa import ABOVE, BELOW, WITHIN, VpaWhy, read_facts, why_vpa
from podfit.core.errors import ApiError
from podfit.core.times import parse_time

NOW = parse_time("2026-01-01T01:00:00Z")
SET = "/apis/apps/v1/namespaces/shop/replicasets/web-rs"
LIMITS = "/api/v1/namespaces/shop/limitranges"


def recommended(**more: Any) -> dict[str, Any]:
    return {
        "containerName": "app",
        "target": {"cpu": "700m", "memory": "256Mi"},
        "lowerBound": {"cpu": "600m"},
        "upperBound": {"cpu": "1"},
        "uncappedTarget": {"cpu": "700m", "memory": "256Mi"},
        **more,
    }


def vpa(mode: str = "", policy: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
    if mode:
        spec["updatePolicy"] = {"updateMode": mode}
    if policy is not None:
        spec["resourcePolicy"] = {"containerPolicies": [{"containerName": "*", **policy}]}
    written = [
        {"manager": "kubectl", "time": "2026-01-01T00:59:00Z", "subresource": None},
        {"manager": "recommender", "time": "2026-01-01T00:50:00Z", "subresource": "status"},
    ]
    return {
        "metadata": {"name": "web", "namespace": "shop", "managedFields": written},
        "spec": spec,
        "status": {"recommendation": {"containerRecommendations": [recommended()]}, **status},
    }


def owned_by(kind: str, name: str) -> list[dict[str, Any]]:
    return [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": True}]


def cluster(
    document: dict[str, Any], *pods: dict[str, Any], minor: int = 36, replicas: int | None = None, **more: Any
) -> Conversation:
    """Pods of the Deployment web, which wants `replicas`."""
    shown = pods or (pod("web-1"), pod("web-2"))
    for answer in shown:
        answer["metadata"] |= {"labels": {"app": "web"}, "ownerReferences": owned_by("ReplicaSet", "web-rs")}
    conversation = Conversation(minor, *shown, **more)
    conversation.documents |= {
        f"{VPAS}/web": document,
        PODS: {"items": [*shown, pod("other"), pod("old", phase="Succeeded")]},
        VPAS: {"items": [document]},
        SET: {
            "metadata": {
                "name": "web-rs",
                "namespace": "shop",
                "uid": "web-rs",
                "ownerReferences": owned_by("Deployment", "web"),
            },
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}},
        },
        DEPLOYMENT: {
            "metadata": {"name": "web", "namespace": "shop", "uid": "web"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
        },
    }
    return conversation


async def asked(conversation: Conversation) -> VpaWhy:
    return why_vpa(await read_facts(conversation.client, "web", "shop"), NOW)


@pytest.mark.parametrize("minor", [27, 30, 33, 36])
async def test_the_chain_of_a_number(minor: int) -> None:
    conversation = cluster(vpa("InPlaceOrRecreate"), minor=minor)
    found = await asked(conversation)
    assert (found.target, found.mode, found.updated, found.age) == (
        "Deployment/web",
        "InPlaceOrRecreate",
        "2026-01-01T00:50:00Z",
        600,
    )
    cpu, memory = found.chains
    assert (cpu.uncapped, cpu.target, cpu.lower, cpu.upper, cpu.capped) == ("700m", "700m", "600m", "1", "")
    assert (memory.resource, memory.lower) == ("memory", "")
    assert [(standing.pod, standing.resource, standing.request, standing.stands) for standing in found.stands] == [
        ("web-1", "cpu", "500m", BELOW),
        ("web-2", "cpu", "500m", BELOW),
    ]
    assert (found.good, found.pods) == (False, 2)
    assert bool(found.notes) == (minor < 33), "in-place resize is alpha there"
    assert {method for method, _ in conversation.asked} == {"GET"}


@pytest.mark.parametrize(
    ("policy", "uncapped", "target", "capped"),
    [
        ({"maxAllowed": {"cpu": "700m"}}, "900m", "700m", 'maxAllowed 700m of containerPolicies "*"'),
        ({"minAllowed": {"cpu": "700m"}}, "100m", "700m", 'minAllowed 700m of containerPolicies "*"'),
        ({"containerName": "app", "maxAllowed": {"cpu": "0.7"}}, "900m", "700m", "maxAllowed 700m of container"),
        ({"maxAllowed": {"cpu": "2"}}, "900m", "700m", "lowered by something that this object does not name"),
        ({}, "100m", "700m", "raised by something that this object does not name"),
        (None, "700m", "700m", ""),
    ],
)
async def test_what_capped_it(policy: dict[str, Any] | None, uncapped: str, target: str, capped: str) -> None:
    found = recommended(uncappedTarget={"cpu": uncapped}, target={"cpu": target})
    document = vpa(policy=policy, recommendation={"containerRecommendations": [found]})
    chain = (await asked(cluster(document))).chains[0]
    assert chain.capped.startswith(capped)
    assert bool(chain.capped) == bool(capped)


async def test_the_largest_node_capped_it() -> None:
    found = recommended(uncappedTarget={"cpu": "80"}, target={"cpu": "64"})
    said = {"type": "podfit.dev/CappedToNode", "status": "True", "message": "cpu of app"}
    document = vpa(recommendation={"containerRecommendations": [found]}, conditions=[said])
    answer = await asked(cluster(document))
    assert answer.chains[0].capped == "what the largest node has"
    assert answer.conditions == ("podfit.dev/CappedToNode (cpu of app)",)


DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "no room"}


@pytest.mark.parametrize(
    ("document", "pods", "why"),
    [
        (vpa("Off"), (), "mode Off changes no pods that run"),
        (vpa("Initial"), (), "mode Initial changes no pods that run"),
        (vpa(policy={"mode": "Off"}), (), 'containerPolicies has mode Off for "*"'),
        (vpa(policy={"controlledResources": ["memory"]}), (), "controlledResources does not name cpu"),
        (vpa(), (pod("web-1", cpu="500m", allocated="300m", conditions=[DEFERRED]),), "a resize is deferred: no room"),
        (vpa(), (pod("web-1"),), "the updater's next pass resizes it in place"),
        (
            vpa(),
            (pod("web-1", policy="RestartContainer"),),
            "its workload has fewer pods than minReplicas, and a resize",
        ),
        (vpa("InPlace"), (pod("web-1"), pod("web-2")), "the updater's next pass resizes it in place"),
        (vpa(), (pod("web-1", cpu="650m"), pod("web-2", cpu="650m")), "left that are not older than 12 hours"),
        (vpa(), (pod("web-1", cpu="3"), pod("web-2", cpu="3")), "the updater's next pass resizes it in place"),
    ],
)
async def test_why_a_pod_differs(document: dict[str, Any], pods: tuple[dict[str, Any], ...], why: str) -> None:
    assert why in (await asked(cluster(document, *pods))).stands[0].why


async def test_a_target_in_the_spec_that_the_node_has_not_granted_is_not_reached() -> None:
    found = await asked(cluster(vpa("InPlace"), pod("web-1", cpu="700m", allocated="500m", conditions=[DEFERRED])))
    (stand,) = found.stands
    assert (stand.request, stand.stands, stand.why) == (
        "500m",
        BELOW,
        "the updater leaves it: a resize is deferred: no room",
    )
    assert not found.good


async def test_pods_within_the_bounds_are_where_they_may_be() -> None:
    found = await asked(cluster(vpa(), pod("web-1", cpu="650m"), pod("web-2", cpu="700m")))
    assert ([standing.stands for standing in found.stands], found.good) == ([WITHIN], True)


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        ({"max": {"cpu": "600m"}}, "cpu capped to fit Max in container LimitRange"),
        ({"min": {"cpu": "2"}}, "cpu capped to fit Min in container LimitRange"),
        ({"max": {"cpu": "2"}}, "the updater's next pass resizes it in place"),
    ],
)
async def test_a_limit_range_is_obeyed(limit: dict[str, Any], why: str) -> None:
    conversation = cluster(vpa())
    document = {"metadata": {"name": "small"}, "spec": {"limits": [{"type": "Container", **limit}]}}
    conversation.documents[LIMITS] = {"items": [document]}
    assert why in (await asked(conversation)).stands[0].why


@pytest.mark.parametrize(
    ("asked_for", "limit", "stands"),
    [
        ("500m", {"max": {"cpu": "500m"}}, WITHIN),
        ("900m", {"max": {"cpu": "800m"}}, ABOVE),
        ("650m", {"min": {"cpu": "660m"}}, BELOW),
    ],
)
async def test_bounds_are_those_that_the_updater_compares_with(
    asked_for: str, limit: dict[str, Any], stands: str
) -> None:
    """Moved into the LimitRange, as its target is."""
    conversation = cluster(vpa(), pod("web-1", cpu=asked_for), pod("web-2", cpu=asked_for))
    document = {"metadata": {"name": "small"}, "spec": {"limits": [{"type": "Container", **limit}]}}
    conversation.documents[LIMITS] = {"items": [document]}
    assert {stand.stands for stand in (await asked(conversation)).stands if stand.resource == "cpu"} == {stands}


QUOTAS = "/api/v1/namespaces/shop/resourcequotas"
STORAGE = {
    "metadata": {"name": "least", "namespace": "shop"},
    "spec": {"limits": [{"type": "Container", "min": {"ephemeral-storage": "1Gi"}}]},
}
QUOTA = {
    "metadata": {"name": "small", "namespace": "shop"},
    "spec": {"hard": {"requests.cpu": "1200m"}},
    "status": {"hard": {"requests.cpu": "1200m"}, "used": {"requests.cpu": "1100m"}},
}


@pytest.mark.parametrize(
    ("path", "document", "why"),
    [
        (LIMITS, STORAGE, "minimum ephemeral-storage usage per Container is 1Gi.  No request is specified"),
        (QUOTAS, QUOTA, "exceeded quota: small, requested: requests.cpu=200m, used: requests.cpu=1100m"),
    ],
)
async def test_what_the_api_refuses_is_not_foretold_as_done(path: str, document: dict[str, Any], why: str) -> None:
    conversation = cluster(vpa("InPlace"), pod("web-1"), pod("web-2"))
    conversation.documents[path] = {"items": [document]}
    found = await asked(conversation)
    assert [step.split()[:4] for step in found.next] == [["asks", "to", "resize", f"web-{number}"] for number in (1, 2)]
    assert all("cpu request 700m" in step and "which the API refuses" in step and why in step for step in found.next)
    assert all("its resize was refused" in stand.why for stand in found.stands)


def four_pods(mode: str, *, quota: str = "", node_cpu: str = "") -> Conversation:
    """Two at a time may be disturbed."""
    conversation = cluster(vpa(mode), *(pod(f"web-{number}") for number in range(4)), replicas=4)
    if quota:
        amounts = {"requests.cpu": quota}
        used = {"hard": amounts, "used": {"requests.cpu": "2"}}
        document = {"metadata": QUOTA["metadata"], "spec": {"hard": amounts}, "status": used}
        conversation.documents[QUOTAS] = {"items": [document]}
    if node_cpu:
        (node,) = conversation.documents["/api/v1/nodes"]["items"]
        node["status"]["allocatable"]["cpu"] = node_cpu
    return conversation


async def test_what_one_resize_uses_up_of_a_quota_the_next_does_not_have() -> None:
    found = await asked(four_pods("InPlace", quota="2300m"))
    assert [step.split()[:2] for step in found.next][:2] == [["resizes", "web-0"], ["asks", "to"]]
    assert "used: requests.cpu=2200m" in found.next[1]


async def test_what_the_updater_does_instead_is_told() -> None:
    found = await asked(four_pods("InPlaceOrRecreate", quota="2100m"))
    assert any(step.startswith("asks to resize web-0 in place") for step in found.next)
    assert "evicts web-0, as far as disruption budgets allow" in found.next


async def test_what_no_node_of_that_size_can_hold_is_refused_where_nodes_are_known() -> None:
    refused = (await asked(four_pods("InPlace", node_cpu="600m"))).next
    assert ["which the API refuses" in step for step in refused] == [True] * 4
    unreadable = four_pods("InPlace", node_cpu="600m")
    unreadable.forbidden = ("/api/v1/nodes",)
    found = await asked(unreadable)
    assert found.next[0].startswith("resizes web-0 in place")
    assert any("nodes, so that it is not foretold what theirs refuse" in note for note in found.notes)


async def test_a_server_without_the_subresource_refuses_every_resize() -> None:
    found = await asked(cluster(vpa("InPlace"), pod("web-1"), pod("web-2"), minor=31))
    assert ['which the API refuses: pods "web-' in step for step in found.next] == [True, True]


async def test_without_a_recommendation_its_conditions_speak() -> None:
    conditions = [
        {
            "type": "NoPodsMatched",
            "status": "True",
            "reason": "Selector",
            "message": "none",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        },
        {"type": "RecommendationProvided", "status": "False"},
    ]
    document = vpa(recommendation=None, conditions=conditions)
    document["metadata"]["managedFields"] = None
    found = await asked(cluster(document))
    assert (found.chains, found.good, found.updated) == ((), False, "2026-01-01T00:00:00Z")
    assert found.conditions == ("NoPodsMatched (Selector: none)",)
    assert "there is no recommendation" in found.notes[0]


async def test_why_there_is_no_recommendation_is_said_by_what_is_there() -> None:
    """A recommender that is slow is not to blame where there is nothing to look at."""
    none = cluster(vpa(recommendation=None))
    none.documents[PODS] = {"items": []}
    assert (await asked(none)).notes == ("there is no recommendation: no pod of Deployment/web runs",)
    lost = cluster(vpa(recommendation=None))
    del lost.documents[DEPLOYMENT]
    told = (await asked(lost)).notes
    assert told[0] == "there is no recommendation: the pods of Deployment/web could not be found"
    assert told[1].startswith("not read: the pods of vpa/web: ")


async def test_who_ran_out_of_memory_is_named() -> None:
    killed = pod("web-1")
    ended = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    for status in killed["status"]["containerStatuses"]:
        status["lastState"] = ended
    (note,) = (await asked(cluster(vpa(), killed, pod("web-2")))).notes
    assert note.startswith("app of web-1 ran out of memory: ")


async def test_what_is_missing_is_said_and_the_rest_answered() -> None:
    found = await asked(cluster(vpa(policy={"controlledValues": "RequestsOnly"}), forbidden=(DEPLOYMENT, LIMITS)))
    assert (len(found.chains), found.pods) == (2, 0)
    assert sum("not read: " in note for note in found.notes) == 2
    assert "limits stay as they are: controlledValues is RequestsOnly for *" in found.notes
    odd = vpa()
    odd["spec"]["targetRef"] = {"kind": "Rollout", "name": "web"}
    assert "Rollout shop/web does not exist" in (await asked(cluster(odd))).notes[0]
    gone = cluster(vpa())
    gone.documents[PODS] = {"items": []}
    assert (await asked(gone)).notes == ("no pod of Deployment/web runs",)


async def test_a_cluster_without_vpas_says_so() -> None:
    with pytest.raises(ApiError, match="the autoscaler's CRDs are not installed"):
        await asked(Conversation(36))
    with pytest.raises(ApiError, match="is forbidden"):
        await asked(Conversation(36, forbidden=(f"{VPAS}/web",)))


async def test_what_the_updater_would_do_next_is_said() -> None:
    lonely = cluster(vpa())
    for made in lonely.documents[PODS]["items"]:
        made["metadata"]["ownerReferences"] = []
    assert (await asked(lonely)).next == (), "of nobody's pods it changes none"
    pods = pod("web-1"), pod("web-2")
    found = await asked(cluster(vpa(), *pods))
    assert found.next == (
        "resizes web-1 in place: cpu request 700m, memory request 256Mi, cpu limit 700m, memory limit 256Mi",
    )
    document = vpa("Recreate")
    document["metadata"]["annotations"] = {"podfit.dev/update-mode": "upstream"}
    assert (await asked(cluster(document, *pods))).next == ("evicts web-1, as far as disruption budgets allow",)
    assert (await asked(cluster(vpa("Off"), *pods))).next == ()


async def test_a_checkpoint_tells_how_a_target_came_about() -> None:
    seen = {"cpu": "163m", "memory": "250Mi"}
    found = recommended(uncappedTarget=seen, target=seen)
    conversation = cluster(vpa(recommendation={"containerRecommendations": [found]}))
    path = "/apis/autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalercheckpoints"
    histogram = {"referenceTimestamp": "2026-01-01T00:00:00Z", "bucketWeights": {"10": 10000}, "totalWeight": 10.0}
    status = {
        "version": "v3",
        "cpuHistogram": histogram,
        "memoryHistogram": histogram,
        "firstSampleStart": "2025-12-31T00:00:00Z",
        "lastSampleStart": "2026-01-01T00:00:00Z",
        "totalSamplesCount": 100,
    }
    items = [
        {
            "metadata": {"name": f"{name}-app", "namespace": "shop"},
            "spec": {"vpaObjectName": name, "containerName": "app"},
            "status": status,
        }
        for name in ("web", "other")
    ]
    conversation.documents[path] = {"items": items}
    facts = await read_facts(conversation.client, "web", "shop")
    steps = tuple(
        step for chain in estimate_steps(facts.checkpoints, facts.vpa, NOW.timestamp()).values() for step in chain
    )
    assert [(step.resource, step.step, step.value) for step in steps[:3]] == [
        ("cpu", "percentile", "142m"),
        ("cpu", "margin", "163m"),
        ("cpu", "minimum", "163m"),
    ]
    assert steps[0].because == "90 % of 100 CPU samples were not above it"
    assert why_vpa(facts, NOW, steps).steps == steps


@pytest.mark.parametrize(("target", "told"), [("410m", "6150m"), ("200m", ""), ("410m", "")])
async def test_a_limit_in_proportion_that_no_node_has_is_told(target: str, told: str) -> None:
    """B10: 10m of 150m grew to 410m of 6150m on nodes of 4 CPUs."""
    wide = pod("web-1")
    resources = {"requests": {"cpu": "10m"}, "limits": {"cpu": "150m"}}
    wide["spec"]["containers"][0]["resources"] = resources
    wide["status"]["containerStatuses"][0] |= {"resources": resources, "allocatedResources": {"cpu": "10m"}}
    found = recommended(target={"cpu": target}, uncappedTarget={"cpu": target})
    only = {"controlledValues": "RequestsOnly"} if target == "410m" and not told else {}
    document = vpa(policy=only, recommendation={"containerRecommendations": [found]})
    notes = (await asked(cluster(document, wide))).notes
    wanted = f"the cpu limit of app becomes {told}, more than the 4 of the largest node"
    assert [note.startswith(wanted) for note in notes if "largest node" in note] == ([True] if told else [])


async def test_pods_that_are_missing_keep_the_others_from_being_disturbed() -> None:
    """Two of four run: the updater leaves both, and so it is told, with its reason."""
    found = await asked(cluster(vpa(), replicas=4))
    assert not any(step.startswith("resizes ") for step in found.next)
    assert {stand.why for stand in found.stands} == {
        "the updater leaves it: 2 of 4 pods that are wanted run undisturbed, and 2 have to stay so"
    }


async def test_a_container_that_is_named_twice_goes_by_the_first_policy() -> None:
    """As the recommender and the updater read it."""
    document = vpa()
    document["spec"]["resourcePolicy"] = {
        "containerPolicies": [
            {"containerName": "app", "controlledResources": ["memory"]},
            {"containerName": "app", "controlledResources": ["cpu", "memory"]},
        ]
    }
    assert "controlledResources does not name cpu" in (await asked(cluster(document))).stands[0].why


@pytest.mark.parametrize("kind", ["another owner", "an older VPA"])
async def test_a_pod_that_only_the_selector_matches_is_not_this_vpas(kind: str) -> None:
    conversation = cluster(vpa())
    if kind == "another owner":
        conversation.documents[SET]["metadata"]["ownerReferences"] = owned_by("Deployment", "api")
        other = {"metadata": {"name": "api", "namespace": "shop", "uid": "api"}, "spec": {"selector": None}}
        conversation.documents[DEPLOYMENT.removesuffix("web") + "api"] = other
    else:
        older = vpa()
        older["metadata"] |= {"name": "first", "creationTimestamp": "2020-01-01T00:00:00Z"}
        conversation.documents[VPAS]["items"].append(older)
        conversation.documents[f"{VPAS}/web"]["metadata"]["creationTimestamp"] = "2021-01-01T00:00:00Z"
    found = await asked(conversation)
    assert found.next == ()
    assert found.stands[0].why.startswith("its topmost controller is not what this VPA names, or an older VPA")
