"""What is asked and not granted, what would fail or crash, and what has no node: never "unchanged", never "fits"."""

from typing import Any

import pytest

from answers.conversation import METRICS, Conversation, pod
from answers.test_why_node import unscheduled
from podfit.answers.facts.snapshot import Reader
from podfit.answers.facts.target import NODE, POD, Target
from podfit.answers.plan.amounts import parse_amount
from podfit.answers.plan.plan import plan
from podfit.answers.plan.resize_request import ResizeRequest
from podfit.answers.plan.result import (
    CRASH,
    DEFERRED,
    ENDED,
    ERROR,
    FITS,
    IN_PROGRESS,
    INFEASIBLE,
    UNCHANGED,
    UNSCHEDULABLE,
    PodPlan,
)
from podfit.answers.why.node import why_node
from podfit.answers.why.pods import PodWhy, why_pod
from podfit.core.times import parse_time

NOW = parse_time("2026-01-01T00:14:00Z")
FULL = "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"
BELOW = "memory limit (31457280) below current usage (41033728)"
TOO_LOW = f'cannot decrease memory limits: [attempting to set pod {BELOW}, attempting to set container "app" {BELOW}]'


def condition(kind: str, reason: str = "", message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": "True", "reason": reason, "message": message, "observedGeneration": 1}


async def asked(conversation: Conversation, name: str = "web", **amounts: str) -> PodPlan:
    found = await Reader(conversation.client, "shop").read(Target(POD, name), usage=True)
    return plan(found, ResizeRequest({key: parse_amount(f"--{key}", text) for key, text in amounts.items()})).pods[0]


async def explained(conversation: Conversation, name: str = "web") -> PodWhy:
    found = await Reader(conversation.client, "shop").read(Target(POD, name))
    return why_pod(found.pods[0], found, NOW)


def deferred() -> Conversation:
    waiting = condition("PodResizePending", "Deferred", FULL)
    return Conversation(36, pod(cpu="3", allocated="2", conditions=[waiting]), pod("big", cpu="2"))


def used(conversation: Conversation, memory: str) -> Conversation:
    item = {
        "metadata": {"namespace": "shop", "name": "web"},
        "containers": [{"name": "app", "usage": {"memory": memory}}],
    }
    conversation.documents[METRICS] = {"items": [item]}
    return conversation


# ------------------------------------------------------------------ asked for and not granted


async def test_a_request_that_waits_already_is_not_unchanged() -> None:
    found = await asked(deferred(), cpu="3")
    assert (found.verdict, found.good, found.repeated) == (DEFERRED, False, True)
    assert (found.text, found.short_by) == (FULL, "1 cpu")
    assert {(change.before, change.after) for change in found.changes} == {("2", "3")}


@pytest.mark.parametrize(
    ("told", "verdict", "good"),
    [
        (condition("PodResizePending", "Infeasible", "never"), INFEASIBLE, False),
        (condition("PodResizeInProgress", "Error", TOO_LOW), ERROR, False),
        (condition("PodResizeInProgress"), IN_PROGRESS, True),
    ],
)
async def test_whatever_is_outstanding_is_told(told: dict[str, Any], verdict: str, good: bool) -> None:
    found = await asked(Conversation(36, pod(cpu="3", allocated="2", conditions=[told])), cpu="3")
    assert (found.verdict, found.good, found.repeated) == (verdict, good, True)
    assert told["message"] in found.text


async def test_a_request_that_the_node_has_not_seen_yet() -> None:
    new = pod(cpu="3", allocated="2")
    new["metadata"]["generation"] = 2
    found = await asked(Conversation(36, new), cpu="3")
    assert (found.verdict, found.text) == (IN_PROGRESS, "the kubelet has not seen this generation yet")
    found = await asked(Conversation(36, new, pod("big", cpu="2")), cpu="3")
    assert (found.verdict, found.short_by) == (DEFERRED, "1 cpu")


async def test_a_size_that_is_granted_is_unchanged() -> None:
    found = await asked(Conversation(36, pod(cpu="3")), cpu="3")
    assert (found.verdict, found.changes) == (UNCHANGED, ())


async def test_now_is_what_the_pod_has() -> None:
    found = await asked(deferred(), cpu="1")
    assert {(change.before, change.after) for change in found.changes} == {("2", "1")}
    found = await asked(deferred(), cpu="2")
    assert (found.verdict, found.changes, found.repeated) == (FITS, (), False)
    assert found.text == "takes back the resize that is not granted yet"


# ------------------------------------------------------------------ memory


async def test_a_limit_below_usage_fails_as_the_node_says_it() -> None:
    found = await asked(used(Conversation(36, pod()), "41033728"), memory="30Mi")
    assert (found.verdict, found.good, found.text) == (ERROR, False, TOO_LOW)


async def test_usage_is_asked_of_the_kubelet_where_there_is_no_metrics_server() -> None:
    conversation = Conversation(36, pod())
    conversation.documents["/api/v1/nodes/n1/proxy/stats/summary"] = {
        "pods": [
            {
                "podRef": {"namespace": "shop", "name": "web"},
                "containers": [{"name": "app", "memory": {"workingSetBytes": 41033728}}],
            }
        ]
    }
    found = await asked(conversation, memory="30Mi")
    assert (found.verdict, found.text) == (ERROR, TOO_LOW)


async def test_counters_are_read_once_for_memory() -> None:
    conversation = Conversation(36, pod())
    counters = "/api/v1/nodes/n1/proxy/metrics/resource"
    labels = 'container="app",namespace="shop",pod="web"'
    conversation.documents[counters] = f"container_memory_working_set_bytes{{{labels}}} 41033728 1000\n"
    found = await asked(conversation, memory="30Mi")
    assert (found.verdict, conversation.asked.count(("GET", counters))) == (ERROR, 1)


@pytest.mark.parametrize("policy", ["", "RestartContainer"])
@pytest.mark.parametrize("memory", ["1Mi", "512", "100m", "5Mi"])
async def test_a_tiny_limit_does_not_just_fit(memory: str, policy: str) -> None:
    found = await asked(Conversation(36, pod(policy=policy)), memory=memory)
    assert (found.verdict, found.good) == (CRASH, False)
    assert ("may not start" if policy else "may not run") in found.text
    assert "less than 6Mi" in found.text


async def test_a_tiny_limit_above_what_is_used_lasts_until_the_next_start() -> None:
    """As on a real node: sleep uses 0.6 MiB and goes on with a limit of 1 MiB, with which runc cannot start it."""
    found = await asked(used(Conversation(36, pod()), "600Ki"), memory="1Mi")
    assert (found.verdict, found.text) == (FITS, "")
    assert found.shrink == "app uses 58 % of the lower memory limit; started again with less than 6Mi it may not run"
    restarted = await asked(used(Conversation(36, pod(policy="RestartContainer")), "600Ki"), memory="1Mi")
    assert (restarted.verdict, restarted.text) == (
        CRASH,
        'container "app" may not start with a memory limit of 1Mi: less than 6Mi',
    )


async def test_a_restart_into_less_than_is_used() -> None:
    restarting = Conversation(36, pod(policy="RestartContainer"))
    found = await asked(used(restarting, "100Mi"), memory="64Mi")
    assert (found.verdict, found.text) == (
        CRASH,
        ('container "app" uses 100Mi of memory: restarted with a memory limit of 64Mi it may be killed (OOMKilled)'),
    )
    assert (await asked(used(restarting, "20Mi"), memory="64Mi")).verdict == FITS


async def test_more_memory_is_no_danger_however_little() -> None:
    found = await asked(used(Conversation(36, pod(memory="2Mi")), "1Mi"), cpu="1")
    assert (found.verdict, found.text) == (FITS, "")


@pytest.mark.parametrize(
    ("memory", "note"),
    [
        ("100m", 'spec.containers[0].resources.limits[memory]: fractional byte value "100m" is invalid, must be an'),
        ("512", "spec.containers[0].resources.limits[memory]: 512 is 512 bytes; was 512Mi meant?"),
    ],
)
async def test_amounts_that_are_hardly_meant(memory: str, note: str) -> None:
    found = await Reader(Conversation(36, pod()).client, "shop").read(Target(POD, "web"))
    answer = plan(found, ResizeRequest({"memory": parse_amount("--memory", memory)}))
    assert any(told.startswith(note) for told in answer.doubts), answer
    assert (answer.good, answer.advisable) == (False, False)
    meant = plan(found, ResizeRequest({"memory": parse_amount("--memory", "256Mi")}))
    assert (meant.doubts, meant.notes, meant.good) == ((), (), True)


# ------------------------------------------------------------------ no node, and no more


@pytest.mark.parametrize(
    ("spec", "cpu", "text"),
    [
        ({}, "9", "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes"),
        ({"schedulingGates": [{"name": "x/y"}]}, "100m", "Scheduling is blocked due to non-empty scheduling gates"),
        ({"nodeSelector": {"zone": "b"}}, "100m", "0/1 nodes are available: 1 node(s) didn't match Pod's node"),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
            "100m",
            '0/1 nodes are available: persistentvolumeclaim "data" not found. not found',
        ),
    ],
)
async def test_a_pod_without_a_node_gets_the_schedulers_verdict(spec: dict[str, Any], cpu: str, text: str) -> None:
    conversation = Conversation(36, unscheduled("web", "200m", **spec))
    conversation.documents |= {f"/api/v1/{kind}": {"items": []} for kind in ("persistentvolumeclaims",)}
    conversation.documents["/apis/storage.k8s.io/v1/storageclasses"] = {"items": []}
    found = await asked(conversation, cpu=cpu)
    assert (found.verdict, found.good) == (UNSCHEDULABLE, False)
    assert found.text.startswith(text)


