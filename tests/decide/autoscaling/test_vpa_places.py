"""An updater beside a cluster autoscaler: a pod that its node has no room for is left to it for a while."""

from datetime import timedelta
from typing import Any

import pytest

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.core.times import format_time, parse_time
from podfit.decide.autoscaling.actions import ActionOutcome, EvictPod, Tally
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.groups import owner_of
from podfit.decide.autoscaling.update import PLACE_TIME, View, run
from podfit.decide.autoscaling.update_settings import UpdateSettings

NOW = parse_time("2026-01-01T12:00:00Z")
SHORT = "Node didn't have enough resource: cpu, requested: 3000, used: 3000, capacity: 4000"
REF = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
TARGET = {"containerName": "app", **{side: {"cpu": "3"} for side in ("target", "lowerBound", "upperBound")}}
VPA = convert(
    {
        "metadata": {"name": "v", "namespace": "shop", "uid": "v"},
        "spec": {"targetRef": REF, "updatePolicy": {"updateMode": "InPlaceOrRecreate"}},
        "status": {"recommendation": {"containerRecommendations": [TARGET]}},
    },
    VerticalPodAutoscaler,
)


def pod(name: str, reason: str = "", message: str = SHORT) -> Pod:
    """Those that wait for nothing have what is recommended."""
    has = "1" if reason else "3"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs", "controller": True}
    began = format_time(NOW - timedelta(hours=1))
    waits = {"type": "PodResizePending", "status": "True", "reason": reason, "message": message}
    held = {"name": "app", "resources": {"requests": {"cpu": has}}, "allocatedResources": {"cpu": has}}
    status: dict[str, Any] = {
        "phase": "Running",
        "startTime": began,
        "conditions": [{"type": "Ready", "status": "True"}, *([waits] if reason else [])],
        "containerStatuses": [{**held, "state": {"running": {"startedAt": began}}}],
    }
    meta = {"name": name, "namespace": "shop", "uid": name, "ownerReferences": [owner], "creationTimestamp": began}
    spec = {"nodeName": "n", "containers": [{"name": "app", "image": "i", "resources": {"requests": {"cpu": has}}}]}
    return convert({"metadata": meta, "spec": spec, "status": status}, Pod)


def evicted(
    reason: str, minutes: float, *, places: bool, message: str = SHORT, upstream: bool = False
) -> tuple[bool, str]:
    """Whether the first of four pods is evicted after it has waited so long, and else why not."""
    pods = (pod("a", reason, message), pod("b"), pod("c"), pod("d"))
    owner = owner_of(pods[0])
    assert owner is not None
    since = {"a": NOW - timedelta(minutes=minutes)}
    view = View(vpa=VPA, pods=pods, configured={owner: 4}, now=NOW, since=since, places_first=places)
    actions = run(view, UpdateSettings(gates=Gates(in_place=True), upstream_compatible=upstream))
    names, tally = list[str](), Tally()
    try:
        action = next(actions)
        while True:
            names += [action.pod.metadata.name] if isinstance(action, EvictPod) else []
            action = actions.send(ActionOutcome.DONE)
    except StopIteration as end:
        tally = end.value
    verdict = next(one for one in tally.verdicts if one.pod.metadata.name == "a")
    return "a" in names, verdict.reason


@pytest.mark.parametrize("reason", ["Deferred", "Infeasible"])
def test_vpa_a_pod_without_room_is_left_to_who_makes_places(reason: str) -> None:
    assert evicted(reason, 6, places=False)[0]
    assert evicted(reason, 6, places=True) == (
        False,
        "the cluster autoscaler makes a place for it first, within 20 minutes",
    )


def test_vpa_a_pod_is_evicted_when_no_place_came_in_time() -> None:
    """So an autoscaler that does nothing holds up an update by 20 minutes, and no longer."""
    waited = PLACE_TIME.total_seconds() / 60
    assert not evicted("Deferred", waited, places=True)[0]
    assert evicted("Deferred", waited + 0.1, places=True)[0]


def test_vpa_what_waits_for_something_else_than_room_is_not_left() -> None:
    assert evicted("Deferred", 6, places=True, message="its node shuts down")[0]


def test_vpa_by_upstreams_rules_nobody_is_waited_for() -> None:
    assert evicted("Deferred", 6, places=True, upstream=True)[0]
