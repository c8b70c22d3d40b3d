"""The guarded memory shrink: lowers a memory limit on cgroup v2 step by step without OOM kills (docs/shrink.md).

On v2 the kernel takes a limit below usage and kills for it, so what cannot be reclaimed has to be found out before.
memory.high is the instrument: above it the kernel reclaims and slows down, and never kills. It is lowered a step at a
time towards `goal`, the new limit less a margin, and what comes of it is watched:

    usage at or below the goal     ──▶ Lower       memory.max may follow; memory.high holds usage down meanwhile
    usage still comes down         ──▶ Step        a little below what is used now, never further
    no progress, pressure, no time ──▶ Stop        memory.high is put back, the limit stays as it was

Pure: the caller looks, acts and waits between two calls of `following`.
"""

import msgspec
from msgspec.structs import replace

from podfit.decide.resize.memory_shrink import Memory

PAGE = 4096
SMALLEST_MARGIN = 1 << 20
SMALLEST_STEP = 1 << 20
STALL_SECONDS = 1.0
"""Seconds without progress after which nothing more is hoped for."""
LONGEST = 20.0
"""Seconds that all of it may take."""
PAUSE = 0.05
"""Seconds between two looks."""
STALLED = 0.3
"""The share of the time in which everything in the cgroup may wait for memory; more hurts whoever works there."""

GUARDED = "guarded"
ANNOTATION = "podfit.dev/memory-shrink"


def asked_for(annotations: dict[str, str], default: str) -> bool:
    """The pod's own request, `guarded` or `checked`, goes before the node's."""
    return annotations.get(ANNOTATION, default) == GUARDED


class ShrinkTarget(msgspec.Struct, frozen=True):
    """A cgroup to be brought below `limit`: a container's by its name, or the pod's own (None)."""

    container: str | None
    limit: int

    @property
    def who(self) -> str:
        return "pod" if self.container is None else f'container "{self.container}"'


def targets(limits: Memory) -> tuple[ShrinkTarget, ...]:
    """The cgroups in the order in which they shrink: containers before the pod that they are part of, which could
    otherwise take from any of them. The first that will not shrink ends it, and no limit is lowered."""
    named = (*limits.containers.items(), (None, limits.pod))
    return tuple(ShrinkTarget(name, limit) for name, limit in named if limit is not None)


def margin(limit: int) -> int:
    """Bytes to be free below the new limit when it comes: what a process may take between the look and the write."""
    return max(SMALLEST_MARGIN, limit // 32)


class UsageReading(msgspec.Struct, frozen=True, kw_only=True):
    """One look: bytes in use, seconds since the beginning, microseconds that all waited for memory (None = no PSI)."""

    usage: int
    at: float
    stalled: int | None = None


class ReclaimStep(msgspec.Struct, frozen=True, kw_only=True):
    """Write `high` to memory.high and ask for `reclaim` bytes back, then wait and look again."""

    high: int
    reclaim: int


class Lower(msgspec.Struct, frozen=True, kw_only=True):
    """The limit may be lowered now; until then usage is to be held at `high` or less."""

    high: int


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """It will not do; why, for people."""

    reason: str


Action = ReclaimStep | Lower | Stop


class GuardedShrink(msgspec.Struct, frozen=True, kw_only=True):
    """One cgroup on its way to a new `limit`. `previous` is the memory.high that was there, None = none."""

    limit: int
    previous: int | None = None
    last: UsageReading | None = None
    lowest: int | None = None
    progress_at: float = 0.0

    @property
    def goal(self) -> int:
        """What usage has to come down to, in whole pages."""
        return (self.limit - margin(self.limit)) // PAGE * PAGE

    def following(self, seen: UsageReading) -> tuple["GuardedShrink", Action]:
        """What to do about what was just seen, and what to ask next time."""
        if self.goal <= 0:
            return self, Stop(reason=f"a limit of {self.limit} leaves no room for a margin of {margin(self.limit)}")
        after = self._after(seen)
        if seen.usage <= self.goal:
            return after, Lower(high=self._within(self.goal))
        if self._share(seen) > STALLED:
            return after, Stop(reason=f"everything waited for memory for {self._share(seen):.0%} of the time")
        if seen.at - after.progress_at >= STALL_SECONDS:
            return after, Stop(reason=f"nothing more was reclaimed for {STALL_SECONDS:g} s")
        if seen.at >= LONGEST:
            return after, Stop(reason=f"not done after {LONGEST:g} s")
        high = self._within(max(self.goal, seen.usage - _step(seen.usage)) // PAGE * PAGE)
        return after, ReclaimStep(high=high, reclaim=max(PAGE, seen.usage - high))

    def _after(self, seen: UsageReading) -> "GuardedShrink":
        if self.lowest is not None and seen.usage > self.lowest - PAGE:
            return replace(self, last=seen)
        return replace(self, last=seen, lowest=seen.usage, progress_at=seen.at)

    def _within(self, high: int) -> int:
        """Never looser than what was there."""
        return high if self.previous is None else min(high, self.previous)

    def _share(self, seen: UsageReading) -> float:
        if self.last is None or self.last.stalled is None or seen.stalled is None or seen.at <= self.last.at:
            return 0.0
        return (seen.stalled - self.last.stalled) / 1e6 / (seen.at - self.last.at)


def _step(usage: int) -> int:
    return max(SMALLEST_STEP, usage // 8)


def objection(who: str, limit: int, usage: int, reason: str) -> str:
    """The objection in the words of the check, so that whoever looks for those finds these too (R-143)."""
    return (
        f"attempting to set {who} memory limit ({limit}) below current usage ({usage}): "
        f"guarded shrink stopped, {reason}; memory.high is as it was"
    )