@pytest.mark.parametrize(
    ("allowed", "disrupted", "victim"),
    [(0, {}, "shop/other"), (1, {}, "shop/kept"), (0, {"kept": "2026-01-01T00:00:00Z"}, "shop/kept")],
)
async def test_victims_are_the_schedulers_where_budgets_protect(
    allowed: int, disrupted: dict[str, str], victim: str
) -> None:
    """Of two that would do, the less important one; not the one whose budget allows no disruption."""
    kept = pod("kept", cpu="2", spec={"priority": 1})
    other = pod("other", cpu="2", spec={"priority": 2})
    kept["metadata"]["labels"] = {"app": "kept"}
    conversation = Conversation(36, unscheduled("web", "200m", priority=5), kept, other)
    conversation.documents["/apis/policy/v1/poddisruptionbudgets"] = {
        "items": [
            {
                "metadata": {"name": "keep", "namespace": "shop"},
                "spec": {"selector": {"matchLabels": {"app": "kept"}}},
                "status": {"disruptionsAllowed": allowed, "disruptedPods": disrupted},
            }
        ]
    }
    found = await asked(conversation, cpu="2")
    assert (found.verdict, found.ends) == (FITS, (victim,))


SELECTOR = {"matchLabels": {"app": "web"}}
SELECTING: list[tuple[str, str, str, object]] = [
    ("/api/v1/services", "", "", {"app": "web"}),
    ("/apis/apps/v1/replicasets", "apps/v1", "ReplicaSet", SELECTOR),
    ("/apis/apps/v1/statefulsets", "apps/v1", "StatefulSet", SELECTOR),
    ("/api/v1/replicationcontrollers", "v1", "ReplicationController", {"app": "web"}),
]


