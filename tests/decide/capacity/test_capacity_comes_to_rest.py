"""Nodes come to rest under a constant load: whole days in the decisions alone, each from a seed."""

from collections.abc import Callable, Iterable

import pytest

from support.node_days import NodeDay, planned, turned

DAYS, PARTS = 10, 100


def unrest(seeds: Iterable[int], hours: float) -> tuple[dict[int, list[str]], dict[str, int]]:
    """By seed what a day did not keep, and how often which act came next for a pod."""
    restless: dict[int, list[str]] = {}
    acts: dict[str, int] = {}
    for seed in seeds:
        day = NodeDay(planned(seed, hours))
        day.live()
        if day.complaints:
            restless[seed] = day.complaints
        acts = {act: acts.get(act, 0) + day.acts.get(act, 0) for act in acts.keys() | day.acts.keys()}
    return restless, acts


def test_capacity_nodes_come_to_rest() -> None:
    restless, acts = unrest((0, 6), 4.0)
    assert restless == {}
    assert {"node", "move", "wait"} <= acts.keys()


def test_capacity_a_day_is_the_same_from_its_seed() -> None:
    days = [NodeDay(planned(3, 1.0)) for _ in range(2)]
    for day in days:
        day.live()
    assert days[0].history == days[1].history
    assert days[0].history


def test_capacity_turns_are_seen() -> None:
    """What would be wrong is: the same twice within an hour, and not once, or under another load."""
    history = [(10.0, "added", "a-1"), (20.0, "removed", "a-1"), (30.0, "added", "a-2"), (40.0, "removed", "a-2")]
    assert len(list(turned(history, 0.0, 100.0))) == 1
    assert list(turned(history[:3], 0.0, 100.0)) == []
    assert list(turned(history, 25.0, 100.0)) == []


@pytest.mark.campaign
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
def test_capacity_nodes_come_to_rest_on_a_thousand_days(part: int, figure: Callable[[str, object], None]) -> None:
    """A part of 1,000 random days (10 each): 2 to 5 workloads whose numbers and sizes change every 90 to 150 minutes,
    resized in place where there is room, on two groups whose nodes take 30 to 180 s to come. Every pod is placed or
    told why within that time and five minutes; no group is given a node and loses one twice within an hour under one
    load."""
    restless, acts = unrest(range(part * DAYS, (part + 1) * DAYS), 24.0)
    figure("days", DAYS)
    for act, count in sorted(acts.items()):
        figure(f"pods at a look: {act}", count)
    assert restless == {}
