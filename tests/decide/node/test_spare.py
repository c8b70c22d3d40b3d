"""What of a node is lent, when that is told, and who gives way."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import Quantity
from podfit.decide.node.eviction import Shortage, ranked
from podfit.decide.node.pod_load import Load
from podfit.decide.node.pressure import Observation, parse
from podfit.decide.node.spare import (
    Held,
    Look,
    RequestAndUse,
    as_resources,
    giving_way,
    kept_free,
    lent,
    look,
    told_anew,
    within_window,
)
from podfit.decide.pod.spare import MIB, refusal

GIB = 1 << 30
PLENTY = Held(10**6, 1 << 50)


def owner(requested: int, used: int, memory: tuple[int, int] = (0, 0)) -> RequestAndUse:
    return RequestAndUse(Held(requested, memory[0] * MIB), Held(used, memory[1] * MIB))


def pod(uid: str, *, spare: int = 0, priority: int = 0, source: str = "api", **resources: dict[str, str]) -> Pod:
    lent = {"podfit.dev/spare-memory": str(spare)} if spare else {}
    own = {side: {**lent, **resources.get(side, {})} for side in ("requests", "limits")}
    spec = {"containers": [{"name": "app", "resources": own}], "priority": priority}
    document = {
        "metadata": {"name": uid, "uid": uid, "annotations": {"kubernetes.io/config.source": source}},
        "spec": spec,
    }
    return msgspec.convert(document, Pod, dec_hook=lambda _, text: Quantity.parse(text))


@pytest.mark.parametrize(
    ("owners", "free", "expected"),
    [
        ([], PLENTY, Held()),
        ([owner(1000, 0)], PLENTY, Held(900)),
        ([owner(1000, 950)], PLENTY, Held()),
        ([owner(1000, 200), owner(1000, 600)], PLENTY, Held(1000)),
        ([owner(1000, 200), owner(100, 900)], PLENTY, Held(690)),
        ([owner(1000, 200)], Held(300, 1 << 50), Held(200)),
        ([owner(0, 500)], PLENTY, Held()),
        ([owner(0, 0, (1000, 100))], PLENTY, Held(0, 800 * MIB)),
        ([owner(0, 0, (1000, 100))], Held(0, 400 * MIB), Held(0, 300 * MIB)),
    ],
)
def test_what_is_lent_after_one_look(owners: list[RequestAndUse], free: Held, expected: Held) -> None:
    """Each pod's own slack counts: who uses more than requested takes of what is free, not of others' slack."""
    assert lent([look(0, owners, free)]) == expected


def test_the_least_of_the_window_counts() -> None:
    looks = [
        look(10 * number, [owner(1000, used)], PLENTY)
        for number, used in enumerate([100, 700, 100, 100, 100, 100, 100, 100])
    ]
    assert [lent(within_window(looks[: number + 1], 10 * number)).cpu for number in range(8)] == [
        800, 200, 200, 200, 200, 200, 200, 800,
    ]  # fmt: skip
    assert lent(()) == Held()


amounts = st.integers(0, 64_000)
helds = st.builds(Held, amounts, st.integers(0, 1 << 40))
owners = st.lists(st.builds(RequestAndUse, helds, helds), max_size=8)


@given(st.lists(st.tuples(owners, helds), min_size=1, max_size=7))
def test_never_more_than_the_owners_leave_in_any_look(seen: list[tuple[list[RequestAndUse], Held]]) -> None:
    looks = [look(float(number), *facts) for number, facts in enumerate(seen)]
    result = lent(looks)
    assert Held() == Held().least(result)
    for one in looks:
        assert result.cpu <= min(one.unused.cpu, one.free.cpu)
        assert result.memory <= min(one.unused.memory, one.free.memory)
        assert result.cpu <= one.requested.cpu


@given(st.lists(helds, max_size=40))
def test_what_is_told_is_within_a_twentieth_and_never_more_than_nothing(sizes: list[Held]) -> None:
    told: ResourceList = {}
    for held in sizes:
        now = as_resources(held)
        before, told = told, told_anew(told, now)
        assert told in (before, now)
        for name, amount in told.items():
            assert abs(amount.value() - now[name].value()) * 20 <= amount.value() or amount == now[name]
            assert bool(amount) or not now[name]


@given(st.integers(100, 10_000), st.integers(2, 5), st.lists(st.booleans(), min_size=60, max_size=60))
def test_usage_between_two_levels_is_told_seldom(high: int, part: int, moves: list[bool]) -> None:
    """In ten minutes: only a window that has seen one level alone lends another amount."""
    looks: tuple[Look, ...] = ()
    told, writes, changed = as_resources(Held()), 0, 0
    for number, up in enumerate(moves):
        looks = (
            *within_window(looks, 10.0 * number),
            look(10.0 * number, [owner(high, high // part if up else 0)], PLENTY),
        )
        now = told_anew(told, as_resources(lent(looks)))
        writes, told = writes + (now != told), now
        changed += number > 0 and moves[number - 1] != up
    assert writes <= 1 + min(changed + 1, 2 * (len(moves) // 6 + 1))


def test_who_gives_way() -> None:
    """The lowest priority first, then who uses most; no more than are needed, and what is going counts."""
    capacity = 10 * GIB
    kept = kept_free(capacity)
    assert (kept, kept_free(100 * GIB)) == (512 * MIB, GIB)
    loads = [
        Load(pod("a", spare=100), {"app": 100 * MIB}),
        Load(pod("b", spare=100), {"app": 300 * MIB}),
        Load(pod("low", spare=100, priority=-1), {"app": 10 * MIB}),
        Load(pod("critical", spare=100, priority=2_000_000_000), {"app": 900 * MIB}),
    ]

    def going(short: int, ending: int = 0) -> list[str]:
        return [load.pod.metadata.uid for load in giving_way(loads, kept - short * MIB, capacity, ending * MIB)]

    assert [going(short) for short in (-1, 0, 1, 11, 310, 311)] == [
        [], [], ["low"], ["low", "b"], ["low", "b"], ["low", "b", "a"],
    ]  # fmt: skip
    assert going(10**6) == ["low", "b", "a"]
    assert going(50, ending=50) == []


loads = st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 4 * GIB)), max_size=8)


@given(loads, st.integers(0, 10 * GIB))
def test_enough_gives_way_and_nobody_for_nothing(borrowers: list[tuple[int, int]], available: int) -> None:
    given_ = [Load(pod(str(n), spare=1, priority=p), {"app": used}) for n, (p, used) in enumerate(borrowers)]
    gone = giving_way(given_, available, 10 * GIB)
    short = kept_free(10 * GIB) - available
    freed = [load.memory["app"] for load in gone]
    assert sum(freed[:-1]) < short or not gone
    assert sum(freed) >= short or len(gone) == len(given_)
    assert all(load.priority >= max((one.priority for one in gone), default=-9) for load in given_ if load not in gone)


def test_spare_pods_are_evicted_before_others_for_memory_and_processes() -> None:
    owners_ = [Load(pod("owner", priority=-5), {"app": GIB}), Load(pod("best-effort"), {"app": GIB})]
    guest = Load(pod("guest", spare=64, priority=9), {"app": MIB})

    def first(threshold: str) -> str:
        short = Shortage(parse(threshold)[0], Observation(1, 100))
        return ranked([*owners_, guest], short)[0].pod.metadata.uid

    assert (first("memory.available<10%"), first("pid.available<10%")) == ("guest", "guest")
    assert first("nodefs.available<10%") == "owner", "a disk is not lent"


@pytest.mark.parametrize(
    ("about", "fits"),
    [
        (pod("plain"), True),
        (pod("spare", spare=1), True),
        (pod("burstable", spare=1, requests={"cpu": "1m"}), False),
        (pod("limited", spare=1, limits={"memory": "1Gi"}), False),
        (pod("nothing", requests={"cpu": "0"}, spare=1), True),
        (pod("cpu", requests={"podfit.dev/spare-cpu": "1"}), False),
        (pod("high", spare=1, priority=1_999_999_999), True),
        (pod("system", spare=1, priority=2_000_000_000), False),
        (pod("static", spare=1, source="file"), False),
        (pod("owner", priority=2_000_001_000), True),
    ],
)
def test_who_may_be_lent_something(about: Pod, fits: bool) -> None:
    assert (refusal(about) == "") is fits


def test_a_look_is_of_all_owners() -> None:
    assert look(3.0, [owner(100, 30), owner(50, 90)], Held(5, 6)) == Look(3.0, Held(150), Held(70), Held(5, 6))
