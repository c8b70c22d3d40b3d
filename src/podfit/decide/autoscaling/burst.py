"""The burst rule: when limits of a container move between floor and ceiling, by what is counted (docs/burst.md).

    step(state, sample, bounds, now) -> (state, effects)

    sample    counters of one look: CPU seconds, throttled periods, memory in use, seconds waited for memory
    effects   at most one Move: the new limits, and why

It is asked a few times a second beside the cgroup, and every few seconds by a poller of `/stats/summary`. A limit goes
up because it holds the container back now, or will within seconds; it comes down by a fifth a minute where much less
was used for that minute. A load that stays as it is touches nothing, however near to its limit it stays.

Millicores, bytes, seconds; `now` is any clock that only goes forward.
"""

import msgspec
from msgspec.structs import replace

MIB = 1 << 20
MINUTE = 60.0


class BurstSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`changes` of a container's limits in a minute, at most; the last that a minute has goes to the ceiling, and half
    of them is kept for growth. Limits come down when so many seconds were `quiet`.
    """

    changes: int = 8
    quiet: float = MINUTE


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """Limits in millicores and bytes; None: there is none, or it is not to be moved."""

    cpu: int | None = None
    memory: int | None = None


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The limits that hold now, and between what they may move. A None in any of the three keeps that resource."""

    limit: Size
    floor: Size
    ceiling: Size


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """Counters since ever but for `memory`, which is in use now, without idle cache if that was looked at. None: not
    known. Without `periods` nobody counts throttling, and use near the limit stands for it.
    """

    cpu: float | None = None
    periods: int | None = None
    throttled: int = 0
    memory: int | None = None
    waited: float | None = None


class Move(msgspec.Struct, frozen=True):
    """Set these limits; those that are None stay."""

    size: Size
    why: str


class Growth(msgspec.Struct, frozen=True):
    at: float
    memory: int


