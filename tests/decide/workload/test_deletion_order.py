"""Which pods go first when a replica set shrinks."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.core.times import format_time
from podfit.decide.workload.deletion_order import cost_of, first_to_go

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def ago(seconds: float) -> str:
    return format_time(NOW - timedelta(seconds=seconds))


def pod(name: str, *, ready: float | None = 100.0, **facts: Any) -> Pod:
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ago(ready)}] if ready is not None else []
    cost = {"controller.kubernetes.io/pod-deletion-cost": facts["cost"]} if "cost" in facts else {}
    status = {"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": facts.get("restarts", 0)}
    document = {
        "metadata": {"name": name, "uid": name, "annotations": cost, "creationTimestamp": ago(facts.get("age", 200.0))},
        "spec": {"nodeName": facts.get("node", "n1")},
        "status": {"phase": facts.get("phase", "Running"), "conditions": conditions, "containerStatuses": [status]},
    }
    return convert(document, Pod)


PAIRS = {
    "one without a node": (pod("b", node=""), pod("a")),
    "one that is pending": (pod("b", phase="Pending"), pod("a")),
    "one of unknown phase": (pod("b", phase="Unknown"), pod("a")),
    "one that is not ready": (pod("b", ready=None), pod("a")),
    "a cheap one": (pod("b", cost="-1"), pod("a")),
    "not the dear one": (pod("b"), pod("a", cost="5")),
    "one ready for a shorter time": (pod("b", ready=10), pod("a", ready=1000)),
    "by chance among those ready about as long": (pod("a", ready=100), pod("b", ready=99)),
    "one restarted more often": (pod("b", restarts=3), pod("a", restarts=1)),
    "a younger one": (pod("b", ready=None, age=5), pod("a", ready=None, age=5000)),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_first_goes(pair: tuple[Pod, Pod]) -> None:
    first, other = pair
    for pods in ([first, other], [other, first]):
        assert first_to_go(pods, pods, 1, NOW) == [first]


def test_a_crowded_node_loses_one_first() -> None:
    alone, crowded = pod("a", node="n1"), pod("b", node="n2")
    related = [alone, crowded, pod("c", node="n2")]
    assert first_to_go([alone, crowded], related, 1, NOW) == [crowded]


def test_all_go_when_all_are_to() -> None:
    pods = [pod("a"), pod("b")]
    assert first_to_go(pods, pods, 2, NOW) == pods


@pytest.mark.parametrize(
    ("text", "cost"), [("", 0), ("-5", -5), ("+7", 7), ("2147483648", 0), ("1.5", 0), ("9" * 5000, 0)]
)
def test_a_cost_is_a_number_of_32_bits(text: str, cost: int) -> None:
    assert cost_of(pod("a", cost=text)) == cost
