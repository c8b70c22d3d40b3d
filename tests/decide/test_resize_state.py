"""What a pod's resize stands for, read from its conditions."""

import pytest

from podfit.api.core.v1.pods.types import PodCondition
from podfit.decide.pod.resize_state import ResizeStage, ResizeState, Shortage
from support.pods import container, pod, with_status

LEGACY = ("Proposed", "Deferred", "Infeasible", "InProgress")


def state(*conditions: PodCondition, resize: str = "") -> ResizeState:
    given = with_status(pod(container("c"), generation=2), conditions=conditions, resize=resize, observed_generation=2)
    return ResizeState.by_field(given) if resize else ResizeState.of(given)


def pending(reason: str, message: str = "", status: str = "True") -> PodCondition:
    return PodCondition(
        type="PodResizePending",
        status=status,
        reason=reason,
        message=message,
        observed_generation=2,
        last_transition_time="2026-01-01T00:00:05Z",
    )


def progress(reason: str = "", message: str = "") -> PodCondition:
    return PodCondition(type="PodResizeInProgress", status="True", reason=reason, message=message)


@pytest.mark.parametrize(
    ("conditions", "stage"),
    [
        ((), ResizeStage.NONE),
        ((PodCondition(type="Ready", status="True"),), ResizeStage.NONE),
        ((pending("Deferred"),), ResizeStage.DEFERRED),
        ((pending("Infeasible"),), ResizeStage.INFEASIBLE),
        ((pending("Later"),), ResizeStage.UNKNOWN),
        ((pending("Infeasible", status="False"),), ResizeStage.NONE),
        ((progress(),), ResizeStage.IN_PROGRESS),
        ((progress("Error", "x"),), ResizeStage.ERROR),
        ((progress("", "x"),), ResizeStage.UNKNOWN),
        ((progress("Error", "x"), pending("Deferred")), ResizeStage.DEFERRED),
        ((pending("Infeasible"), pending("Deferred")), ResizeStage.INFEASIBLE),
    ],
)
def test_the_stage(conditions: tuple[PodCondition, ...], stage: ResizeStage) -> None:
    assert state(*conditions).stage is stage


def test_what_waits_and_what_fails_are_told_beside_each_other() -> None:
    both = state(progress("Error", "the runtime said no"), pending("Deferred", "no room"))
    assert (both.error, both.message, both.generation) == ("the runtime said no", "no room", 2)
    assert str(both.waits_since) == "2026-01-01 00:00:05+00:00"


@pytest.mark.parametrize(
    "shortage",
    [Shortage("cpu", 2000, 3100, 4000), Shortage("memory", 2**40, 0, 1), Shortage("example.com/gpu", 1, 1, 1)],
)
def test_a_shortage_is_read_back_from_its_message(shortage: Shortage) -> None:
    assert state(pending("Deferred", str(shortage))).shortage == shortage
    assert shortage.short_by == shortage.requested + shortage.used - shortage.capacity


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("Deferred", "The node had condition: [DiskPressure]. "),
        ("Deferred", "Node didn't have enough resource: cpu, requested: many, used: 1, capacity: 1"),
        ("Deferred", "Node didn't have enough resource: cpu, requested: " + "9" * 10_000 + ", used: 1, capacity: 1"),
        ("Infeasible", str(Shortage("cpu", 2, 1, 1))),
    ],
)
def test_what_is_no_shortage_is_none(reason: str, message: str) -> None:
    assert state(pending(reason, message)).shortage is None


@pytest.mark.parametrize("word", LEGACY)
def test_the_field_of_old_nodes_reads_as_its_conditions_do(word: str) -> None:
    assert state(resize=word).stage.value == word
    assert state(resize="Whatever").stage is ResizeStage.UNKNOWN
