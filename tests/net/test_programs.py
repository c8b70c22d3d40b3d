"""Programs that end before they are spoken to, never end, or cannot be started."""

import asyncio
import os

import pytest

from podfit.net.event_loop import run
from podfit.net.programs import Ended, ran, started


async def test_what_it_says_and_how_it_ends() -> None:
    ended = await ran("sh", "-c", "cat; echo no >&2; exit 3", given=b"a text")
    assert ended == (3, "a text", "no\n")


def test_one_that_does_not_read_what_it_is_given() -> None:
    """It may have ended before it could be written to, which ended a whole cluster once: on uvloop."""

    async def at_once() -> list[Ended]:
        return await asyncio.gather(*(ran("true", given=b"x" * 2**20) for _ in range(20)))

    assert run(at_once()) == [(0, "", "")] * 20


async def test_one_that_does_not_end_is_killed() -> None:
    with pytest.raises(TimeoutError):
        await ran("sleep", "3600", seconds=0.1)


async def test_it_is_killed_with_its_caller() -> None:
    process = await started("sleep", "3600")
    task = asyncio.create_task(ran("sh", "-c", f"kill {process.pid}; exec sleep 3600"))
    await process.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_one_that_is_not_there() -> None:
    with pytest.raises(OSError, match="no-such-program"):
        await ran("/no-such-program", seconds=1)


async def test_nothing_of_what_it_is_given_stays_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        await ran("cat", given=b"text")
    assert len(os.listdir("/proc/self/fd")) <= before + 1  # the loop's own, with the first
