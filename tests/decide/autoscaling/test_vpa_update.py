"""One run of an updater, as recorded."""

from datetime import timedelta
from typing import Any

import pytest

from podfit.api.autoscaling_k8s.v1 import RecommendedPodResources, VerticalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.core.quantity import Quantity
from podfit.core.times import parse_time
from podfit.decide.autoscaling.actions import Action, ActionOutcome, EvictPod, RememberInfeasible, ResizePod, Skip
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.groups import owner_of
from podfit.decide.autoscaling.update import View, run
from podfit.decide.autoscaling.update_settings import UpdateSettings
from support.golden import Case
from support.vpa_golden import replay

REFUSALS = {
    "invalid": ActionOutcome.REFUSED,
    "node-capacity": ActionOutcome.NO_CAPACITY,
    "no answer": ActionOutcome.UNKNOWN,
}


def view(case: Case) -> View:
    now, pods = parse_time(case["now"]), tuple(convert(pod, Pod) for pod in case["pods"])
    owners = {owner for pod in pods if (owner := owner_of(pod)) is not None}
    uids = {pod.metadata.name: pod.metadata.uid for pod in pods}
    since = {
        uids[name]: now - timedelta(seconds=ago)
        for name, ago in (case.get("resize_first_seen_seconds_ago") or {}).items()
    }
    infeasible = {
        uids[name]: convert(attempt, RecommendedPodResources)
        for name, attempt in (case.get("infeasible_attempts") or {}).items()
    }
    return View(
        vpa=convert(case["vpa"], VerticalPodAutoscaler),
        pods=pods,
        configured={owner: case["replicaset_spec_replicas"] for owner in owners if owner.name == "rs"},
        now=now,
        since=since,
        infeasible=infeasible,
    )


def settings(case: Case, *, upstream_compatible: bool) -> UpdateSettings:
    return UpdateSettings(
        gates=Gates.of(case["feature_gates"]),
        min_replicas=case["min-replicas"],
        tolerance=case["eviction-tolerance"],
        skip_disruption_budget=case["in-place-skip-disruption-budget"],
        upstream_compatible=upstream_compatible,
    )


class Carried:
    """What an API server like the recorded one was asked, and what came of it."""

    def __init__(self, case: Case, *, upstream_compatible: bool = True) -> None:
        self.case, self.now = case, view(case)
        self.evictions: list[str] = []
        self.calls: list[str] = []
        self.resizes: list[dict[str, Any]] = []
        self.marks: list[dict[str, Any]] = []
        self.events: list[str] = []
        self.infeasible = set(self.now.infeasible)
        actions = run(self.now, settings(case, upstream_compatible=upstream_compatible))
        try:
            action = next(actions)
            while True:
                action = actions.send(self._outcome(action))
        except StopIteration:
            pass

    def _outcome(self, action: Action) -> ActionOutcome:
        name = action.pod.metadata.name
        match action:
            case EvictPod():
                self.calls.append(name)
                if name in (self.case.get("eviction_rejected_for") or ()):
                    return ActionOutcome.REFUSED
                self.evictions.append(name)
                self.events += [f"Pod/{name} Normal EvictedByVPA", "VPA/v Normal EvictedPod"]
            case ResizePod():
                refusal = (self.case.get("resize_rejected_for") or {}).get(name)
                self.resizes.append({"pod": name, "patch": by_path(action.resources), "accepted": refusal is None})
                if refusal:
                    return REFUSALS[refusal]
                self.marks.append({"pod": name, "patch": by_path(action.marks), "accepted": True})
                self.events.append(f"Pod/{name} Normal InPlaceResizedByVPA")
            case Skip():
                self.events.append(f"Pod/{name} Normal InPlaceResizeSkipped")
            case RememberInfeasible():
                self.infeasible.add(action.pod.metadata.uid)
        return ActionOutcome.DONE


def by_path(operations: Any) -> list[Any]:
    """Amounts as such: upstream writes them as its VPA does, podfit in canonical form. Removals have no value."""
    return sorted(
        ((operation["op"], operation["path"], amount(operation.get("value"))) for operation in operations),
        key=lambda operation: operation[1],
    )


def amount(value: Any) -> Any:
    try:
        return Quantity.parse(value) if isinstance(value, str) else value
    except ValueError:
        return value


def as_sent(every: list[Case]) -> list[Case]:
    return [action | {"patch": by_path(action["patch"])} for action in every]


@pytest.mark.row(
    "V-085", "V-086", "V-088", "V-091", "V-100", "V-101", "V-102", "V-103", "V-104", "V-105", "V-108", "V-109"
)
@replay("updater_runonce")
def test_vpa_updater_does_what_was_recorded(case: Case) -> None:
    found = Carried(case)
    assert found.calls == case["eviction_calls"]
    assert found.evictions == case["evictions"]
    assert found.resizes == as_sent(case["resize_patches"])
    assert found.marks == as_sent(case["pod_patches"])
    assert found.events == case["events"]
    assert sorted(uid.removeprefix("uid-") for uid in found.infeasible) == case["infeasible_after"]


