"""All readers of a resize's conditions take it for the same: refused, waiting, or not judged yet."""

from datetime import UTC, datetime, timedelta

import pytest

from podfit.answers.facts.ages import Age
from podfit.answers.facts.pod_state import DEFERRED, INFEASIBLE, UNSEEN, sizes_of, state_of
from podfit.answers.node.live_node import LiveNode
from podfit.api.autoscaling_k8s.v1 import RecommendedPodResources
from podfit.api.core.v1.nodes.types import Node, NodeStatus
from podfit.api.core.v1.pods.types import Pod, PodCondition
from podfit.api.meta.v1.types import ObjectMeta
from podfit.apiserver.request.legacy_rules import legacy_resize
from podfit.decide.autoscaling.groups import Group
from podfit.decide.autoscaling.in_place import Decision, decide
from podfit.decide.node.room.plan import waits_for_room
from podfit.decide.pod.requests import pod_limits, pod_requests
from podfit.testing.views import PodView
from support.pods import amounts, container, needs, pod, running, with_status

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TOO_LITTLE = "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"
SPEC = 5


def resized(reason: str, generation: int, seen: int) -> Pod:
    """A pod of generation 5 that wants 3 CPUs and holds 1; `reason` was said of `generation`."""
    given = pod(container("c", {"cpu": "3"}, {"cpu": "6"}), generation=SPEC, node_name="n")
    said = PodCondition(
        type="PodResizePending",
        status="True",
        reason=reason,
        message=TOO_LITTLE if reason == "Deferred" else "",
        observed_generation=generation,
        last_transition_time="2025-12-31T23:00:00Z",
    )
    status = running("c", needs({"cpu": "1"}, {"cpu": "2"}), {"cpu": "1"})
    return with_status(
        given, phase="Running", container_statuses=(status,), conditions=(said,), observed_generation=seen
    )


def updater(given: Pod, *, upstream: bool = False) -> Decision:
    """Of a pod that was seen resizing for 10 minutes, in a group that may lose one."""
    return decide(
        given,
        "InPlaceOrRecreate",
        Group(3, 1, 3, 0, below_minimum=False),
        RecommendedPodResources(),
        {},
        since=NOW - timedelta(minutes=10),
        now=NOW,
        skip_disruption_budget=False,
        upstream_compatible=upstream,
    ).decision


def readings(given: Pod) -> dict[str, object]:
    node = Node(metadata=ObjectMeta(name="n"), status=NodeStatus(allocatable=amounts({"cpu": "4", "memory": "4Gi"})))
    model = LiveNode(node, [given], Age())
    (member,) = model.members.values()
    return {
        "scheduler and quota, requests": pod_requests(given, use_status=True)["cpu"].value(),
        "quota, limits": pod_limits(given, use_status=True)["cpu"].value(),
        "updater": updater(given),
        "plan and why": state_of(given, tuple(sizes_of(given, Age().gates)), Age())[0],
        "the node tries it": len(model.queue()) == 1,
        "the node calls it infeasible": member.infeasible,
        "legacy clients": legacy_resize(given),
        "tests": PodView(given).resizing,
        "room is made": waits_for_room(given),
    }


def agreed(state: str, field: str, counts: int, updates: Decision, *, tried: bool, room: bool) -> dict[str, object]:
    return {
        "scheduler and quota, requests": counts,
        "quota, limits": 2 * counts,
        "updater": updates,
        "plan and why": state,
        "the node tries it": tried,
        "the node calls it infeasible": not tried,
        "legacy clients": field,
        "tests": field,
        "room is made": room,
    }


REFUSED = agreed(INFEASIBLE, "Infeasible", 1, Decision.EVICT, tried=False, room=False)
WAITING = agreed(DEFERRED, "Deferred", 3, Decision.EVICT, tried=True, room=True)
OPEN = agreed(UNSEEN, "Proposed", 3, Decision.DEFERRED, tried=True, room=False)


@pytest.mark.parametrize(
    ("reason", "generation", "seen", "expected"),
    [
        pytest.param("Infeasible", SPEC, SPEC, REFUSED, id="refused"),
        pytest.param("Infeasible", 4, 4, OPEN, id="an older size was refused"),
        pytest.param("Infeasible", 4, SPEC, REFUSED, id="refused; the spec changed in something else since"),
        pytest.param("Infeasible", 0, SPEC, REFUSED, id="refused by a node that tells no generation"),
        pytest.param("Deferred", SPEC, SPEC, WAITING, id="deferred"),
        pytest.param("Deferred", 4, 4, OPEN, id="an older size was deferred"),
        pytest.param("Deferred", 4, SPEC, WAITING, id="deferred; the spec changed in something else since"),
    ],
)
def test_all_readers_take_a_resize_for_the_same(
    reason: str, generation: int, seen: int, expected: dict[str, object]
) -> None:
    assert readings(resized(reason, generation, seen)) == expected


def test_upstreams_updater_evicts_for_what_was_said_of_an_older_size() -> None:
    assert updater(resized("Infeasible", 4, 4), upstream=True) is Decision.EVICT


def test_plan_takes_a_size_that_was_taken_back_for_settled() -> None:
    """The condition is of an older desire, and what is desired now is what the pod has."""
    given = resized("Infeasible", 4, 4)
    status = running("c", needs({"cpu": "3"}, {"cpu": "6"}), {"cpu": "3"})
    given = with_status(given, container_statuses=(status,))
    assert state_of(given, tuple(sizes_of(given, Age().gates)), Age())[0] == "settled"
