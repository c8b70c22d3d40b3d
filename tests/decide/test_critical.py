"""Who is ended for a critical pod."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podfit.api.core.v1.pods.containers import ContainerPort
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.cgroup.container_resources import Machine
from podfit.decide.node.critical import Occupant, Preempts, preemption
from podfit.decide.pod.system_priority import SYSTEM_CRITICAL
from podfit.decide.resize import verdict as verdicts
from podfit.decide.resize.neighbours import neighbour, others_of
from podfit.decide.resize.verdict import Deferred, NodeView
from support.placed import placed
from support.pods import amounts, container
from support.pods import pod as made

pytestmark = pytest.mark.row("R-117")
MACHINE = Machine(memory=8 << 30)


def node(cpu: str = "4", memory: str = "8Gi", pods: str = "110", **more: Any) -> NodeView:
    return NodeView(allocatable=amounts({"cpu": cpu, "memory": memory, "pods": pods}), machine=MACHINE, **more)


def critical(cpu: str = "2", memory: str = "0", priority: int | None = SYSTEM_CRITICAL, **more: Any) -> Pod:
    return placed(made(container("c", {"cpu": cpu, "memory": memory}), name="vital", priority=priority, **more))


def occupant(
    name: str, requests: Mapping[str, str], limits: Mapping[str, str] | None = None, *, going: bool = False, **more: Any
) -> Occupant:
    pod = placed(made(container("c", requests, limits), name=name, **more))
    return Occupant(pod, neighbour(pod, MACHINE.gates), going)


def best_effort(name: str, **more: Any) -> Occupant:
    return occupant(name, {}, **more)


def burstable(name: str, cpu: str, memory: str = "0", **more: Any) -> Occupant:
    return occupant(name, {"cpu": cpu, "memory": memory}, **more)


def guaranteed(name: str, cpu: str, memory: str = "1Gi", **more: Any) -> Occupant:
    both = {"cpu": cpu, "memory": memory}
    return occupant(name, both, both, **more)


def ask(pod: Pod, occupants: list[Occupant], view: NodeView) -> Preempts | None:
    refusal = verdicts.admit(pod, view, others_of([occupant.counts for occupant in occupants]))
    assert isinstance(refusal, Deferred)
    return preemption(pod, refusal, view, occupants)


def told(answer: Preempts | None) -> list[str] | None:
    return None if answer is None else [victim.metadata.name for victim in answer.victims]


@pytest.mark.parametrize(
    ("occupants", "victims"),
    [
        ([guaranteed("g", "2"), burstable("b", "2")], ["b"]),  # a Guaranteed pod is the last to go
        ([best_effort("e"), burstable("b", "3")], ["b"]),  # who frees nothing stays
        ([burstable("small", "1"), burstable("large", "2"), burstable("fit", "1")], ["large"]),  # one, not two
        ([burstable("x", "1500m"), burstable("y", "1800m"), burstable("z", "700m")], ["y", "z"]),
        ([burstable("more", "1600m"), burstable("least", "1500m")], ["least"]),  # of those that are enough, the smaller
        ([burstable("b", "1"), guaranteed("g", "1"), guaranteed("h", "2")], ["b", "g"]),
        ([guaranteed("g", "2"), guaranteed("h", "2", "512Mi")], ["h"]),  # equal in CPU: less memory
        ([burstable("b", "3", going=True), burstable("c", "1")], []),  # on its way out
        ([burstable("b", "1", going=True), burstable("c", "3")], ["c"]),
        ([burstable("b", "4", priority=SYSTEM_CRITICAL)], None),  # critical too
        ([burstable("b", "3", priority=SYSTEM_CRITICAL), burstable("c", "1")], None),  # what yields is not enough
        ([burstable("b", "4", annotations={"kubernetes.io/config.mirror": "x"})], None),  # a static pod
    ],
)
def test_victims(occupants: list[Occupant], victims: list[str] | None) -> None:
    assert told(ask(critical(), occupants, node())) == victims


def test_a_more_critical_pod_displaces_a_less_critical_one() -> None:
    asks = critical(priority=SYSTEM_CRITICAL + 1000)
    assert told(ask(asks, [burstable("b", "4", priority=SYSTEM_CRITICAL)], node())) == ["b"]
    static = critical(priority=None, annotations={"kubernetes.io/config.source": "file"})
    assert told(ask(static, [burstable("b", "4", priority=SYSTEM_CRITICAL)], node())) is None
    assert told(ask(static, [burstable("b", "4", priority=5)], node())) == ["b"]


@pytest.mark.parametrize("priority", [None, 0, SYSTEM_CRITICAL - 1])
def test_nobody_else_preempts(priority: int | None) -> None:
    assert ask(critical(priority=priority), [burstable("b", "4", priority=-1)], node()) is None


@pytest.mark.parametrize("view", [node(shutting_down=True), node(cpu="1")])
def test_room_has_to_be_all_that_is_missing(view: NodeView) -> None:
    assert ask(critical(), [burstable("b", "4")], view) is None


def test_nobody_ends_for_a_pod_whose_port_is_taken() -> None:
    """Room would not help it."""
    port = (ContainerPort(host_port=80),)
    holder = placed(made(container("c", {}, ports=port), name="holder"))
    vital = placed(made(container("c", {"cpu": "2"}, ports=port), name="vital", priority=SYSTEM_CRITICAL))
    holds = Occupant(holder, neighbour(holder, MACHINE.gates), False)
    assert ask(vital, [burstable("hog", "3"), holds], node()) is None
    assert ask(vital, [burstable("hog", "3")], node()) is not None


def test_several_resources_and_the_signal() -> None:
    occupants = [burstable("cpu", "4", "100Mi"), burstable("memory", "0", "6Gi"), burstable("tiny", "0", "100Mi")]
    answer = ask(critical("1", "4Gi"), occupants, node())
    assert told(answer) == ["cpu", "memory"]
    assert answer is not None
    assert answer.signal == "cpu"
    crowded = ask(critical("1"), [best_effort("e"), burstable("b", "1")], node(pods="2"))
    assert told(crowded) == ["e"]
    assert crowded is not None
    assert crowded.signal == "pods"


_CPU = st.integers(0, 20).map(lambda tenths: f"{tenths * 100}m")
_MEMORY = st.integers(0, 20).map(lambda tenths: f"{tenths * 100}Mi")


@st.composite
def _occupants(draw: st.DrawFn) -> list[Occupant]:
    found = []
    for number in range(draw(st.integers(0, 7))):
        make = draw(st.sampled_from([burstable, guaranteed]))
        found.append(
            make(
                f"p{number}",
                draw(_CPU),
                draw(_MEMORY),
                going=draw(st.booleans()),
                priority=draw(st.sampled_from([None, 0, 1000, SYSTEM_CRITICAL])),
            )
        )
    return found


@settings(max_examples=60, deadline=None)
@given(_occupants(), _CPU, _MEMORY)
def test_the_victims_are_enough_and_none_is_superfluous(occupants: list[Occupant], cpu: str, memory: str) -> None:
    view, asks = node("3", "3Gi"), critical(cpu, memory)
    refusal = verdicts.admit(asks, view, others_of([occupant.counts for occupant in occupants]))
    if not isinstance(refusal, Deferred):
        return
    answer = preemption(asks, refusal, view, occupants)
    yielding = [
        occupant for occupant in occupants if (occupant.pod.spec.priority or 0) < SYSTEM_CRITICAL and not occupant.going
    ]
    staying = [occupant for occupant in occupants if not occupant.going]

    def room_without(gone: list[Pod]) -> bool:
        names = {pod.metadata.name for pod in gone}
        left = [occupant.counts for occupant in staying if occupant.pod.metadata.name not in names]
        return not verdicts.shortage(asks, view, others_of(left))

    if answer is None:
        assert not room_without([occupant.pod for occupant in yielding])
        return
    victims = list(answer.victims)
    assert room_without(victims)
    assert all(any(occupant.pod is victim for occupant in yielding) for victim in victims)
    for victim in victims:
        assert not room_without([pod for pod in victims if pod is not victim])
    guaranteed_ones = [victim for victim in victims if victim.status.qos_class == "Guaranteed"]
    others = [occupant.pod for occupant in yielding if occupant.pod.status.qos_class != "Guaranteed"]
    assert not guaranteed_ones or not room_without(others), "a Guaranteed pod ends only where the others do not suffice"
