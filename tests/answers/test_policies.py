"""What a kubelet's configuration adds to a plan: static managers, swap, gates; and who ends for a critical pod."""

from typing import Any

import pytest

from answers.conversation import CONFIGZ, NODE, Conversation, configz, pod
from podfit.answers.facts.pod_state import SETTLED
from podfit.answers.facts.settings import Policies, policies_of
from podfit.answers.facts.snapshot import Reader, Snapshot
from podfit.answers.facts.target import POD, WORKLOADS, Target, parse_target
from podfit.answers.plan.amounts import parse_amount
from podfit.answers.plan.plan import plan
from podfit.answers.plan.resize_request import ResizeRequest
from podfit.answers.plan.result import DEFERRED, FITS, INFEASIBLE, Plan
from podfit.answers.why.pods import why_pod
from podfit.api.core.v1.pods.burst import CEILING
from podfit.core.features import FeatureGates
from podfit.core.times import parse_time
from podfit.decide.pod.resize_state import BURST

NOW = parse_time("2026-01-01T00:14:00Z")
CRITICAL = 2_000_000_000
ON_CPUS = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'
ON_MEMORY = 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"'


async def read(conversation: Conversation) -> Snapshot:
    return await Reader(conversation.client, "shop").read(Target(POD, "web"))


async def planned(conversation: Conversation, **amounts: str) -> Plan:
    request = ResizeRequest({name: parse_amount(f"--{name}", text) for name, text in amounts.items()})
    return plan(await read(conversation), request)


@pytest.mark.parametrize("minor", [33, 36])
@pytest.mark.parametrize(
    ("told", "amounts", "text"),
    [
        ({"cpuManagerPolicy": "static"}, {"cpu": "700m"}, ON_CPUS),
        ({"memoryManagerPolicy": "Static"}, {"memory": "300Mi"}, ON_MEMORY),
        ({"cpuManagerPolicy": "static"}, {"memory": "300Mi"}, ""),
        ({"memoryManagerPolicy": "Static"}, {"cpu": "700m"}, ""),
        (
            {"cpuManagerPolicy": "static", "featureGates": {"InPlacePodVerticalScalingExclusiveCPUs": True}},
            {"cpu": "700m"},
            "",
        ),
        ({"cpuManagerPolicy": None, "memorySwap": None}, {"cpu": "700m"}, ""),
    ],
)
async def test_static_managers_make_a_guaranteed_pod_infeasible(
    minor: int, told: dict[str, Any], amounts: dict[str, str], text: str
) -> None:
    conversation = Conversation(minor, pod())
    conversation.documents[CONFIGZ] = configz(**told)
    answer = (await planned(conversation, **amounts)).pods[0]
    assert (answer.verdict, answer.text) == ((INFEASIBLE, text) if text else (FITS, ""))


def burstable() -> dict[str, Any]:
    web = pod(qosClass="Burstable")
    resources = {"requests": {"cpu": "500m", "memory": "256Mi"}}
    web["spec"]["containers"][0]["resources"] = web["status"]["containerStatuses"][0]["resources"] = resources
    return web


async def test_a_burstable_pod_is_not_held_by_them() -> None:
    conversation = Conversation(36, burstable())
    conversation.documents[CONFIGZ] = configz(cpuManagerPolicy="static", memoryManagerPolicy="Static")
    assert (await planned(conversation, cpu="700m")).pods[0].verdict == FITS


async def test_why_tells_what_the_node_may_move_and_has_moved() -> None:
    web = burstable()
    text = '{"app":{"floor":{"cpu":"1"},"ceiling":{"cpu":"3"}}}'
    web["metadata"]["annotations"] = {CEILING: text}
    conversation = Conversation(36, web)
    told = why_pod((await read(conversation)).pods[0], await read(conversation), NOW)
    between = "its node may move the cpu limit of app between 1 and 3"
    assert (told.state, told.burst) == (SETTLED, (between,))
    said = {"type": BURST, "status": "True", "message": "app: cpu limit 1 to 3, since CPU is throttled"}
    web["status"]["conditions"] = [*web["status"].get("conditions", []), said]
    told = why_pod((await read(conversation)).pods[0], await read(conversation), NOW)
    assert told.burst == (between, "moved, and the spec follows: app: cpu limit 1 to 3, since CPU is throttled")


