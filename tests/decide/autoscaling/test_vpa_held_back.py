"""Pods that are not as recommended for a reason: too few replicas, and memory that is in use."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler, VerticalPodAutoscalerStatus
from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.meta.owners import ObjectIdentity
from podfit.core.quantity import Quantity
from podfit.core.times import parse_time
from podfit.decide.autoscaling.actions import Action, ActionOutcome, EvictPod, ResizePod, Tally
from podfit.decide.autoscaling.conditions import (
    IN_PLACE_BY_DEFAULT,
    MEMORY_IN_USE,
    TOO_FEW_REPLICAS,
    too_few,
    with_conditions,
)
from podfit.decide.autoscaling.patches import Resources
from podfit.decide.autoscaling.shrinks import guards
from podfit.decide.autoscaling.update import View, run
from podfit.decide.autoscaling.update_settings import UpdateSettings
from podfit.decide.resize.steps import lowers

NOW = parse_time("2026-05-01T12:00:00Z")
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u", "controller": True}
IN_USE = 'cannot decrease memory limits: attempting to set container "c" memory limit (1) below current usage (2)'
SHRINK = "/metadata/annotations/podfit.dev~1memory-shrink"


def pod(
    name: str,
    memory: str = "400Mi",
    *,
    granted: str = "",
    error: str = "",
    restart: bool = False,
    annotations: dict[str, str] | None = None,
) -> Pod:
    """It asks for `memory`; `granted` is what its node gives, `error` why that is so."""
    amounts = {"requests": {"memory": memory}, "limits": {"memory": memory}}
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}] if restart else []
    status: dict[str, Any] = {"phase": "Running"}
    if granted:
        given = {"requests": {"memory": granted}, "limits": {"memory": granted}}
        known = {"name": "c", "image": "i", "imageID": "i", "ready": True, "restartCount": 0, "resources": given}
        status["containerStatuses"] = [known]
    if error:
        said = {"type": "PodResizeInProgress", "status": "True", "reason": "Error", "message": error}
        status["conditions"] = [said]
    metadata = {"name": name, "uid": name, "ownerReferences": [OWNER], "annotations": annotations or {}}
    container = {"name": "c", "resources": amounts, "resizePolicy": policy}
    return convert({"metadata": metadata, "spec": {"containers": [container]}, "status": status}, Pod)


def vpa(memory: str, mode: str = "InPlaceOrRecreate", **metadata: Any) -> VerticalPodAutoscaler:
    amounts = {"memory": memory}
    found = {"containerName": "c", "target": amounts, "lowerBound": amounts, "upperBound": amounts}
    document = {
        "metadata": {"name": "v", "namespace": "n", **metadata},
        "spec": {"updatePolicy": {"updateMode": mode}},
        "status": {"recommendation": {"containerRecommendations": [found]}},
    }
    return convert(document, VerticalPodAutoscaler)


def played(
    of: VerticalPodAutoscaler, pods: Sequence[Pod], outcome: ActionOutcome = ActionOutcome.DONE, **settings: Any
) -> tuple[list[Action], Tally]:
    view = View(
        vpa=of, pods=tuple(pods), configured={ObjectIdentity("apps", "ReplicaSet", "", "rs", "u"): len(pods)}, now=NOW
    )
    steps, actions = run(view, UpdateSettings(**settings)), list[Action]()
    try:
        actions.append(next(steps))
        while True:
            actions.append(steps.send(outcome))
    except StopIteration as end:
        return actions, end.value


# ---------------------------------------------------------------- too few replicas


def test_vpa_says_that_the_only_replica_waits() -> None:
    actions, tally = played(vpa("600Mi"), [pod("p", restart=True)])
    assert not actions
    rest = "None is evicted, or resized where that restarts a container."
    assert tally.conditions == {TOO_FEW_REPLICAS: f"Fewer pods than minReplicas, 2: ReplicaSet rs has 1. {rest}"}


@pytest.mark.parametrize(
    ("of", "pods"),
    [
        (vpa("600Mi"), [pod("p")]),  # is resized
        (vpa("400Mi"), [pod("p", restart=True)]),  # is as recommended
        (vpa("600Mi"), [pod("p", restart=True), pod("q", restart=True)]),
        (vpa("600Mi", "Off"), [pod("p", restart=True)]),
        (vpa("600Mi", "Initial"), [pod("p", restart=True)]),
    ],
)
def test_vpa_says_nothing_of_replicas_where_none_waits_for_want_of_others(
    of: VerticalPodAutoscaler, pods: list[Pod]
) -> None:
    assert played(of, pods)[1].conditions == {}


def test_vpa_says_nothing_of_replicas_as_upstream_does() -> None:
    actions, tally = played(vpa("600Mi"), [pod("p", restart=True)], upstream_compatible=True)
    assert (actions, tally.conditions) == ([], {})


def test_vpa_that_evicts_as_its_mode_says_waits_for_replicas() -> None:
    old = vpa("600Mi", "Recreate", annotations={"podfit.dev/update-mode": "upstream"})
    actions, tally = played(old, [pod("p")])
    assert (actions, set(tally.conditions)) == ([], {TOO_FEW_REPLICAS})


def test_only_some_workloads_are_named() -> None:
    found = too_few({ObjectIdentity("apps", "ReplicaSet", "", f"r{number}", "u"): 1 for number in range(7)}, 2)
    assert "ReplicaSet r4 has 1 and 2 more. None" in found


# ---------------------------------------------------------------- memory that is in use


def test_vpa_lets_podfits_nodes_lower_memory_step_by_step() -> None:
    ((resize,), _) = played(vpa("300Mi"), [pod("p", annotations={"a": "b"})], min_replicas=1)
    assert isinstance(resize, ResizePod)
    assert resize.guards == ({"op": "add", "path": SHRINK, "value": "guarded"},)


@pytest.mark.parametrize(("before", "measured"), [("512Mi", True), ("100Mi", False), ("", True), ("0", True)])
def test_vpa_marks_what_its_node_measures(before: str, measured: bool) -> None:
    """A limit where there was none comes down for the node, which measures before it writes it."""
    limits = {"memory": before} if before else {}
    own = pod("p")
    container = replace(own.spec.containers[0], resources=convert({"limits": limits}, ResourceRequirements))
    limited = replace(own, spec=replace(own.spec, containers=(container,)))
    wanted = Quantity.parse("300Mi")
    marked = bool(guards(limited, {container.name: Resources({}, {"memory": wanted})}))
    assert marked == lowers(wanted, Quantity.parse(before or "0")) == measured


def test_vpa_makes_room_for_its_first_annotation_once() -> None:
    ((resize,), _) = played(vpa("300Mi"), [pod("p")], min_replicas=1)
    assert isinstance(resize, ResizePod)
    paths = [operation["path"] for operation in (*resize.guards, *resize.marks)]
    assert paths == ["/metadata/annotations", SHRINK, "/metadata/annotations/vpaInPlaceUpdated"]


@pytest.mark.parametrize(
    ("memory", "annotations", "settings"),
    [
        ("600Mi", {}, {}),
        ("300Mi", {"podfit.dev/memory-shrink": "checked"}, {}),
        ("300Mi", {}, {"upstream_compatible": True}),
    ],
    ids=["grows", "says itself", "as upstream"],
)
def test_vpa_marks_no_pod_that_needs_none(memory: str, annotations: dict[str, str], settings: dict[str, Any]) -> None:
    actions, _ = played(vpa(memory), [pod("p", annotations=annotations)], min_replicas=1, **settings)
    assert [isinstance(action, ResizePod) and action.guards for action in actions] == [()]


def test_vpa_does_not_evict_a_pod_that_uses_more_than_its_limit_is_to_be() -> None:
    waiting = [pod(name, "300Mi", granted="400Mi", error=IN_USE) for name in ("p", "q")]
    actions, tally = played(vpa("300Mi"), waiting)
    assert not actions
    assert list(tally.conditions) == [MEMORY_IN_USE]
    assert tally.conditions[MEMORY_IN_USE].startswith("Memory limits of p, q stay: more is used than they are to be.")


def test_vpa_evicts_it_as_upstream_does_when_it_is_to() -> None:
    waiting = [pod(name, "300Mi", granted="400Mi", error=IN_USE) for name in ("p", "q")]
    actions, tally = played(vpa("300Mi"), waiting, upstream_compatible=True)
    assert [type(action) for action in actions] == [EvictPod]
    assert not tally.conditions


def test_vpa_evicts_a_pod_whose_resize_failed_for_another_reason() -> None:
    failed = [pod(name, "300Mi", granted="400Mi", error="runc: something else") for name in ("p", "q")]
    assert [type(action) for action in played(vpa("300Mi"), failed)[0]] == [EvictPod]


def test_vpa_asks_a_waiting_pod_for_what_is_recommended_meanwhile() -> None:
    waiting = [pod(name, "300Mi", granted="400Mi", error=IN_USE) for name in ("p", "q")]
    actions, tally = played(vpa("500Mi"), waiting)
    asked = [
        {operation["value"] for operation in action.resources} for action in actions if isinstance(action, ResizePod)
    ]
    assert (asked, tally.conditions) == ([{"500Mi"}, {"500Mi"}], {})


# ---------------------------------------------------------------- in the object


def test_conditions_of_the_updater_come_and_go_and_keep_their_time() -> None:
    before = with_conditions(VerticalPodAutoscalerStatus(), {TOO_FEW_REPLICAS: "a"}, "2026-05-01T12:00:00Z")
    assert with_conditions(before, {TOO_FEW_REPLICAS: "a"}, "2026-05-01T13:00:00Z") == before
    (other,) = with_conditions(before, {TOO_FEW_REPLICAS: "b"}, "2026-05-01T13:00:00Z").conditions
    assert (other.message, other.last_transition_time) == ("b", "2026-05-01T12:00:00Z")
    said = with_conditions(before, {IN_PLACE_BY_DEFAULT: "c"}, "2026-05-01T13:00:00Z")
    assert [condition.type for condition in said.conditions] == [IN_PLACE_BY_DEFAULT]
    assert with_conditions(said, {}, "2026-05-01T14:00:00Z") == said
    foreign = replace(said, conditions=(replace(said.conditions[0], type="Other"),))
    assert with_conditions(foreign, {}, "2026-05-01T14:00:00Z") == foreign
