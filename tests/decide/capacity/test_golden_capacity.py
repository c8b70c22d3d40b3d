"""Capacity decisions against what upstream's cluster autoscaler answered (`tests/golden/ca`)."""

import math
import re
from typing import Any

import pytest
import yaml

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.policy.v1.types import PodDisruptionBudget
from podfit.core.times import parse_time
from podfit.decide.capacity.drain import (
    Controllers,
    DrainContext,
    DrainOptions,
    check_budgets,
    drain_plan,
    drainability,
)
from podfit.decide.capacity.estimator import Estimate, estimate, schedulable_groups
from podfit.decide.capacity.expanders import FILTERS, ExpanderEvent, Option, Priorities
from podfit.decide.capacity.hypothetical import HypotheticalCluster
from podfit.decide.capacity.pod_groups import pod_groups
from podfit.decide.capacity.utilization import Utilization, UtilizationError, utilization
from podfit.decide.placement.view import NodeInfo, Resident
from support.golden import Case, parametrize

KINDS = {
    "daemonSets": "DaemonSet",
    "jobs": "Job",
    "replicaSets": "ReplicaSet",
    "replicationControllers": "ReplicationController",
    "statefulSets": "StatefulSet",
}
NOT_NUMBERS = {"NaN": math.nan, "+Inf": math.inf, "-Inf": -math.inf}


def all_of(objects: list[dict[str, Any]] | None, kind: type[Any]) -> list[Any]:
    return [convert(item, kind) for item in objects or ()]


def controllers(given: dict[str, Any] | None) -> Controllers | None:
    if given is None:
        return None
    return {
        (KINDS[kind], item["metadata"]["namespace"], item["metadata"]["name"]): item.get("spec", {}).get("replicas")
        for kind, items in given.items()
        for item in items
    }


def told(text: str) -> str:
    """Upstream prints an address where it means the number of replicas (C-100)."""
    return re.sub(r"too few replicas spec: \d+ ", "too few replicas spec: PTR ", text)


@parametrize("ca/drainability.json*")
def test_golden_capacity_drainability(case: Case) -> None:
    given, expected = case["in"], case["out"]
    seconds = given["options"].pop("blocking_system_pod_timeout")
    context = DrainContext(
        now=parse_time(given["now"]),
        options=convert({**given["options"], "blocking_system_pod_timeout": f"PT{seconds}S"}, DrainOptions),
        budgets=all_of(given["pdbs"], PodDisruptionBudget),
        controllers=controllers(given.get("controllers")),
    )
    pods = all_of(given["pods"], Pod)
    verdicts = []
    for pod in pods:
        verdict = drainability(pod, context)
        said = {"error": told(verdict.text), "reason": verdict.reason} if verdict.reason else {}
        verdicts.append({"pod": pod.metadata.name, "outcome": str(verdict.outcome), **said})
    plan = drain_plan(pods, context)
    answer: dict[str, Any] = {
        "per_pod": verdicts,
        "move": [pod.metadata.name for pod in plan.move],
        "daemonset": [pod.metadata.name for pod in plan.daemon_set],
        "on_completion": [pod.metadata.name for pod in plan.on_completion],
    }
    if plan.blocking:
        (blocking,) = plan.blocking
        answer["blocking"] = {"pod": blocking.pod.metadata.name, "reason": blocking.reason}
        answer["error"] = told(blocking.text)
    else:
        check = check_budgets(plan.move, context.budgets)
        over = {"blocking": check.blocking.metadata.name} if check.blocking else {}
        answer["pdb_check_on_move"] = {"can_remove": check.can_remove, "in_parallel": check.in_parallel, **over}
    assert answer == expected


@parametrize("ca/utilization.json*")
def test_golden_capacity_utilization(case: Case) -> None:
    given, expected = case["in"], case["out"]

    def ask() -> Utilization:
        return utilization(
            convert(given["node"], Node),
            all_of(given["pods"], Pod),
            parse_time(given["now"]),
            ignore_daemon_sets=given["ignore_daemonsets"],
            ignore_mirror_pods=given["ignore_mirror_pods"],
        )

    if "error" in expected:
        with pytest.raises(UtilizationError, match=f"^{re.escape(expected['error'])}$"):
            ask()
        return
    found = ask()
    answer = {"cpu": found.cpu, "memory": found.memory, "utilization": found.share}
    wanted = {name: NOT_NUMBERS.get(expected[name], expected[name]) for name in answer}
    assert answer == pytest.approx(wanted, rel=1e-12, abs=0, nan_ok=True)
    assert found.resource == expected["resource"]


def view(node: dict[str, Any], pods: list[dict[str, Any]] | None) -> NodeInfo:
    return NodeInfo.of(convert(node, Node), map(Resident.of, all_of(pods, Pod)))


def priorities(text: str) -> Priorities:
    """The map as its reader hands it in, with the parser's words as upstream's library puts them."""
    try:
        return Priorities(yaml.load(text, yaml.CSafeLoader))
    except yaml.MarkedYAMLError as error:
        line = error.context_mark.line or error.problem_mark.line  # type: ignore[union-attr]
        problem = f"error converting YAML to JSON: yaml: line {line}: {error.problem}"
        text = f"Can't parse YAML with priorities in the configmap: {problem}"
        return Priorities(problem=f"Wrong configuration for priority expander: {text}. Ignoring update.")


@parametrize("ca/estimator.json*", lambda case: not case.get("ties"))
def test_golden_capacity_estimator(case: Case) -> None:
    given, expected = case["in"], case["out"]
    cluster = HypotheticalCluster(view(present["node"], present["pods"]) for present in given["existing_nodes"] or ())
    pods = all_of(given["pending_pods"], Pod)
    groups = pod_groups(pods)
    shapes = sorted([pod.metadata.name for pod in group.pods] for group in groups)
    assert shapes == sorted(expected["equivalence_groups"])
    unordered = case.get("unordered", False)
    slack = any(pod.spec.topology_spread_constraints for pod in pods)
    options = []
    for group, recorded in zip(given["node_groups"], expected["options"], strict=True):
        assert group["id"] == recorded["id"]
        template = view(group["node"], group["pods"])
        there = schedulable_groups(cluster, template, groups)
        assert sorted(one.first.metadata.name for one in there) == sorted(recorded["schedulable_groups"])
        found = estimate(cluster, template, there, most_nodes=given["max_nodes_per_scaleup"])
        compare(found, recorded, slack=slack, unordered=unordered)
        if recorded["node_count"] and recorded["pods"]:
            options.append(Option(group["id"], found.nodes, found.pods, template.node))
    best = {name: sorted(option.group for option in keep(options)) for name, keep in FILTERS.items()}
    kept, events = priorities(given["priorities"]).filter(options)
    best["priority"] = sorted(option.group for option in kept)
    counts = [recorded["node_count"] for recorded in expected["options"] if recorded["pods"] and recorded["node_count"]]
    if not slack or [option.nodes for option in options] == counts:  # else it was judged by another count
        assert best == expected["best"]
    assert list(map(line, events)) == (expected["priority_events"] or [])


def line(event: ExpanderEvent) -> str:
    return f"Warning {event.reason} {event.message}"


def compare(found: Estimate, recorded: dict[str, Any], *, slack: bool, unordered: bool) -> None:
    """With spread constraints the pick among nodes follows the scheduler's own order: one node of difference."""
    assert abs(found.nodes - recorded["node_count"]) <= slack
    placed = [pod.metadata.name for pod in found.pods]
    if unordered or slack:
        assert abs(len(placed) - len(recorded["pods"])) <= slack
    else:
        assert placed == recorded["pods"]
