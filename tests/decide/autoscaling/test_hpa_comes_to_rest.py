"""An HPA and a VPA of one workload come to rest: whole days in their decisions alone, each from a seed."""

from collections.abc import Callable, Iterable

import msgspec
import pytest

from podfit.decide.autoscaling.horizontal.asked_size import VERTICAL_FIRST
from podfit.decide.autoscaling.horizontal.keep_point import KEEP_POINT
from support.hpa_days import Day, Phase, complaints, planned, reversals

PARTS, DAYS = 20, 50


def lived(seed: int, *, upstream: bool = False) -> Day:
    day = Day(planned(seed), upstream=upstream)
    day.live()
    return day


def unrest(seeds: Iterable[int], *, upstream: bool = False) -> dict[int, list[str]]:
    """By seed, what a day did not keep."""
    return {seed: told for seed in seeds if (told := list(complaints(lived(seed, upstream=upstream))))}


def test_hpa_and_vpa_come_to_rest() -> None:
    """Days of the campaign, one of each kind."""
    seeds = (0, 1, 11)
    assert {planned(seed).mode for seed in seeds} == {"", KEEP_POINT, VERTICAL_FIRST}
    assert unrest(seeds) == {}


def test_hpa_that_keeps_its_point_does_not_follow_a_minute_in_which_a_node_is_away() -> None:
    """Two minutes after the start one of two pods is lost, and the other has all of the load: a percentile of few
    samples doubles, and is what it was ten minutes later."""
    day = Day(msgspec.structs.replace(planned(644), phases=planned(644).phases[:1]), upstream=False)
    assert day.plan.mode == KEEP_POINT
    assert [phase.requests for phase in day.live()] == [[500, 386]]


def test_hpa_and_vpa_by_upstreams_rules_do_not_come_to_rest() -> None:
    """The VPA takes the first minutes, when one pod has all of the load, for what a pod needs."""
    assert "more than" in unrest((0,), upstream=True)[0][0]


def test_hpa_day_is_the_same_from_its_seed() -> None:
    plan = planned(3)
    short = msgspec.structs.replace(plan, phases=plan.phases[:1])
    days = [Day(short, upstream=False) for _ in range(2)]
    assert days[0].live() == days[1].live()
    assert len(days[0].phases[0].settled) > 10


def test_hpa_days_are_judged() -> None:
    """What would be wrong is seen: replicas and requests that turn twice, too much, too little, a budget."""
    day = Day(planned(0), upstream=False)
    load, target = 1000, day.plan.target / 100
    steady = Phase(0.0, 7200.0, load, [4, 6], [100, 120], [(6, int(load / target))])
    wrong = (
        Phase(0.0, 7200.0, load, [4, 6, 5, 6], [100]),
        Phase(0.0, 7200.0, load, [4], [100, 120, 110, 120]),
        Phase(0.0, 7200.0, load, [6], [100], [(6, 2 * int(load / target))]),
        Phase(0.0, 7200.0, load, [6], [100], [(6, load - 1)]),
    )
    day.phases = [steady]
    assert list(complaints(day)) == []
    for phase in wrong:
        day.phases = [phase]
        assert len(list(complaints(day))) == 1
    day.phases, day.violations = [], ["evicted below the budget"]
    assert len(list(complaints(day))) == 1


def test_hpa_reversals_are_counted() -> None:
    assert [reversals(course) for course in ([4], [4, 5, 6], [4, 6, 5], [4, 6, 5, 6])] == [0, 0, 1, 2]


@pytest.mark.campaign
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
def test_hpa_and_vpa_come_to_rest_on_a_thousand_days(part: int, figure: Callable[[str, object], None]) -> None:
    """A part of 1,000 random days (50 each): loads that stay for 90 minutes to 4 hours, an HPA, a VPA, its budget, 3 to
    6 nodes that are lost and come back; half of the HPAs keep their point, a third lets pods grow first. Under a
    constant load replicas and requests each reverse at most once; after 30 minutes all that is requested is at most
    1.5 x need / target + 1 replica, and never below need; no budget is violated. Beside it every fifth day by
    upstream's rules.
    """
    seeds = range(part * DAYS, (part + 1) * DAYS)
    restless = unrest(seeds)
    figure("days", DAYS)
    figure("days that do not come to rest", len(restless))
    others = seeds[::5]
    figure(f"of {len(others)} by upstream's rules", len(unrest(others, upstream=True)))
    assert restless == {}
