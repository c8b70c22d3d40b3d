"""The same question to servers of 1.26 to 1.36: each is planned for by its own rules."""

import pytest

from answers.conversation import METRICS, PODS, Conversation, pod
from podfit.answers.facts.ages import age_of
from podfit.answers.facts.snapshot import Reader, Snapshot
from podfit.answers.facts.target import POD, WORKLOADS, Target, TargetError, parse_target
from podfit.answers.plan.amounts import parse_amount
from podfit.answers.plan.plan import plan
from podfit.answers.plan.resize_request import ResizeRequest
from podfit.answers.plan.result import DEFERRED, ERROR, FITS, INFEASIBLE, NOT_KNOWN, REFUSED, Plan
from podfit.answers.why.node import why_node
from podfit.answers.why.pods import why_pod
from podfit.core.errors import ApiError
from podfit.core.times import parse_time

NOW = parse_time("2026-01-01T00:14:00Z")


async def read(conversation: Conversation, name: str = "web") -> Snapshot:
    return await Reader(conversation.client, "shop").read(Target(POD, name), usage=True)


async def planned(conversation: Conversation, **amounts: str) -> Plan:
    request = ResizeRequest({name: parse_amount(f"--{name}", text) for name, text in amounts.items()})
    return plan(await read(conversation), request)


@pytest.mark.parametrize("minor", [27, 30, 33, 36])
async def test_what_fits_fits_everywhere_and_nothing_is_written(minor: int) -> None:
    conversation = Conversation(minor, pod())
    answer = await planned(conversation, cpu="700m")
    assert [pod.verdict for pod in answer.pods] == [FITS]
    assert [(change.side, change.after) for change in answer.pods[0].changes] == [
        ("requests", "700m"),
        ("limits", "700m"),
    ]
    assert {method for method, _ in conversation.asked} == {"GET"}
    assert bool(answer.notes) == (minor < 33), "an alpha feature is off unless somebody set its gate"


async def test_before_1_27_nothing_can_be_resized() -> None:
    answer = await planned(Conversation(26, pod()), cpu="700m")
    assert (answer.pods[0].verdict, answer.good) == (REFUSED, False)
    assert "1.27 is the first" in answer.pods[0].text


@pytest.mark.parametrize(
    ("minor", "verdict", "text"),
    [
        (36, REFUSED, "node didn't have enough allocatable resources: cpu, requested: 9000, allocatable: 4000"),
        (35, INFEASIBLE, "Node didn't have enough capacity: cpu, requested: 9000, capacity: 4000"),
        (27, INFEASIBLE, "Node didn't have enough capacity: cpu, requested: 9000, capacity: 4000"),
    ],
)
async def test_beyond_the_node_is_refused_by_the_api_or_by_the_node(minor: int, verdict: str, text: str) -> None:
    answer = await planned(Conversation(minor, pod()), cpu="9")
    assert answer.pods[0].verdict == verdict
    assert answer.pods[0].text.removeprefix('pods "web" is forbidden: ') == text


@pytest.mark.parametrize(
    ("minor", "policy", "verdict"), [(33, "", REFUSED), (33, "RestartContainer", FITS), (34, "", FITS), (36, "", FITS)]
)
async def test_1_33_lowers_no_memory_limit_without_a_restart(minor: int, policy: str, verdict: str) -> None:
    answer = await planned(Conversation(minor, pod(policy=policy)), memory="128Mi")
    assert answer.pods[0].verdict == verdict
    assert bool(answer.pods[0].restarts) == bool(policy)


@pytest.mark.parametrize(("minor", "verdict"), [(35, REFUSED), (36, FITS)])
async def test_pod_level_resources_are_resized_from_1_36_on(minor: int, verdict: str) -> None:
    level = {"cpu": "1", "memory": "512Mi"}
    answer = await planned(Conversation(minor, pod(spec={"resources": {"requests": level, "limits": level}})), cpu="2")
    assert answer.pods[0].verdict == verdict


@pytest.mark.parametrize(("used", "verdict"), [("200Mi", ERROR), ("64Mi", FITS)])
async def test_usage_says_whether_less_memory_is_safe(used: str, verdict: str) -> None:
    conversation = Conversation(36, pod())
    containers = [{"name": "app", "usage": {"memory": used}}]
    item = {"metadata": {"namespace": "shop", "name": "web"}, "containers": containers}
    conversation.documents[METRICS] = {"items": [item]}
    answer = await planned(conversation, memory="128Mi")
    assert (answer.pods[0].verdict, answer.good) == (verdict, verdict == FITS)
    assert ("below current usage (209715200)" in answer.pods[0].text) == (verdict == ERROR)