async def test_memory_of_a_pod_that_may_swap_stays() -> None:
    web = pod(qosClass="Burstable")
    resources = {"requests": {"memory": "256Mi"}, "limits": {"memory": "512Mi"}}
    web["spec"]["containers"][0]["resources"] = resources
    web["status"]["containerStatuses"][0] |= {"resources": resources, "allocatedResources": resources["requests"]}
    conversation = Conversation(36, web)
    conversation.documents[NODE]["status"]["nodeInfo"] = {"swap": {"capacity": 1 << 30}}
    assert (await planned(conversation, memory="300Mi:600Mi")).pods[0].verdict == FITS
    conversation.documents[CONFIGZ] = configz(memorySwap={"swapBehavior": "LimitedSwap"})
    answer = (await planned(conversation, memory="300Mi:600Mi")).pods[0]
    assert (answer.verdict, answer.text) == (INFEASIBLE, "In-place resize of containers with swap is not supported.")


@pytest.mark.parametrize(("web", "noted"), [(pod(), True), (burstable(), False)])
async def test_what_could_not_be_read_is_said_where_it_matters(web: dict[str, Any], *, noted: bool) -> None:
    answer = await planned(Conversation(36, web, forbidden=(CONFIGZ,)), cpu="700m")
    assert answer.pods[0].verdict == FITS
    text = "node n1 is assumed to have no static CPU and memory managers"
    assert any(text in note and "pods is forbidden" in note for note in answer.notes) == noted


async def test_a_configuration_that_is_none_is_not_guessed_at() -> None:
    for odd in ("<html>", ["none"]):
        conversation = Conversation(36, pod())
        conversation.documents[CONFIGZ] = odd if isinstance(odd, str) else [[1]]
        assert any("its configuration cannot be read" in note for note in (await planned(conversation, cpu="1")).notes)


@pytest.mark.parametrize(
    ("told", "known"),
    [
        ({"MemoryQoS": True, "SomethingElse": True}, {"MemoryQoS": True}),
        ({"InPlacePodVerticalScaling": False}, {}),  # locked since 1.35
        ({"PodLevelResources": False}, {}),  # not without what needs it
    ],
)
def test_gates_that_a_kubelet_was_told(told: dict[str, bool], known: dict[str, bool]) -> None:
    policies = policies_of(configz(featureGates=told))
    assert policies.on(FeatureGates()) == FeatureGates(known)
    assert policies_of({}) == Policies()


def crowded(*, priority: int, others: int = 0) -> Conversation:
    return Conversation(
        36,
        pod(spec={"priority": priority}),
        pod("small", cpu="500m"),
        pod("batch", cpu="2500m", spec={"priority": others}),
    )


async def test_a_critical_pod_has_others_end_and_the_plan_says_whom() -> None:
    answer = (await planned(crowded(priority=CRITICAL), cpu="3")).pods[0]
    assert (answer.verdict, answer.short_by, answer.ends) == (DEFERRED, "2 cpu", ("shop/batch",))
    assert (await planned(crowded(priority=CRITICAL), cpu="1")).pods[0].ends == (), "there is room"
    assert (await planned(crowded(priority=1000), cpu="3")).pods[0].ends == (), "it is not critical"
    assert (await planned(crowded(priority=CRITICAL, others=CRITICAL + 1), cpu="3")).pods[0].ends == ()


async def test_why_names_whom_the_node_ends() -> None:
    pending = {
        "type": "PodResizePending",
        "status": "True",
        "reason": "Deferred",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 1,
    }
    web = pod(cpu="3", allocated="500m", spec={"priority": CRITICAL}, conditions=[pending])
    found = await read(Conversation(36, web, pod("batch", cpu="2500m")))
    assert why_pod(found.pods[0], found, NOW).ends == ("shop/batch",)


async def test_room_that_a_critical_pod_waits_for_is_not_given_to_the_next() -> None:
    labelled = [pod("web-1", spec={"priority": CRITICAL}), pod("web-2", cpu="50m")]
    conversation = Conversation(36, *labelled, pod("batch", cpu="2500m"))
    conversation.documents |= {
        "/api/v1/namespaces/shop/pods": {"items": labelled},
        "/apis/apps/v1/namespaces/shop/deployments/web": {
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {"spec": labelled[0]["spec"]}}
        },
    }
    found = await Reader(conversation.client, "shop").read(parse_target("deploy/web", *WORKLOADS))
    answer = plan(found, ResizeRequest({"cpu": parse_amount("--cpu", "1600m")}))
    assert [(pod.verdict, pod.ends) for pod in answer.pods] == [(DEFERRED, ("shop/batch",)), (DEFERRED, ())]
