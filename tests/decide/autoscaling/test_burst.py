"""The burst rule: loads in a table, and what holds for any load."""

import itertools
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.decide.autoscaling.burst import MIB, NEW, Bounds, BurstSettings, BurstState, Move, Sample, Size, step

FLOOR, CEILING = Size(cpu=200, memory=256 * MIB), Size(cpu=2000, memory=512 * MIB)
LOOK = 0.25
OFTEN = st.floats(min_value=0.05, max_value=5.0)


class Container:
    """A container of a cgroup that does what the kernel does: throttles at the quota, kills at the limit."""

    def __init__(self, *, counts: bool = True, limit: Size = FLOOR) -> None:
        self.limit, self.state, self.now, self.counts = limit, NEW, 0.0, counts
        self.cpu, self.periods, self.throttled, self.waited = 0.0, 0.0, 0.0, 0.0
        self.moves: list[tuple[float, Move]] = []
        self.killed = False

    def look(self, cpu: float, memory: float, *, passed: float = LOOK, waits: float = 0.0) -> None:
        """So many millicores are wanted, and MiB in use."""
        assert self.limit.cpu is not None
        assert self.limit.memory is not None
        self.now += passed
        self.cpu += min(cpu, self.limit.cpu) / 1000 * passed
        self.periods += 10 * passed
        self.throttled += 10 * passed * (cpu > self.limit.cpu)
        self.waited += waits * passed
        self.killed = self.killed or memory * MIB > self.limit.memory
        sample = Sample(
            cpu=self.cpu,
            periods=int(self.periods) if self.counts else None,
            throttled=int(self.throttled),
            memory=int(memory * MIB),
            waited=self.waited,
        )
        self.state, moves = step(self.state, sample, Bounds(limit=self.limit, floor=FLOOR, ceiling=CEILING), self.now)
        for move in moves:
            self.moves.append((self.now, move))
            self.limit = Size(cpu=move.size.cpu or self.limit.cpu, memory=move.size.memory or self.limit.memory)


def times(seconds: float) -> Iterator[float]:
    return (LOOK * number for number in range(int(seconds / LOOK)))


@pytest.mark.parametrize("speed", [1, 3, 10, 20, 40])
def test_memory_that_grows_is_not_killed(speed: float) -> None:
    container = Container()
    for past in times(200 / speed):
        container.look(50, 153.6 + speed * past)
    assert not container.killed
    assert container.limit.memory is not None
    assert container.limit.memory > 256 * MIB
    assert container.limit.cpu == FLOOR.cpu


def test_growth_says_why() -> None:
    container = Container()
    for past in times(6):
        container.look(50, 153.6 + 10 * past)
    ((at, move), *_) = container.moves
    assert move.size == Size(memory=389 * MIB)
    assert move.why == "188 of 256 MiB are used and memory grows by 10.0 MiB/s"
    assert at < 5


@pytest.mark.parametrize("counts", [True, False], ids=["throttling is counted", "it is not"])
def test_cpu_that_is_wanted_comes_within_two_seconds(counts: bool) -> None:
    container = Container(counts=counts)
    for _ in times(5):
        container.look(20, 50)
    stepped = container.now
    for _ in times(2):
        container.look(2000, 50)
    assert container.limit.cpu == 2000
    assert [(at - stepped, move.size.cpu) for at, move in container.moves] == [(0.5, 600), (1.0, 1800), (1.5, 2000)]


@pytest.mark.parametrize(
    ("name", "cpu", "memory"),
    [
        ("half", lambda _: 100, lambda _: 128),
        ("near both limits", lambda _: 195, lambda _: 250),
        ("memory that wavers", lambda past: 100, lambda past: 240 + 2 * (int(past / LOOK) % 2)),
        ("memory that rises and falls", lambda past: 100, lambda past: 170 + 10 * (int(past) % 2)),
        ("one throttled look in four", lambda past: 400 if int(past / LOOK) % 4 == 0 else 50, lambda _: 100),
    ],
)
def test_a_load_that_stays_as_it_is_is_left_alone(
    name: str, cpu: Callable[[float], float], memory: Callable[[float], float]
) -> None:
    container = Container()
    for past in times(600):
        container.look(cpu(past), memory(past))
    assert container.moves == [], name


