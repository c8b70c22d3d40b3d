"""docs/shrink.md: a guarded shrink on cgroups that reclaim, and that memory.high is always as it was afterwards."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podfit.decide.resize.guarded_shrink import margin
from podfit.kubelet.actuation.guarded_shrink import Guard, Hold
from podfit.kubelet.cgroup.memory import MemoryCgroups
from podfit.kubelet.cgroup.protocol import CgroupConfig, CgroupError, Layout
from podfit.testing.loop import ThreadsLoop
from support.clock import FakeClock

MI = 1 << 20
POD = Layout("/t").pod("u1", "Burstable")
C1 = f"{POD}/c1"
T = TypeVar("T")


class Kernel(MemoryCgroups):
    """Of what is used, `cache` can be reclaimed; `grow` is taken whenever memory.high is written."""

    def __init__(self, *, fixed: int, cache: int, high: int | None = None, grow: int = 0) -> None:
        super().__init__(Layout("/t"), version="v2")
        self.create(C1, CgroupConfig(memory_limit=512 * MI))
        self.cache, self.grow, self.refuse = cache, grow, ""
        self.usage[C1] = fixed + cache
        self.written: list[int] = []
        if high is not None:
            super().set_memory_high(C1, high)

    def set_memory_high(self, path: str, high: int) -> None:
        if self.refuse:
            raise CgroupError(self.refuse)
        super().set_memory_high(path, high)
        self.written.append(high)
        if high >= 0:
            self.usage[C1] += self.grow
            back = min(self.cache, max(0, self.usage[C1] - high))
            self.cache -= back
            self.usage[C1] -= back


async def through(clock: FakeClock, work: Awaitable[T]) -> T:
    """Time moves when the work sleeps, and waits while its thread is busy."""
    task = asyncio.ensure_future(work)
    await clock.settle()
    while not task.done():
        await clock.advance(clock.pending[0])
    return task.result()


async def until_it_waits(clock: FakeClock) -> None:
    await clock.settle()
    assert clock.pending, "it does not wait"


async def squeeze(kernel: Kernel, notes: Path, limit: int, inside: Callable[[], object] = lambda: None) -> str:
    clock = FakeClock()

    async def work() -> str:
        async with Guard(kernel, clock, notes).hold() as hold:
            problem = await hold.shrink('container "c1"', C1, limit)
            if not problem:
                inside()
            return problem

    return await through(clock, work())


def left(notes: Path) -> list[Path]:
    return list(notes.glob("*")) if notes.exists() else []


@pytest.mark.row("R-145")
async def test_cache_is_reclaimed_and_held_down_until_the_limit_is_written(tmp_path: Path) -> None:
    kernel = Kernel(fixed=20 * MI, cache=80 * MI)
    assert await squeeze(kernel, tmp_path, 64 * MI, lambda: kernel.set_memory_limit(C1, 64 * MI)) == ""
    assert kernel.usage[C1] + margin(64 * MI) <= 64 * MI
    assert kernel.read_memory(C1) == 64 * MI
    *lowered, last = kernel.written
    assert lowered == sorted(lowered, reverse=True)
    assert lowered[-1] == 62 * MI
    assert (last, kernel.memory_high(C1), left(tmp_path)) == (-1, None, [])


@pytest.mark.row("R-143")
async def test_what_cannot_be_reclaimed_is_left_alone(tmp_path: Path) -> None:
    kernel = Kernel(fixed=80 * MI, cache=10 * MI, high=200 * MI)
    problem = await squeeze(kernel, tmp_path, 64 * MI)
    assert problem == (
        f'attempting to set container "c1" memory limit ({64 * MI}) below current usage ({80 * MI}): guarded shrink '
        "stopped, nothing more was reclaimed for 1 s; memory.high is as it was"
    )
    assert (kernel.memory_high(C1), kernel.read_memory(C1), left(tmp_path)) == (200 * MI, 512 * MI, [])


async def test_without_a_note_nothing_is_lowered(tmp_path: Path) -> None:
    kernel, notes = Kernel(fixed=20 * MI, cache=80 * MI), tmp_path / "notes"
    notes.touch()  # no folder, as good as a full disk
    problem = await squeeze(kernel, notes, 64 * MI)
    assert "guarded shrink stopped, what memory.high was cannot be noted" in problem
    assert (kernel.written, kernel.read_memory(C1)) == ([], 512 * MI)


async def test_one_that_grows_as_fast_as_it_is_squeezed_is_left_alone(tmp_path: Path) -> None:
    kernel = Kernel(fixed=70 * MI, cache=100 * MI, grow=8 * MI)
    assert "guarded shrink stopped" in await squeeze(kernel, tmp_path, 64 * MI)
    assert kernel.memory_high(C1) is None


async def test_it_is_restored_when_the_pod_is_deleted_meanwhile(tmp_path: Path) -> None:
    kernel, clock = Kernel(fixed=80 * MI, cache=0), FakeClock()
    held: list[Hold] = []

    async def work() -> None:
        async with Guard(kernel, clock, tmp_path).hold() as hold:
            held.append(hold)
            await hold.shrink("pod", C1, 64 * MI)

    task = asyncio.create_task(work())
    await until_it_waits(clock)
    assert kernel.memory_high(C1) is not None
    assert len(left(tmp_path)) == 1
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert (kernel.memory_high(C1), left(tmp_path)) == (None, [])


async def test_it_is_restored_when_the_limit_cannot_be_written(tmp_path: Path) -> None:
    kernel = Kernel(fixed=20 * MI, cache=80 * MI)

    def fail() -> None:
        raise CgroupError("no")

    with pytest.raises(CgroupError, match="no"):
        await squeeze(kernel, tmp_path, 64 * MI, fail)
    assert (kernel.memory_high(C1), left(tmp_path)) == (None, [])


async def test_what_the_runtime_set_meanwhile_stays(tmp_path: Path) -> None:
    """With Memory QoS the update that lowers the limit brings a memory.high of its own."""
    kernel = Kernel(fixed=20 * MI, cache=80 * MI, high=120 * MI)
    assert await squeeze(kernel, tmp_path, 64 * MI, lambda: kernel.set_memory_high(C1, 60 * MI)) == ""
    assert kernel.memory_high(C1) == 60 * MI


async def test_a_cgroup_that_went_is_no_error(tmp_path: Path) -> None:
    kernel = Kernel(fixed=20 * MI, cache=80 * MI)
    assert await squeeze(kernel, tmp_path, 64 * MI, lambda: kernel.remove(C1)) == ""
    assert left(tmp_path) == []


async def test_a_kubelet_that_died_half_way_restores_when_it_starts(tmp_path: Path) -> None:
    kernel, clock = Kernel(fixed=80 * MI, cache=0, high=300 * MI), FakeClock()
    hold = Guard(kernel, clock, tmp_path).hold()
    task = asyncio.create_task(hold.shrink("pod", C1, 64 * MI))
    await until_it_waits(clock)
    task.cancel()  # what a SIGKILL leaves: the hold is never left
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert kernel.memory_high(C1) == 70 * MI
    (tmp_path / "torn.json").write_text("{")
    Guard(kernel, clock, tmp_path).recover()
    assert (kernel.memory_high(C1), left(tmp_path)) == (300 * MI, [])


SIZES = st.integers(min_value=0, max_value=256 * MI)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    fixed=SIZES,
    cache=SIZES,
    limit=st.integers(min_value=1, max_value=128 * MI),
    high=st.none() | SIZES,
    grow=st.integers(min_value=0, max_value=4 * MI),
    fails=st.booleans(),
)
def test_memory_high_is_always_as_it_was(  # and no limit below usage and its margin
    tmp_path: Path, fixed: int, cache: int, limit: int, high: int | None, grow: int, fails: bool
) -> None:
    kernel = Kernel(fixed=fixed, cache=cache, high=high, grow=grow)

    def lower() -> None:
        assert kernel.usage[C1] + margin(limit) <= limit
        kernel.set_memory_limit(C1, limit)
        if fails:
            raise CgroupError("the runtime refused afterwards")

    with contextlib.suppress(CgroupError), asyncio.Runner(loop_factory=ThreadsLoop) as runner:
        runner.run(squeeze(kernel, tmp_path, limit, lower))
    assert kernel.memory_high(C1) == high
    assert left(tmp_path) == []