@pytest.mark.parametrize(("path", "group", "kind", "selector"), SELECTING)
async def test_the_scheduler_spreads_pods_of_a_workload(path: str, group: str, kind: str, selector: object) -> None:
    """The large node has one of its pods already; without what selects them both it would be chosen."""
    placed, waiting = pod("other", cpu="100m"), unscheduled("web", "200m")
    for one in (placed, waiting):
        one["metadata"]["labels"] = {"app": "web"}
        owner = {"apiVersion": group, "kind": kind, "name": "web", "uid": "u", "controller": True}
        one["metadata"]["ownerReferences"] = [owner] if kind else []
    conversation = Conversation(36, waiting, placed)
    large = conversation.documents["/api/v1/nodes"]["items"][0]
    large["metadata"]["labels"] = {"kubernetes.io/hostname": "n1"}
    large["status"]["allocatable"] = {"cpu": "64", "memory": "64Gi", "pods": "110"}
    small = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    conversation.documents["/api/v1/nodes"]["items"].append(
        {"metadata": {"name": "n2", "labels": {"kubernetes.io/hostname": "n2"}}, "status": {"allocatable": small}}
    )
    assert (await asked(conversation, cpu="100m")).text == "not on a node yet: the scheduler would choose n1"
    item = {"metadata": {"name": "web", "namespace": "shop", "uid": "u"}, "spec": {"selector": selector}}
    conversation.documents[path] = {"items": [item]}
    assert (await asked(conversation, cpu="100m")).text == "not on a node yet: the scheduler would choose n2"


async def test_a_taint_is_told_and_a_toleration_believed() -> None:
    taint = {"key": "gpu", "effect": "NoSchedule"}
    conversation = Conversation(36, unscheduled("web", "200m"))
    conversation.documents["/api/v1/nodes"]["items"][0]["spec"] = {"taints": [taint]}
    assert "untolerated taint" in (await asked(conversation, cpu="100m")).text
    conversation = Conversation(36, unscheduled("web", "200m", tolerations=[{"key": "gpu", "operator": "Exists"}]))
    conversation.documents["/api/v1/nodes"]["items"][0]["spec"] = {"taints": [taint]}
    found = await asked(conversation, cpu="100m")
    assert (found.verdict, found.text) == (FITS, "not on a node yet: the scheduler would choose n1")