def test_threads_that_are_throttled_far_below_the_limit_raise_nothing() -> None:
    """Half of the periods are throttled, and a third of the limit is used: more would not be used either."""
    state = NEW
    bounds = Bounds(limit=FLOOR, floor=FLOOR, ceiling=CEILING)
    for number in range(40):
        sample = Sample(cpu=0.07 * number * LOOK, periods=4 * number, throttled=2 * number, memory=MIB)
        state, moves = step(state, sample, bounds, number * LOOK)
        assert moves == ()


def test_waiting_for_memory_near_the_limit_raises_it() -> None:
    container = Container()
    for _ in times(3):
        container.look(50, 235)
    assert container.moves == []
    container.look(50, 235, waits=0.3)
    assert [move.why for _, move in container.moves] == [
        "235 of 256 MiB are used and 30% of the time is spent waiting for memory"
    ]


def test_what_is_not_used_comes_back_slowly_and_no_further_than_the_floor() -> None:
    container = Container(limit=CEILING)
    container.look(20, 50)
    cpu = []
    for _ in times(1500):
        container.look(20, 50)
        cpu.append(container.limit.cpu)
    assert container.limit == FLOOR
    downs = [at for at, _ in container.moves]
    assert all(later - earlier >= 60 for earlier, later in itertools.pairwise(downs))
    assert [move.size.cpu for _, move in container.moves][:3] == [1600, 1280, 1024]


def test_what_was_used_a_moment_ago_is_not_taken() -> None:
    container = Container(limit=CEILING)
    for past in times(600):
        container.look(1500 if int(past) % 30 == 0 else 20, 400)
    assert container.limit.cpu is not None
    assert container.limit.cpu >= 1500 * 1.2
    assert container.limit.memory == CEILING.memory, "it would be 501 MiB, which is not worth a change"


def test_a_counter_that_went_back_is_of_another_instance() -> None:
    state, moves = step(
        BurstState(last=Sample(cpu=100.0), at=1.0, held_back=5, moved=(0.5,)),
        Sample(cpu=0.1, memory=250 * MIB),
        Bounds(limit=FLOOR, floor=FLOOR, ceiling=CEILING),
        2.0,
    )
    assert (moves, state.held_back, state.moved) == ((), 0, (0.5,))


def test_the_last_change_of_a_minute_goes_to_the_ceiling() -> None:
    state, settings = NEW, BurstSettings(changes=2)
    limit = 100
    moves: list[Move] = []
    bounds = Bounds(limit=Size(cpu=limit), floor=Size(cpu=limit), ceiling=Size(cpu=10_000))
    for number in range(40):
        sample = Sample(cpu=number * LOOK * limit / 1000, periods=number * 3, throttled=number * 3)
        state, made = step(state, sample, bounds, number * LOOK, settings)
        moves += made
    assert [move.size.cpu for move in moves] == [300, 10_000]


LOADS = st.lists(st.tuples(st.floats(0, 5000), st.floats(0, 600), OFTEN, st.floats(0, 1)), min_size=1, max_size=120)


@given(LOADS)
def test_whatever_is_used_limits_stay_inside_and_changes_within_the_budget(
    loads: list[tuple[float, float, float, float]],
) -> None:
    container = Container()
    for cpu, memory, passed, waits in loads:
        container.look(cpu, memory, passed=passed, waits=waits)
        for least, now, most in (
            (FLOOR.cpu, container.limit.cpu, CEILING.cpu),
            (FLOOR.memory, container.limit.memory, CEILING.memory),
        ):
            assert least is not None
            assert now is not None
            assert most is not None
            assert least <= now <= most
        recent = [at for at, _ in container.moves if container.now - at < 60]
        assert len(recent) <= BurstSettings().changes


@given(LOADS)
def test_what_cannot_move_is_never_moved(loads: list[tuple[float, float, float, float]]) -> None:
    state, cpu, now = NEW, 0.0, 0.0
    nowhere = Bounds(limit=FLOOR, floor=FLOOR, ceiling=FLOOR)
    for used, memory, passed, waits in loads:
        now, cpu = now + passed, cpu + used * passed / 1000
        sample = Sample(cpu=cpu, periods=int(now * 10), throttled=int(now * 10), memory=int(memory * MIB), waited=waits)
        state, moves = step(state, sample, nowhere, now)
        assert moves == ()