async def test_who_waits_is_told_with_its_place_and_what_would_help() -> None:
    pending = {
        "type": "PodResizePending",
        "status": "True",
        "reason": "Deferred",
        "message": "old text",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 1,
    }
    web = pod(cpu="2", allocated="500m", conditions=[pending], spec={"priority": 10})
    older = pod(
        "api",
        cpu="3",
        allocated="500m",
        spec={"priority": 10},
        conditions=[pending | {"lastTransitionTime": "2025-12-31T00:00:00Z"}],
    )
    conversation = Conversation(36, web, older, pod("batch", cpu="2500m"))
    found = await read(conversation)
    answer = why_pod(found.pods[0], found, NOW)
    assert (answer.state, answer.waited, answer.short_by) == ("deferred", 840, "1 cpu")
    assert (answer.position, answer.queued, answer.ahead) == (2, 2, ("shop/api",))
    assert [holder.pod for holder in answer.holders] == ["shop/batch", "shop/api"]
    assert answer.frees == ("shop/batch",)
    assert "requested: 2000, used: 3000, capacity: 4000" in answer.message
    sizes = {(size.resource, size.side): size for size in answer.sizes}
    assert sizes["cpu", "requests"].desired == "2"
    assert sizes["cpu", "requests"].allocated == sizes["cpu", "requests"].actual == "500m"
    node = why_node("n1", found, NOW)
    assert (node.promised["cpu"], node.counted["cpu"]) == ("3500m", "7500m")
    assert [why.pod for why in node.waiting] == ["api", "web"]
    assert any("4 cpu fuller" in note for note in node.notes)


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ("Deferred", "deferred"),
        ("Infeasible", "infeasible"),
        ("InProgress", "in progress"),
        ("Proposed", "not seen yet"),
        ("", "settled"),
    ],
)
async def test_before_1_33_status_resize_is_read(told: str, state: str) -> None:
    found = await read(Conversation(30, pod(resize=told)))
    assert why_pod(found.pods[0], found, NOW).state == state


async def test_missing_rights_are_said_and_the_rest_is_answered() -> None:
    conversation = Conversation(36, pod(), forbidden=("/api/v1/pods", "/api/v1/namespaces/shop/resourcequotas"))
    answer = await planned(conversation, cpu="700m")
    assert (answer.pods[0].verdict, answer.pods[0].changes != ()) == (NOT_KNOWN, True)
    assert (
        answer.pods[0].text
        == 'who else is on node n1 is not known: pods is forbidden: User "jo" cannot list /api/v1/pods'
    )
    assert sum("not read" in note for note in answer.notes) == 2


async def test_without_the_pod_itself_there_is_no_answer() -> None:
    with pytest.raises(ApiError, match="cannot list"):
        await read(Conversation(36, pod(), forbidden=(f"{PODS}/web",)))
    with pytest.raises(ApiError, match="does not serve deployments"):
        await Reader(Conversation(36).client, "shop").read(Target(WORKLOADS[0], "web"))


async def test_a_workload_is_its_pods_and_says_what_the_next_rollout_does() -> None:
    labelled = [pod(name, spec={}) for name in ("web-1", "web-2")]
    conversation = Conversation(36, *labelled, pod("batch", cpu="2"))
    template = {"spec": labelled[0]["spec"]}
    conversation.documents["/apis/apps/v1/namespaces/shop/deployments/web"] = {
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    }
    conversation.documents[PODS] = {"items": labelled}
    found = await Reader(conversation.client, "shop").read(parse_target("deploy/web", *WORKLOADS))
    answer = plan(found, ResizeRequest({"cpu": parse_amount("--cpu", "1300m")}))
    assert [(pod.pod, pod.verdict) for pod in answer.pods] == [("web-1", FITS), ("web-2", DEFERRED)]
    assert answer.order == ("web-1",)
    assert answer.pods[1].blocked_by == ("shop/batch", "shop/web-1")
    assert any("next rollout" in note for note in answer.notes)


async def test_a_job_rolls_nothing_out() -> None:
    running = pod("etl-x7", spec={})
    running["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "etl", "uid": "u", "controller": True}
    ]
    conversation = Conversation(36, running)
    conversation.documents["/apis/batch/v1/namespaces/shop/jobs/etl"] = {
        "spec": {"selector": {"matchLabels": {"app": "etl"}}, "template": {"spec": running["spec"]}}
    }
    conversation.documents[PODS] = {"items": [running]}
    found = await Reader(conversation.client, "shop").read(parse_target("job/etl", *WORKLOADS))
    answer = plan(found, ResizeRequest({"cpu": parse_amount("--cpu", "600m")}))
    assert "the template is not changed: a pod that is made anew has its sizes" in answer.notes


def test_vendors_write_their_minor_version_with_a_plus() -> None:
    assert (age_of("33+", "v1.33.1-eks").minor, age_of("", "x").minor) == (33, 36)


@pytest.mark.parametrize("text", ["web", "pod/", "/web", "service/web"])
def test_a_target_is_kind_and_name(text: str) -> None:
    with pytest.raises(TargetError, match="pod/NAME"):
        parse_target(text, POD)
