"""docs/shrink.md: the next step of a guarded memory shrink, from what was seen."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.decide.resize import guarded_shrink as guarded
from podfit.decide.resize.guarded_shrink import (
    Action,
    GuardedShrink,
    Lower,
    ReclaimStep,
    Stop,
    UsageReading,
    margin,
    targets,
)
from podfit.decide.resize.memory_shrink import Memory

MI = 1 << 20
LIMIT = 64 * MI
GOAL = 62 * MI


def seen(usage: int, at: float = 0.0, stalled: int | None = None) -> UsageReading:
    return UsageReading(usage=usage, at=at, stalled=stalled)


def after(*looks: UsageReading, limit: int = LIMIT, previous: int | None = None) -> Action:
    """What the last of these looks leads to."""
    shrink, action = GuardedShrink(limit=limit, previous=previous), None
    for look in looks:
        shrink, action = shrink.following(look)
    assert action is not None
    return action


@pytest.mark.parametrize(
    ("looks", "action"),
    [
        ([seen(40 * MI)], Lower(high=GOAL)),
        ([seen(GOAL)], Lower(high=GOAL)),
        ([seen(GOAL + 4096)], ReclaimStep(high=GOAL, reclaim=4096)),
        ([seen(80 * MI)], ReclaimStep(high=70 * MI, reclaim=10 * MI)),
        ([seen(80 * MI), seen(70 * MI, 0.9), seen(69 * MI, 1.8)], ReclaimStep(high=GOAL, reclaim=7 * MI)),
        ([seen(80 * MI), seen(80 * MI, 0.9)], ReclaimStep(high=70 * MI, reclaim=10 * MI)),
        ([seen(80 * MI), seen(80 * MI, 1.0)], Stop(reason="nothing more was reclaimed for 1 s")),
        ([seen(80 * MI), seen(90 * MI, 0.5), seen(80 * MI, 1.0)], Stop(reason="nothing more was reclaimed for 1 s")),
        (
            [seen(80 * MI, 0, 0), seen(75 * MI, 0.1, 40_000)],
            Stop(reason="everything waited for memory for 40% of the time"),
        ),
        ([seen(80 * MI, 0, 0), seen(GOAL, 0.1, 40_000)], Lower(high=GOAL)),
        ([seen(80 * MI, 0, 0), seen(72 * MI, 0.1, 10_000)], ReclaimStep(high=63 * MI, reclaim=9 * MI)),
        ([seen(MI << 10, 19.5), seen(500 * MI, 20.0)], Stop(reason="not done after 20 s")),
    ],
)
def test_next(looks: list[UsageReading], action: Action) -> None:
    assert after(*looks) == action


def test_a_limit_without_room_for_a_margin_is_not_tried() -> None:
    assert isinstance(after(seen(80 * MI), limit=MI), Stop)


def test_an_earlier_memory_high_is_never_loosened() -> None:
    assert after(seen(80 * MI), previous=50 * MI) == ReclaimStep(high=50 * MI, reclaim=30 * MI)
    assert after(seen(40 * MI), previous=50 * MI) == Lower(high=50 * MI)


@pytest.mark.parametrize(
    ("annotations", "default", "wanted"),
    [
        ({}, "checked", False),
        ({}, "guarded", True),
        ({guarded.ANNOTATION: "guarded"}, "checked", True),
        ({guarded.ANNOTATION: "checked"}, "guarded", False),
    ],
)
def test_the_pod_goes_before_the_node(annotations: dict[str, str], default: str, wanted: bool) -> None:
    assert guarded.asked_for(annotations, default) is wanted


def test_the_text_holds_the_checks_own_words() -> None:
    text = guarded.objection('container "c1"', 5, 7, "why")
    assert 'container "c1" memory limit (5) below current usage (7)' in text


@dataclass
class Kernel:
    """A cgroup as the kernel would have it: `fixed` cannot be reclaimed, `cache` can, and somebody takes more."""

    fixed: int
    cache: int
    high: int | None = None

    @property
    def usage(self) -> int:
        return self.fixed + self.cache

    def take(self, amount: int) -> None:
        self.fixed += amount
        self._reclaim()

    def set_high(self, high: int) -> None:
        self.high = high
        self._reclaim()

    def _reclaim(self) -> None:
        if self.high is not None:
            self.cache -= min(self.cache, max(0, self.usage - self.high))


SIZES = st.integers(min_value=0, max_value=512 * MI)


@given(
    limit=st.integers(min_value=1, max_value=256 * MI),
    fixed=SIZES,
    cache=SIZES,
    taken=st.lists(st.integers(min_value=0, max_value=8 * MI), max_size=30),
    previous=st.none() | SIZES,
)
def test_the_limit_never_comes_below_usage_and_its_margin(
    limit: int, fixed: int, cache: int, taken: list[int], previous: int | None
) -> None:
    previous = None if previous is None else previous // 4096 * 4096
    kernel, shrink, at = Kernel(fixed, cache, previous), GuardedShrink(limit=limit, previous=previous), 0.0
    for amount in [*taken, *[0] * 1000]:
        shrink, action = shrink.following(seen(kernel.usage, at))
        if isinstance(action, Lower):
            assert kernel.usage + margin(limit) <= limit
            assert previous is None or action.high <= previous
            return
        if isinstance(action, Stop):
            assert kernel.usage > shrink.goal
            return
        assert action.high >= min(shrink.goal, shrink.goal if previous is None else previous)
        assert previous is None or action.high <= previous
        assert action.high % 4096 == 0
        kernel.set_high(action.high)
        kernel.take(amount)
        at += guarded.PAUSE
    raise AssertionError("it has to end")


@given(limit=st.integers(min_value=8 * MI, max_value=256 * MI), cache=SIZES, share=st.floats(min_value=0, max_value=1))
def test_what_is_all_cache_always_fits_in_the_end(limit: int, cache: int, share: float) -> None:
    fixed = int((limit - margin(limit) - 4096) * share)
    kernel, shrink, at = Kernel(fixed, cache), GuardedShrink(limit=limit), 0.0
    while True:
        shrink, action = shrink.following(seen(kernel.usage, at))
        if isinstance(action, Lower):
            return
        assert isinstance(action, ReclaimStep), action
        kernel.set_high(action.high)
        at += guarded.PAUSE


def test_containers_shrink_before_their_pod() -> None:
    """What the pod's cgroup would reclaim first could be any container's."""
    limits = Memory(96 * MI, {"c1": 64 * MI, "c2": None, "c3": 32 * MI})
    assert [(target.who, target.limit) for target in targets(limits)] == [
        ('container "c1"', 64 * MI),
        ('container "c3"', 32 * MI),
        ("pod", 96 * MI),
    ]
    assert targets(Memory(None, {"c1": None})) == ()
