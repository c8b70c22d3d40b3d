"""Who has to go for a pod of higher priority."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.core.selectors import Matcher, from_map
from podfit.decide.placement.place import Placed, Unschedulable, place
from podfit.decide.placement.preempt import Budget, CannotPreempt, Eviction, preempt
from podfit.decide.placement.view import NodeInfo, Resident
from support.placing import HOSTNAME, a_node, a_pod, affinity

URGENT = a_pod("urgent", cpu="2", priority=100)
WEB = {"app": "web"}
NEVER = a_pod("urgent", cpu="2", priority=100, preemptionPolicy="Never")


def decided(pod: Resident, *views: NodeInfo, budgets: Sequence[Budget] = ()) -> Eviction | CannotPreempt:
    verdict = place(pod, views)
    assert isinstance(verdict, Unschedulable)
    return preempt(pod, verdict, views, budgets=budgets)


def victims(pod: Resident, *views: NodeInfo, budgets: Sequence[Budget] = ()) -> tuple[str, list[str]]:
    outcome = decided(pod, *views, budgets=budgets)
    assert isinstance(outcome, Eviction)
    return outcome.node, [victim.pod.metadata.name for victim in outcome.victims]


def low(name: str, cpu: str = "1", **given: Any) -> Resident:
    start = given.pop("start", "")
    return a_pod(name, cpu=cpu, status={"startTime": f"2026-01-01T00:00:{start}Z"} if start else {}, **given)


@pytest.mark.parametrize(
    ("pod", "views", "message"),
    [
        (URGENT, [a_node("a", cpu="1")], "0/1 nodes are available: 1 Preemption is not helpful for scheduling."),
        (
            URGENT,
            [a_node("a", low("x", "4", priority=100))],
            "0/1 nodes are available: 1 No preemption victims found for incoming pod.",
        ),
        (URGENT, [a_node("a", low("x", "3", priority=100), low("y"))], "0/1 nodes are available: 1 Insufficient cpu."),
        (NEVER, [a_node("a", low("x", "4"))], "not eligible due to preemptionPolicy=Never."),
    ],
)
def test_when_nobody_can_help_it_says_why(pod: Resident, views: list[NodeInfo], message: str) -> None:
    assert decided(pod, *views) == CannotPreempt(message)


def test_only_as_many_go_as_have_to_the_least_important_first() -> None:
    node = a_node("a", low("old", start="01"), low("new", start="09"), low("mid", priority=50), low("fill", start="05"))
    assert victims(a_pod(cpu="1", priority=100), node) == ("a", ["new"])
    assert victims(URGENT, node) == ("a", ["fill", "new"])


def test_a_big_one_is_not_kept_when_that_costs_the_place() -> None:
    node = a_node("a", low("big", "3", start="01"), low("small", "500m", start="09"))
    assert victims(a_pod(cpu="2", priority=100), node) == ("a", ["big"])


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([low("x", "4", priority=50)], [low("y", "4", priority=10)], "b"),  # the lower highest priority
        ([low("x", "2"), low("y", "2", priority=1)], [low("z", "4", priority=1)], "b"),  # the lower sum
        ([low("x", "2"), low("y", "1"), low("w", "1")], [low("z", "4")], "b"),  # fewer victims
        ([low("x", "4", start="01")], [low("y", "4", start="09")], "b"),  # the later start
        ([low("x", "4", start="01")], [low("y", "4", start="01")], "a"),  # the first
    ],
)
def test_of_several_nodes_the_one_that_hurts_least(
    first: list[Resident], second: list[Resident], expected: str
) -> None:
    pod = a_pod(cpu="4", priority=100)
    assert victims(pod, a_node("a", *first), a_node("b", *second))[0] == expected


def test_a_budget_is_overdrawn_only_when_nothing_else_helps() -> None:
    budget = Budget("default", Matcher(from_map(WEB).requirements), allowed=0)
    kept, other = low("kept", labels=WEB, start="09"), low("other", start="01")
    node = a_node("a", kept, other, cpu="2")
    assert victims(a_pod(cpu="1", priority=9), node) == ("a", ["kept"])
    assert victims(a_pod(cpu="1", priority=9), node, budgets=[budget]) == ("a", ["other"])
    both = decided(a_pod(cpu="2", priority=9), node, budgets=[budget])
    assert isinstance(both, Eviction)
    assert both.violations == 1
    free = a_node("b", low("y", "2", priority=8), cpu="2")
    assert victims(a_pod(cpu="2", priority=9), node, free, budgets=[budget])[0] == "b"
    assert victims(a_pod(cpu="2", priority=9), node, free)[0] == "a"


def test_while_a_victim_is_on_its_way_nobody_else_is_asked_to_go() -> None:
    leaving = a_pod(
        "x",
        cpu="2",
        meta={"deletionTimestamp": "2026-01-01T00:00:00Z"},
        status={"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]},
    )
    pod = a_pod("urgent", cpu="2", priority=100, status={"nominatedNodeName": "a"})
    assert decided(pod, a_node("a", leaving, cpu="2"), a_node("b", low("y", "2"), cpu="2")) == CannotPreempt(
        "not eligible due to a terminating pod on the nominated node.", keeps_nomination=True
    )


def test_a_pod_that_repels_the_newcomer_is_evicted_for_it() -> None:
    hermit = a_pod("hermit", affinity=affinity("podAntiAffinity", "web", HOSTNAME))
    assert victims(a_pod("urgent", labels=WEB, priority=1), a_node("a", hermit, low("x"))) == ("a", ["hermit"])


sizes = st.integers(1, 4)
crowds = st.lists(st.tuples(sizes, st.integers(0, 3)), max_size=6)


@given(crowds, crowds, sizes)
def test_victims_are_lower_enough_and_each_of_them_needed(
    first: list[tuple[int, int]], second: list[tuple[int, int]], size: int
) -> None:
    def crowd(prefix: str, members: list[tuple[int, int]]) -> list[Resident]:
        return [a_pod(f"{prefix}{i}", cpu=str(cpu), priority=order) for i, (cpu, order) in enumerate(members)]

    pod = a_pod("urgent", cpu=str(size), priority=2)
    views = [a_node("a", *crowd("a", first), cpu="8"), a_node("b", *crowd("b", second), cpu="8")]
    verdict = place(pod, views)
    if isinstance(verdict, Placed):
        return
    outcome = preempt(pod, verdict, views)
    if isinstance(outcome, CannotPreempt):
        for view in views:
            staying = [resident for resident in view.residents if resident.priority >= 2]
            assert isinstance(place(pod, [view.with_residents(staying)]), Unschedulable)
        return
    chosen = next(view for view in views if view.name == outcome.node)
    gone = {victim.uid for victim in outcome.victims}
    assert all(victim.priority < 2 for victim in outcome.victims)
    staying = [resident for resident in chosen.residents if resident.uid not in gone]
    assert isinstance(place(pod, [chosen.with_residents(staying)]), Placed)
    for spared in outcome.victims:
        assert isinstance(place(pod, [chosen.with_residents([*staying, spared])]), Unschedulable)