def scenario(replicas: int, **changes: Any) -> Case:
    """So many pods of a ReplicaSet that ask for a tenth of what is recommended."""
    owner = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "", "controller": True}]
    target = {"cpu": "1", "memory": "1Gi"}
    mode = changes.pop("mode", "InPlaceOrRecreate")
    pod = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}}}]}}
    return {
        "now": "2026-05-01T12:00:00Z",
        "feature_gates": {"InPlace": True},
        "min-replicas": 2,
        "eviction-tolerance": 0.5,
        "in-place-skip-disruption-budget": False,
        "replicaset_spec_replicas": replicas,
        "vpa": {
            "metadata": {"name": "v", "namespace": "ns"},
            "spec": {"updatePolicy": {"updateMode": mode}},
            "status": {
                "recommendation": {
                    "containerRecommendations": [
                        {"containerName": "c", "target": target, "lowerBound": target, "upperBound": target}
                    ]
                }
            },
        },
        "pods": [
            pod | {"metadata": {"name": f"p{n}", "uid": f"uid-p{n}", "ownerReferences": owner},
                   "status": {"phase": "Running"}}
            for n in range(replicas)
        ],
    } | changes  # fmt: skip


@pytest.mark.row("V-086", "V-105")
def test_in_place_waits_for_the_disruption_budget_unless_it_is_to_act_as_upstream() -> None:
    case = scenario(4, mode="InPlace")
    assert len(Carried(case, upstream_compatible=False).resizes) == 2
    assert len(Carried(case).resizes) == 4
    free = case | {"in-place-skip-disruption-budget": True}
    assert len(Carried(free, upstream_compatible=False).resizes) == 4


@pytest.mark.row("V-102")
@pytest.mark.parametrize(("mode", "evicted"), [("InPlaceOrRecreate", ["p0"]), ("InPlace", [])])
def test_a_resize_that_is_refused_becomes_an_eviction_or_does_not(mode: str, evicted: list[str]) -> None:
    refused = {"resize_rejected_for": {f"p{n}": "invalid" for n in range(3)}}
    found = Carried(scenario(3, mode=mode, **refused), upstream_compatible=False)
    assert found.evictions == evicted
    assert not found.marks


def test_a_resize_that_got_no_answer_evicts_nobody() -> None:
    silent = {"resize_rejected_for": {f"p{number}": "no answer" for number in range(3)}}
    found = Carried(scenario(3, **silent), upstream_compatible=False)
    assert found.resizes
    assert not found.evictions


@pytest.mark.parametrize(("restarts", "resized"), [(False, ["p0"]), (True, [])])
def test_the_only_replica_is_resized_where_that_restarts_nothing(restarts: bool, resized: list[str]) -> None:
    case = scenario(1, mode="Recreate", resize_rejected_for={"p0": "invalid"})
    if restarts:
        policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
        case["pods"][0]["spec"]["containers"][0]["resizePolicy"] = policy
    found = Carried(case, upstream_compatible=False)
    assert [resize["pod"] for resize in found.resizes] == resized
    assert not found.evictions
    assert not Carried(case).resizes


@pytest.mark.row("V-085", "V-086")
@pytest.mark.parametrize(
    ("replicas", "tolerance", "expected"),
    [(1, 0.5, 0), (2, 0.5, 1), (3, 0.5, 1), (4, 0.5, 2), (10, 0.25, 2), (5, 0, 1)],
)
def test_how_many_pods_of_a_group_are_disrupted_in_a_run(replicas: int, tolerance: float, expected: int) -> None:
    found = Carried(scenario(replicas, mode="Recreate", **{"eviction-tolerance": tolerance}))
    assert len(found.evictions) == expected


def test_a_controller_of_an_unknown_kind_keeps_half_of_its_pods() -> None:
    """Upstream takes it to want none, so that all of its pods may be disrupted at once."""
    case = scenario(4, mode="Recreate")
    for pod in case["pods"]:
        pod["metadata"]["ownerReferences"] = [
            {"apiVersion": "x/v1", "kind": "Own", "name": "o", "uid": "", "controller": True}
        ]
    assert len(Carried(case).evictions) == 2


@pytest.mark.row("V-103", "V-104")
def test_what_a_node_could_not_give_is_remembered() -> None:
    found = Carried(scenario(2, mode="InPlace", resize_rejected_for={"p0": "node-capacity"}), upstream_compatible=False)
    assert found.infeasible == {"uid-p0"}
    recommendation = scenario(2)["vpa"]["status"]["recommendation"]
    again = Carried(scenario(2, mode="InPlace", infeasible_attempts={"p0": recommendation}), upstream_compatible=False)
    assert again.events[0] == "Pod/p0 Normal InPlaceResizeSkipped"
    assert [resize["pod"] for resize in again.resizes] == ["p1"]