async def test_a_pod_of_higher_priority_ends_others_when_it_is_placed() -> None:
    conversation = Conversation(36, unscheduled("web", "200m", priority=10), pod("batch", cpu="3"))
    found = await asked(conversation, cpu="2")
    assert (found.verdict, found.ends) == (FITS, ("shop/batch",))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"phase": "Succeeded"}, "the pod has ended (Succeeded): a resize of it is stored and never carried out"),
        ({"phase": "Failed"}, "the pod has ended (Failed): a resize of it is stored and never carried out"),
    ],
)
async def test_an_ended_pod(change: dict[str, Any], text: str) -> None:
    conversation = Conversation(36, pod(cpu="1", allocated="500m", **change))
    found = await asked(conversation, cpu="2")
    assert (found.verdict, found.text, found.good) == (ENDED, text, False)
    why = await explained(conversation)
    assert (why.state, why.message, why.next) == ("ended", text, "")


async def test_a_pod_that_is_being_deleted() -> None:
    leaving = pod()
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = await asked(Conversation(36, leaving), cpu="2")
    assert (found.verdict, found.text) == (ENDED, "the pod is being deleted")


async def test_a_node_is_not_said_to_fit_who_is_kept_off_for_another_reason() -> None:
    waiting = pod("web", cpu="3", allocated="500m", conditions=[condition("PodResizePending", "Deferred", FULL)])
    conversation = Conversation(
        36,
        waiting,
        pod("big", cpu="2"),
        unscheduled("gated", "100m", schedulingGates=[{"name": "x/y"}]),
        unscheduled("elsewhere", "100m", nodeSelector={"zone": "b"}),
        unscheduled("small", "1"),
    )
    found = await Reader(conversation.client, "shop").read(Target(NODE, "n1"))
    why = why_node("n1", found, NOW)
    assert why.shut_out == ("shop/small",)
    assert {entry.pod: entry.because for entry in why.kept_off} == {
        "shop/gated": "Scheduling is blocked due to non-empty scheduling gates",
        "shop/elsewhere": "node(s) didn't match Pod's node affinity/selector",
    }


async def test_the_gates_of_a_pod_are_named() -> None:
    why = await explained(
        Conversation(36, unscheduled("web", "100m", schedulingGates=[{"name": "x/y"}, {"name": "z"}]))
    )
    assert why.message == "Scheduling is blocked due to non-empty scheduling gates: x/y, z"


async def test_a_pod_without_a_node_has_nothing_allocated() -> None:
    why = await explained(Conversation(36, unscheduled("web", "9")))
    assert {size.allocated for size in why.sizes} == {""}
    assert why.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


# ------------------------------------------------------------------ beside the resize


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (
            {
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
                "restartCount": 4,
                "lastState": {"terminated": {"reason": "StartError", "exitCode": 128, "message": "runc: no memory"}},
            },
            (
                'container "app": CrashLoopBackOff: back-off 10s; it ended with StartError '
                "(exit code 128): runc: no memory, "
                "4 restarts"
            ),
        ),
        (
            {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}},
            'container "app": ImagePullBackOff: no such image',
        ),
        (
            {
                "state": {"running": {}},
                "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
                "restartCount": 2,
            },
            'container "app" was killed: OOMKilled, 2 restarts',
        ),
    ],
)
async def test_other_causes_stand_beside_the_resize(status: dict[str, Any], told: str) -> None:
    bad = pod()
    bad["status"]["containerStatuses"][0] |= status
    why = await explained(Conversation(36, bad))
    assert (why.troubles, why.good) == ((told,), False)
    snapshot = await Reader(Conversation(36, bad).client, "shop").read(Target(POD, "web"))
    assert f"web: {told}" in plan(snapshot, ResizeRequest({"cpu": parse_amount("--cpu", "700m")})).notes
    assert (await explained(Conversation(36, pod()))).troubles == ()


# ------------------------------------------------------------------ restarts


@pytest.mark.parametrize(
    ("amounts", "named"),
    [({"cpu": "300m"}, "cpu"), ({"memory": "300Mi"}, "memory"), ({"cpu": "300m", "memory": "300Mi"}, "cpu, memory")],
)
async def test_a_restart_names_the_policies_of_what_changes(amounts: dict[str, str], named: str) -> None:
    both = pod()
    both["spec"]["containers"][0]["resizePolicy"] = [
        {"resourceName": name, "restartPolicy": "RestartContainer"} for name in ("cpu", "memory")
    ]
    found = await asked(Conversation(36, both), **amounts)
    assert [restart.why for restart in found.restarts] == [f"resizePolicy {named}: RestartContainer"]