class BurstState(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered of one instance of a container: the last look, how often in a row its CPU was held back, its
    memory of the last half minute while near the limit, when its limits moved, and the most that it used since `since`.
    """

    last: Sample = Sample()
    at: float | None = None
    held_back: int = 0
    growth: tuple[Growth, ...] = ()
    moved: tuple[float, ...] = ()
    since: float = 0.0
    most_cpu: float = 0.0
    most_memory: int = 0


NEW = BurstState()
THROTTLED = 0.5
"""The share of periods in which a quota held the container back, so that its limit goes up."""
BUSY = 0.8
"""The share of its CPU limit that it has to use for that: a few threads at once can be throttled far below it."""
FULL = 0.95
"""The same share where nobody counts throttled periods."""
LOOKS = 2
"""How many looks in a row have to say so."""
FACTOR = 3
NEAR = 0.7
"""The share of its memory limit from which on growth is watched."""
AHEAD = 10.0
"""Seconds within which growth has to reach the limit, for the limit to go up."""
LEAST_GROWTH = 0.02
"""Of the limit: less is no growth."""
WINDOWS = (2.5, 30.0)
"""Seconds over which growth is measured: fast and slow."""
SPACING = 0.4
WAITS = 0.1
"""The share of time in which the container waits for memory, near its limit, so that the limit goes up."""
PRESSED = 0.9
ROOM = 1.25
"""What a limit has above what is used, after it moved."""
SLOWLY = 0.8
WORTH = 0.9
"""A limit that would come down by less stays."""
BOTH = 2


def is_near(memory: int | None, limit: int | None) -> bool:
    """Whether so much memory is in use that idle cache has to be told apart."""
    return memory is not None and limit is not None and memory >= NEAR * limit


def step(
    state: BurstState,
    sample: Sample,
    bounds: Bounds,
    now: float,
    settings: BurstSettings = BurstSettings(),  # noqa: B008  (frozen)
) -> tuple[BurstState, tuple[Move, ...]]:
    """The state after a look, and the move that it asks for. Counters that went back are of another instance."""
    if state.at is None or _went_back(state.last, sample):
        moved = state.moved
        return BurstState(last=sample, at=now, since=now, moved=moved, most_memory=sample.memory or 0), ()
    passed = now - state.at
    if passed <= 0:
        return state, ()
    used = _used(state.last, sample, passed)
    state = _looked(state, sample, bounds, used, now)
    moves = _raised(state, sample, bounds, settings, passed) or _lowered(state, bounds, settings, now)
    if moves:
        state = _moved(state, now)
    elif now - state.since >= settings.quiet:
        state = _begun(state, now)
    return replace(state, last=sample, at=now), moves


def _went_back(last: Sample, sample: Sample) -> bool:
    pairs = ((last.cpu, sample.cpu), (last.periods, sample.periods), (last.waited, sample.waited))
    return any(before is not None and after is not None and after < before for before, after in pairs)


def _used(last: Sample, sample: Sample, passed: float) -> float | None:
    """Millicores."""
    if last.cpu is None or sample.cpu is None:
        return None
    return (sample.cpu - last.cpu) / passed * 1000


def _looked(state: BurstState, sample: Sample, bounds: Bounds, used: float | None, now: float) -> BurstState:
    memory, limit = sample.memory, bounds.limit.memory
    growth = state.growth
    if not is_near(memory, limit):
        growth = ()
    elif memory is not None and (not growth or now - growth[-1].at >= SPACING):
        growth = (*(past for past in growth if now - past.at <= WINDOWS[-1]), Growth(now, memory))
    return replace(
        state,
        held_back=state.held_back + 1 if _is_held_back(state.last, sample, bounds, used) else 0,
        growth=growth,
        most_cpu=max(state.most_cpu, used or 0.0),
        most_memory=max(state.most_memory, memory or 0),
    )


def _is_held_back(last: Sample, sample: Sample, bounds: Bounds, used: float | None) -> bool:
    limit = bounds.limit.cpu
    if used is None or limit is None:
        return False
    if sample.periods is None or last.periods is None:
        return used >= FULL * limit
    periods, throttled = sample.periods - last.periods, sample.throttled - last.throttled
    return periods > 0 and throttled >= THROTTLED * periods and used >= BUSY * limit


def _raised(
    state: BurstState, sample: Sample, bounds: Bounds, settings: BurstSettings, passed: float
) -> tuple[Move, ...]:
    left = settings.changes - len([at for at in state.moved if _now(state, passed) - at < MINUTE])
    if left <= 0:
        return ()
    cpu, memory, why = None, None, []
    limit, most = bounds.limit, bounds.ceiling
    if limit.cpu is not None and most.cpu is not None and limit.cpu < most.cpu and state.held_back >= LOOKS:
        cpu = most.cpu if left == 1 else min(most.cpu, FACTOR * limit.cpu)
        why.append(f"CPU is throttled at its limit of {limit.cpu}m")
    if limit.memory is not None and most.memory is not None and limit.memory < most.memory:
        memory, reason = _more_memory(state, sample, limit.memory, passed)
        if memory is not None:
            memory = most.memory if left == 1 else min(most.memory, _whole(memory))
            why.append(reason)
    return (Move(Size(cpu=cpu, memory=memory), "; ".join(why)),) if why else ()


def _now(state: BurstState, passed: float) -> float:
    return (state.at or 0.0) + passed


def _more_memory(state: BurstState, sample: Sample, limit: int, passed: float) -> tuple[int | None, str]:
    """The limit that memory needs; None while it needs no other."""
    used = sample.memory
    if used is None or not is_near(used, limit):
        return None, ""
    shown = f"{used // MIB} of {limit // MIB} MiB are used"
    speed = _speed(state, used, limit, _now(state, passed))
    if speed > 0 and used + speed * AHEAD >= limit:
        return int(max(limit * ROOM, used + 2 * speed * AHEAD)), f"{shown} and memory grows by {speed / MIB:.1f} MiB/s"
    before = state.last.waited
    if before is not None and sample.waited is not None and used >= PRESSED * limit:
        share = (sample.waited - before) / passed
        if share >= WAITS:
            return int(limit * ROOM), f"{shown} and {share:.0%} of the time is spent waiting for memory"
    return None, ""


def _speed(state: BurstState, used: int, limit: int, now: float) -> float:
    """Bytes a second, the fastest of all windows; 0 where it is too little to be growth."""
    speeds = [0.0]
    for window in WINDOWS:
        oldest = next((past for past in state.growth if now - past.at <= window), None)
        if oldest is not None and now - oldest.at >= SPACING and used - oldest.memory >= LEAST_GROWTH * limit:
            speeds.append((used - oldest.memory) / (now - oldest.at))
    return max(speeds)


def _lowered(state: BurstState, bounds: Bounds, settings: BurstSettings, now: float) -> tuple[Move, ...]:
    """After a minute that needed much less; a fifth of the limit at most, and not below what was needed."""
    recent = len([at for at in state.moved if now - at < MINUTE])
    if now - state.since < settings.quiet or recent >= settings.changes // BOTH:
        return ()
    cpu = _less(bounds.limit.cpu, bounds.floor.cpu, state.most_cpu)
    memory = _less(bounds.limit.memory, bounds.floor.memory, state.most_memory)
    if memory is not None and bounds.limit.memory is not None:
        memory = min(_whole(memory), bounds.limit.memory)
        memory = None if memory == bounds.limit.memory else memory
    if cpu is None and memory is None:
        return ()
    return (Move(Size(cpu=cpu, memory=memory), f"much less was used for {settings.quiet:.0f} s"),)


def _less(limit: int | None, floor: int | None, most: float) -> int | None:
    if limit is None or floor is None or floor >= limit:
        return None
    wanted = max(floor, int(most * ROOM) + 1, int(limit * SLOWLY))
    return wanted if wanted in (floor, int(limit * SLOWLY)) or wanted <= WORTH * limit else None


def _whole(amount: int) -> int:
    """In whole MiB, upwards."""
    return -(-amount // MIB) * MIB


def _moved(state: BurstState, now: float) -> BurstState:
    moved = (*(at for at in state.moved if now - at < MINUTE), now)
    return replace(_begun(state, now), moved=moved, held_back=0)


def _begun(state: BurstState, now: float) -> BurstState:
    """Another minute."""
    return replace(state, since=now, most_cpu=0.0, most_memory=0)
