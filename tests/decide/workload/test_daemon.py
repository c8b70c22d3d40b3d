"""On which nodes a daemon set has pods, and how it replaces them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from podfit.api.apps.v1.daemonsets import DaemonSet
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.workload.daemon.failed_pods import NodeFailures, spared
from podfit.decide.workload.daemon.nodes import node_of, pod_for, suits, template_of
from podfit.decide.workload.daemon.status import status_of
from podfit.decide.workload.daemon.steps import DaemonStep, Version, by_node, manage, roll

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
TODAY = Version("new")


def daemon_set(surge: Any = 0, fewer: Any = 1, **template: Any) -> DaemonSet:
    rolling = {"maxSurge": surge, "maxUnavailable": fewer}
    spec = {"containers": [{"name": "c", "image": "i"}], **template}
    document = {
        "metadata": {"name": "ds", "namespace": "n", "uid": "u"},
        "spec": {
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": spec},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
        },
    }
    return convert(document, DaemonSet)


def node(name: str, *taints: tuple[str, str], **labels: str) -> Node:
    marks = [{"key": key, "effect": effect} for key, effect in taints]
    return convert({"metadata": {"name": name, "labels": labels}, "spec": {"taints": marks}}, Node)


def pod(name: str, on: str, *, old: bool = False, **facts: Any) -> Pod:
    ready = {"type": "Ready", "status": str(facts.get("ready", True)), "lastTransitionTime": "2026-01-01T00:00:00Z"}
    meta = {"name": name, "uid": name, "labels": {"controller-revision-hash": "old" if old else "new"}}
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if facts.get("going") else {}
    status = {"phase": facts.get("phase", "Running"), "conditions": [ready]}
    return convert({"metadata": meta | going, "spec": {"nodeName": on}, "status": status}, Pod)


NODES = [node("a"), node("b")]


@pytest.mark.parametrize(
    ("taints", "template", "expected"),
    [
        ([], {}, (True, True)),
        ([("node.kubernetes.io/not-ready", "NoExecute")], {}, (True, True)),
        ([("node.kubernetes.io/unschedulable", "NoSchedule")], {}, (True, True)),
        ([("node.kubernetes.io/network-unavailable", "NoSchedule")], {}, (False, True)),
        ([("node.kubernetes.io/network-unavailable", "NoSchedule")], {"hostNetwork": True}, (True, True)),
        ([("mine", "NoSchedule")], {}, (False, True)),
        ([("mine", "NoExecute")], {}, (False, False)),
        ([("mine", "PreferNoSchedule")], {}, (True, True)),
        ([], {"nodeSelector": {"disk": "ssd"}}, (False, False)),
        ([], {"nodeName": "other"}, (False, False)),
    ],
)
def test_which_nodes_suit(taints: list[tuple[str, str]], template: dict[str, Any], expected: tuple[bool, bool]) -> None:
    assert suits(daemon_set(**template), node("a", *taints)) == expected


def test_its_pod_can_only_go_to_its_node() -> None:
    daemons = daemon_set()
    made = pod_for(daemons, template_of(daemons, "3", "new"), "a")
    assert node_of(made) == "a"
    assert made.metadata.labels == {"app": "x", "controller-revision-hash": "new", "pod-template-generation": "3"}


@pytest.mark.parametrize(
    ("pods", "create", "delete"),
    [
        ([], ("a", "b"), []),
        ([pod("p", "a")], ("b",), []),
        ([pod("p", "a", going=True), pod("q", "b")], (), []),  # its successor comes when it has ended
        ([pod("p", "a", going=True, phase="Succeeded"), pod("q", "b")], ("a",), []),
        ([pod("p", "a", phase="Failed"), pod("q", "b")], (), ["p"]),
        ([pod("p", "a"), pod("p2", "a"), pod("q", "b")], (), ["p2"]),
    ],
)
def test_one_on_each_node(pods: list[Pod], create: tuple[str, ...], delete: list[str]) -> None:
    step = manage(daemon_set(), NODES, by_node(pods), TODAY, NOW)
    assert (step.create, [pod.metadata.name for pod in step.delete]) == (create, delete)


def test_none_where_it_may_not_stay() -> None:
    step = manage(daemon_set(), [node("a", ("mine", "NoExecute"))], by_node([pod("p", "a")]), TODAY, NOW)
    assert [pod.metadata.name for pod in step.delete] == ["p"]


def pair(old: Sequence[str], new: Sequence[str] = (), *, sick: str = "") -> dict[str, list[Pod]]:
    pods = [pod(f"old-{name}", name, old=True, ready=name not in sick) for name in old]
    return by_node([*pods, *(pod(f"new-{name}", name, ready=name not in sick) for name in new)])


@pytest.mark.parametrize(
    ("surge", "fewer", "pods", "create", "delete"),
    [
        (0, 1, pair("abc"), (), ["old-a"]),
        (0, 2, pair("abc"), (), ["old-a", "old-b"]),
        (0, "50%", pair("abc"), (), ["old-a", "old-b"]),
        (0, 1, pair("abc", sick="b"), (), ["old-b"]),  # it is missing anyway
        (0, 1, pair("bc", "a", sick="a"), (), []),
        (0, 1, pair("bc", "a"), (), ["old-b"]),
        (1, 0, pair("abc"), ("a",), []),
        (1, 0, pair("abc", "a", sick="a"), (), []),
        (1, 0, pair("abc", "a"), ("b",), ["old-a"]),
    ],
)
def test_a_rollout(
    surge: Any, fewer: Any, pods: dict[str, list[Pod]], create: tuple[str, ...], delete: list[str]
) -> None:
    step = roll(daemon_set(surge, fewer), pods, TODAY, 3, NOW)
    assert (step.create, [pod.metadata.name for pod in step.delete]) == (create, delete)


def test_its_status_counts_nodes() -> None:
    there = by_node([pod("p", "a"), pod("q", "b", old=True, ready=False), pod("w", "c")])
    status = status_of(daemon_set(), [*NODES, node("c", ("x", "NoSchedule"))], there, TODAY, NOW, observed=True)
    wanted, current = status.desired_number_scheduled, status.current_number_scheduled
    numbers = status.number_ready, status.updated_number_scheduled, status.number_misscheduled
    assert (wanted, current, numbers) == (2, 2, (1, 1, 1))


def test_a_failed_pod_waits_longer_each_time_on_its_node() -> None:
    failed, done = pod("f", "a", phase="Failed"), pod("d", "b", phase="Succeeded")
    step = DaemonStep(delete=(failed, done), ended=(failed, done))
    known: Mapping[str, NodeFailures] = {}
    told = []
    for now in (100.0, 100.5, 101.0, 102.0, 103.0):
        found = spared(step, known, now)
        known = found.failures
        told.append(("".join(pod.metadata.name for pod in found.ended), found.again))
        assert found.step.delete == found.ended
    assert told == [("fd", None), ("d", 0.5), ("fd", None), ("d", 1.0), ("fd", None)]
    assert known == {"a": NodeFailures(3, 107.0)}


def test_failures_long_ago_are_forgotten() -> None:
    step = DaemonStep(ended=(pod("f", "a", phase="Failed"),))
    assert spared(step, {"a": NodeFailures(9, 100.0)}, 2000.0).failures == {"a": NodeFailures(1, 2001.0)}
