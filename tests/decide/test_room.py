"""Who makes room for a deferred resize, how much, and in which order (docs/room.md)."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod, PodCondition
from podfit.decide.node.room.minimum import MINIMUM, minimums
from podfit.decide.node.room.plan import Impossible, NothingNeeded, RoomPlan, plan, waits_for_room
from podfit.decide.node.room.shrinkable import after
from podfit.decide.pod.qos import qos_class
from podfit.decide.pod.requests import pod_requests
from podfit.decide.resize import verdict as verdicts
from support.placed import RESTART_CPU, RESTART_MEMORY, placed
from support.pods import amounts, container, needs, running, sidecar, with_status
from support.pods import pod as made

Amounts = Mapping[str, str]
NODE = amounts({"cpu": "4", "memory": "8Gi", "pods": "110"})
TOO_LITTLE = "Node didn't have enough resource: cpu, requested: 2000, used: 3100, capacity: 4000"


def pending(reason: str = "Deferred", message: str = TOO_LITTLE, generation: int = 1) -> PodCondition:
    return PodCondition(
        type="PodResizePending", status="True", reason=reason, message=message, observed_generation=generation
    )


def progress(reason: str = "") -> PodCondition:
    return PodCondition(type="PodResizeInProgress", status="True", reason=reason, observed_generation=1)


def on_node(*containers: Any, name: str, priority: int | None = None, minimum: str = "", **more: Any) -> Pod:
    """A pod that runs at its spec, unless `held` says what its node has promised and enforces for container `c`."""
    held, conditions, deleted = more.pop("held", None), more.pop("conditions", ()), more.pop("deleted", None)
    annotations = {MINIMUM: minimum} if minimum else {}
    built = placed(made(*containers, name=name, annotations=annotations, priority=priority, node_name="n1", **more))
    built = replace(built, metadata=replace(built.metadata, deletion_timestamp=deleted))
    statuses = tuple(
        running(
            container.name,
            needs(held, held) if held else container.resources,
            held or {name: str(amount) for name, amount in container.resources.requests.items()},
        )
        for container in containers
    )
    return with_status(built, phase="Running", container_statuses=statuses, conditions=tuple(conditions))


def grower(cpu: str = "2", memory: str = "0", *, now: str = "500m", **more: Any) -> Pod:
    asks = {"cpu": cpu, "memory": memory} if memory != "0" else {"cpu": cpu}
    more = {"name": "grower", "priority": 1000, "conditions": (pending(),), **more}
    return on_node(container("c", asks), held={"cpu": now}, **more)


def burstable(name: str, cpu: str, minimum: str = "cpu=100m", **more: Any) -> Pod:
    return on_node(container("c", {"cpu": cpu}), name=name, minimum=minimum, **more)


def guaranteed(name: str, cpu: str, memory: str, minimum: str, **more: Any) -> Pod:
    both = {"cpu": cpu, "memory": memory}
    return on_node(container("c", both, both), name=name, minimum=minimum, **more)


def decide(deferred: Pod, *neighbours: Pod, evict: bool = False) -> NothingNeeded | RoomPlan | Impossible:
    targets = {neighbour.metadata.uid: minimums(neighbour) for neighbour in neighbours}
    return plan(deferred, neighbours, NODE, targets, evict=evict)


def told(verdict: object) -> object:
    """A plan as it reads: what each gives, and who goes."""
    if isinstance(verdict, RoomPlan):
        given = {
            shrink.pod.metadata.name: {name: str(amount) for name, amount in shrink.given.items()}
            for shrink in verdict.shrinks
        }
        return given, [victim.metadata.name for victim in verdict.victims]
    return type(verdict)


@pytest.mark.parametrize(
    ("neighbours", "expected"),
    [
        ([burstable("a", "3")], ({"a": {"cpu": "1"}}, [])),  # no more than is missing
        ([burstable("a", "2")], NothingNeeded),
        ([burstable("a", "1500m"), burstable("b", "1500m", priority=-1)], ({"b": {"cpu": "1"}}, [])),  # lowest first
        ([burstable("a", "1"), burstable("b", "2")], ({"b": {"cpu": "1"}}, [])),  # then most slack
        (
            [burstable("a", "1200m", "cpu=600m"), burstable("b", "1800m", "cpu=1300m")],
            ({"a": {"cpu": "600m"}, "b": {"cpu": "400m"}}, []),
        ),
        ([burstable("a", "3", "")], Impossible),  # no minimum
        ([burstable("a", "3", "cpu=2100m")], Impossible),  # not enough: nobody gives
        ([burstable("a", "3", priority=1000)], Impossible),  # equal priority
        ([burstable("a", "3", priority=1001)], Impossible),
        ([burstable("a", "3", resources=needs({"cpu": "3"}))], Impossible),  # counts as a whole
        ([burstable("a", "3", conditions=(progress(),))], Impossible),  # busy
    ],
)
def test_who_gives(neighbours: list[Pod], expected: object) -> None:
    assert told(decide(grower(), *neighbours)) == expected


def test_the_default_priority_is_zero() -> None:
    assert told(decide(grower(priority=None), burstable("a", "3", priority=-1))) == ({"a": {"cpu": "1"}}, [])
    assert told(decide(grower(priority=None), burstable("a", "3"))) is Impossible


def test_a_burstable_container_keeps_its_limits_and_a_guaranteed_one_its_class() -> None:
    loose = on_node(container("c", {"cpu": "3"}, {"cpu": "4"}), name="a", minimum="cpu=100m")
    verdict = decide(grower(), loose)
    assert isinstance(verdict, RoomPlan)
    assert verdict.shrinks[0].containers == {"c": needs({"cpu": "2"}, {"cpu": "4"})}
    tight = guaranteed("a", "3", "1Gi", "cpu=100m,memory=1Mi")
    verdict = decide(grower(), tight)
    assert isinstance(verdict, RoomPlan)
    both = {"cpu": "2", "memory": "1Gi"}
    assert verdict.shrinks[0].containers == {"c": needs(both, both)}


def test_several_resources_come_from_whom_has_them() -> None:
    asks = grower("2", "4Gi")
    neighbours = (
        guaranteed("cpu-rich", "3", "2Gi", "cpu=1"),
        on_node(container("c", {"memory": "4Gi"}), name="memory-rich", minimum="memory=1Gi"),
    )
    assert told(decide(asks, *neighbours)) == ({"cpu-rich": {"cpu": "1"}, "memory-rich": {"memory": "2Gi"}}, [])


def test_amounts_are_whole_steps_but_never_more_than_there_is() -> None:
    odd = on_node(container("c", {"memory": "7900000001"}), name="a", minimum="memory=1Gi")
    verdict = decide(grower("500m", "1Gi"), odd)
    assert isinstance(verdict, RoomPlan)
    assert str(verdict.shrinks[0].given["memory"]) == "367Mi"
    exact = on_node(container("c", {"memory": "7900000001"}), name="a", minimum="memory=7516192768")
    assert told(decide(grower("500m", "1Gi"), exact)) == ({"a": {"memory": "383807233"}}, [])


@pytest.mark.parametrize(("minimum", "gives"), [("cpu=100m", False), ("cpu=100m,restart=allowed", True)])
def test_what_would_restart_gives_only_with_leave(minimum: str, gives: bool) -> None:
    touchy = on_node(container("c", {"cpu": "3"}, resize_policy=(RESTART_CPU,)), name="a", minimum=minimum)
    assert isinstance(decide(grower(), touchy), RoomPlan) is gives
    other = on_node(container("c", {"cpu": "3"}, resize_policy=(RESTART_MEMORY,)), name="a", minimum=minimum)
    assert isinstance(decide(grower(), other), RoomPlan)


def test_containers_give_in_their_order_and_the_unnamed_ones_keep() -> None:
    several = on_node(
        container("x", {"cpu": "1"}),
        container("y", {"cpu": "1"}),
        container("z", {"cpu": "1"}),
        name="a",
        minimum="x:cpu=400m,z:cpu=100m",
    )
    verdict = decide(grower(), several)
    assert isinstance(verdict, RoomPlan)
    assert verdict.shrinks[0].containers == {"x": needs({"cpu": "400m"}), "z": needs({"cpu": "600m"})}


def test_init_containers_bound_what_shrinking_frees() -> None:
    hungry = on_node(
        container("c", {"cpu": "3"}), name="a", minimum="cpu=100m", init=(container("i", {"cpu": "2500m"}),)
    )
    assert told(decide(grower(), hungry)) is Impossible
    beside = on_node(container("c", {"cpu": "2"}), name="a", minimum="cpu=100m", init=(sidecar("s", {"cpu": "1"}),))
    assert told(decide(grower(), beside)) == ({"a": {"cpu": "1"}}, [])


# ------------------------------------------------------------------ what is under way


@pytest.mark.parametrize(
    ("neighbour", "expected"),
    [
        (burstable("a", "2", held={"cpu": "3"}), NothingNeeded),  # shrinks already
        (burstable("a", "3", deleted="2026-01-01T00:00:00Z"), NothingNeeded),  # goes already
        (burstable("a", "2", held={"cpu": "3"}, conditions=(progress("Error"),)), Impossible),  # fails to shrink
        (burstable("a", "2", held={"cpu": "3"}, conditions=(pending("Infeasible"),)), Impossible),
        (burstable("a", "3", held={"cpu": "1"}), NothingNeeded),  # grows, and the node has not agreed
    ],
)
def test_what_is_under_way_counts_as_done(neighbour: Pod, expected: type) -> None:
    assert told(decide(grower(), neighbour)) is expected


@pytest.mark.parametrize(
    ("change", "waits"),
    [
        ({}, True),
        ({"generation": 2}, False),  # spoke about an older desire
        ({"conditions": (pending("Infeasible"),)}, False),
        ({"conditions": (pending(message="The node had condition: [DiskPressure]. "),)}, False),
        ({"conditions": ()}, False),
    ],
)
def test_which_pods_wait_for_room(change: dict[str, Any], waits: bool) -> None:
    assert waits_for_room(grower(**change)) is waits


# ------------------------------------------------------------------ eviction


@pytest.mark.parametrize(
    ("neighbours", "expected"),
    [
        ([burstable("a", "3")], ({"a": {"cpu": "1"}}, [])),  # shrinking suffices
        ([burstable("a", "2", ""), burstable("b", "1", "")], ({}, ["b"])),  # the smallest that is enough
        ([burstable("a", "1", "", priority=5), burstable("b", "2", "")], ({}, ["b"])),  # lower priority first
        (
            [burstable("a", "1", "", priority=5), burstable("b", "1500m", "cpu=1400m"), burstable("c", "500m", "")],
            ({}, ["b"]),
        ),
        ([burstable("a", "1300m", ""), burstable("b", "900m", ""), burstable("c", "800m", "")], ({}, ["a"])),
        (
            [burstable("a", "2100m", "cpu=1500m"), burstable("b", "900m", "", priority=-1)],
            ({"a": {"cpu": "100m"}}, ["b"]),
        ),  # both together
        ([burstable("a", "3", "", priority=1000)], Impossible),
        ([burstable("a", "2100m", "", priority=1000), burstable("b", "900m", "")], Impossible),  # would not be enough
    ],
)
def test_who_is_evicted_when_shrinking_is_not_enough(neighbours: list[Pod], expected: object) -> None:
    assert told(decide(grower(), *neighbours, evict=True)) == expected


def test_a_pod_that_preempts_never_only_asks() -> None:
    assert told(decide(grower(preemption_policy="Never"), burstable("a", "3", ""), evict=True)) is Impossible
    assert told(decide(grower(preemption_policy="Never"), burstable("a", "3"), evict=True)) == ({"a": {"cpu": "1"}}, [])


# ------------------------------------------------------------------ whatever the node looks like

_MILLI = st.integers(1, 40).map(lambda tenths: f"{tenths * 100}m")
_MEBI = st.integers(1, 80).map(lambda hundreds: f"{hundreds * 100}Mi")


@st.composite
def _neighbours(draw: st.DrawFn) -> list[Pod]:
    pods = []
    for number in range(draw(st.integers(0, 5))):
        asks = {"cpu": draw(_MILLI), "memory": draw(_MEBI)}
        limits = draw(st.sampled_from([None, asks]))
        policy = draw(st.sampled_from([(), (RESTART_CPU,), (RESTART_MEMORY,)]))
        entries = [f"cpu={draw(_MILLI)}", f"memory={draw(_MEBI)}", "restart=allowed"]
        init = draw(st.sampled_from([(), (container("i", {"cpu": "1", "memory": "1Gi"}),)]))
        pods.append(
            on_node(
                container("c", asks, limits, resize_policy=policy),
                name=f"p{number}",
                init=init if limits is None else (),
                priority=draw(st.sampled_from([None, -5, 500, 1000, 2000])),
                minimum=",".join(draw(st.lists(st.sampled_from(entries), unique=True))),
            )
        )
    return pods


def _outcome(verdict: RoomPlan, neighbours: list[Pod]) -> list[Pod]:
    shrunk = {shrink.pod.metadata.uid: _settled(after(shrink)) for shrink in verdict.shrinks}
    gone = {victim.metadata.uid for victim in verdict.victims}
    return [
        shrunk.get(neighbour.metadata.uid, neighbour) for neighbour in neighbours if neighbour.metadata.uid not in gone
    ]


def _settled(shrunk: Pod) -> Pod:
    return with_status(shrunk, container_statuses=())


def _has_room(asks: Pod, neighbours: list[Pod]) -> bool:
    return not verdicts.short_by(
        pod_requests(asks), NODE, [pod_requests(neighbour, use_status=True) for neighbour in neighbours]
    )


@settings(max_examples=60, deadline=None)
@given(_neighbours(), _MILLI, _MEBI, st.booleans())
def test_a_plan_is_kind_and_sufficient(neighbours: list[Pod], cpu: str, memory: str, evict: bool) -> None:
    asks = grower(cpu, memory, now="100m")
    verdict = decide(asks, *neighbours, evict=evict)
    assert isinstance(verdict, NothingNeeded) == _has_room(asks, neighbours)
    if not isinstance(verdict, RoomPlan):
        return
    assert _has_room(asks, _outcome(verdict, neighbours)), "it frees what is missing"
    assert evict or not verdict.victims
    touched = [*(shrink.pod for shrink in verdict.shrinks), *verdict.victims]
    assert all((pod.spec.priority or 0) < 1000 for pod in touched)
    assert len({pod.metadata.uid for pod in touched}) == len(touched)
    for change in verdict.shrinks:
        floors, shrunk = minimums(change.pod), after(change)
        assert qos_class(shrunk) == change.pod.status.qos_class
        for old, new in zip(change.pod.spec.containers, shrunk.spec.containers, strict=True):
            for name, before in old.resources.requests.items():
                now, floor = new.resources.requests[name], floors[old.name].floor.get(name)
                assert now == before or (floor is not None and floor <= now < before)
                restarts = any(policy.resource_name == name for policy in old.resize_policy)
                assert now == before or not restarts or floors[old.name].restart


@settings(max_examples=60, deadline=None)
@given(_neighbours(), _MILLI, _MEBI)
def test_nobody_is_evicted_who_could_be_spared(neighbours: list[Pod], cpu: str, memory: str) -> None:
    asks = grower(cpu, memory, now="100m")
    verdict = decide(asks, *neighbours, evict=True)
    if not isinstance(verdict, RoomPlan):
        return
    for spared in verdict.victims:
        gone = {victim.metadata.uid for victim in verdict.victims if victim is not spared}
        rest = [neighbour for neighbour in neighbours if neighbour.metadata.uid not in gone]
        assert isinstance(decide(asks, *rest), Impossible), "without this victim shrinking is not enough"


@settings(max_examples=60, deadline=None)
@given(_neighbours(), _MILLI, _MEBI)
def test_eviction_finds_room_whenever_the_lower_ones_have_it(neighbours: list[Pod], cpu: str, memory: str) -> None:
    asks = grower(cpu, memory, now="100m")
    higher = [neighbour for neighbour in neighbours if (neighbour.spec.priority or 0) >= 1000]
    possible = _has_room(asks, higher)
    assert isinstance(decide(asks, *neighbours, evict=True), Impossible) is not possible


def test_what_is_available_is_told() -> None:
    rich = on_node(container("c", {"memory": "4Gi"}), name="b", minimum="memory=1Gi")
    verdict = decide(grower(), burstable("a", "3", "cpu=2500m"), rich)
    assert verdict == Impossible(amounts({"cpu": "1"}), amounts({"cpu": "500m"}))
