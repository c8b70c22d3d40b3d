"""Nodes, replicas and sizes come to rest under a constant load: whole days in the decisions alone, each from a seed."""

from collections.abc import Callable, Iterable

import pytest

from podfit.decide.autoscaling.horizontal.asked_size import VERTICAL_FIRST
from podfit.decide.autoscaling.horizontal.keep_point import KEEP_POINT
from support.autoscaled_days import AutoscaledDay, planned, turned

PARTS, DAYS = 20, 50


def unrest(seeds: Iterable[int], hours: float) -> tuple[dict[int, list[str]], dict[str, int]]:
    """By seed what a day did not keep, and how often what was seen at a look."""
    restless: dict[int, list[str]] = {}
    seen: dict[str, int] = {}
    for seed in seeds:
        day = AutoscaledDay(planned(seed, hours))
        day.live()
        if day.complaints:
            restless[seed] = day.complaints
        for what, count in day.seen().items():
            seen[what] = seen.get(what, 0) + count
    return restless, seen


def test_capacity_all_three_autoscalers_come_to_rest() -> None:
    seeds = (0, 14)
    assert {wish.mode for seed in seeds for wish in planned(seed).wishes.values()} == {"", KEEP_POINT, VERTICAL_FIRST}
    restless, seen = unrest(seeds, 6.0)
    assert restless == {}
    assert {"pod: node", "nodes added", "nodes removed", "resizes"} <= seen.keys()


def test_capacity_a_day_is_the_same_from_its_seed() -> None:
    days = [AutoscaledDay(planned(3, 1.0)) for _ in range(2)]
    for day in days:
        day.live()
    assert days[0].history == days[1].history
    assert days[0].seen() == days[1].seen()
    assert days[0].history


def test_capacity_turns_are_seen() -> None:
    """What would be wrong is: the same twice within an hour, and not once, or under another load."""
    history = [(10.0, "added", "a-1"), (20.0, "removed", "a-1"), (30.0, "added", "a-2"), (40.0, "removed", "a-2")]
    assert len(list(turned(history, 0.0, 100.0))) == 1
    assert list(turned(history[:3], 0.0, 100.0)) == []
    assert list(turned(history, 25.0, 100.0)) == []


def test_capacity_pods_that_nobody_speaks_of_are_seen() -> None:
    """What would be wrong is: a pod or a resize that waits and of which no reason is told; a pod without a place for
    longer than a node takes to come."""
    day = AutoscaledDay(planned(0, 1.0))
    day.provided = False
    day.live()
    assert any("has no place after" in text for text in day.complaints)
    day = AutoscaledDay(planned(0, 1.0))
    day.untold = True
    day.live()
    assert any("is told nothing" in text for text in day.complaints)


@pytest.mark.campaign
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
def test_capacity_all_three_autoscalers_come_to_rest_on_a_thousand_days(
    part: int, figure: Callable[[str, object], None]
) -> None:
    """A part of 1,000 random days (50 each) of workloads with an HPA and a VPA on nodes that come and go: every
    pod has its place, or a reason, in a node's time and two minutes; replicas, requests and nodes come to rest.

    2 or 3 workloads (keep-point, vertical-first or neither), half of them with a budget, two groups whose nodes take 30
    to 180 s to come, loads that stay for 90 minutes to 6 hours. Every resize that waits is spoken of; no group is given
    a node and loses one twice within an hour under one load; replicas and requests reverse at most once, and half an
    hour after a change what is requested is neither less than the load nor more than 1.5 times the need and a replica;
    no budget is violated."""
    restless, seen = unrest(range(part * DAYS, (part + 1) * DAYS), 24.0)
    figure("days", DAYS)
    for what, count in sorted(seen.items()):
        figure(what, count)
    assert restless == {}
