"""Writes in threads, with a limit of time: a disk that hangs is told from one that is slow, and nobody waits for it."""

import asyncio
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from podfit.kubelet.disk.writer import LIMIT_SECONDS, DiskChange, DiskWriter, Hung, Threads
from support.clock import FakeClock
from support.eventually import PATIENCE
from support.hanging import being_written

FILE, OTHER = Path("/kubelet/file"), Path("/kubelet/other")


@pytest.fixture
def answer() -> Iterator[threading.Event]:
    """Set when the disk answers."""
    event = threading.Event()
    yield event
    event.set()


async def test_a_write_that_hangs_is_given_up_and_the_file_is_written_by_nobody_meanwhile(
    answer: threading.Event,
) -> None:
    done = list[str]()
    clock = FakeClock()
    writer = DiskWriter(clock, Threads())
    clock.hanging = partial(being_written, writer, FILE)

    def late() -> None:
        answer.wait()
        done.append("late")

    first = asyncio.create_task(writer.run(FILE, late))
    behind = asyncio.create_task(writer.run(FILE, lambda: done.append("behind")))
    await clock.advance(LIMIT_SECONDS - 1)
    assert not first.done()
    assert writer.changes.empty(), "a slow disk is no disk that hangs"
    await clock.advance(1)
    text = f"{FILE}: the disk does not answer within 10 s"
    for task in (first, behind):
        with pytest.raises(Hung, match="does not answer"):
            await task
    assert (writer.changes.get_nowait(), writer.changes.empty()) == (DiskChange(True, text), True)
    with pytest.raises(Hung):
        await writer.run(FILE, lambda: done.append("refused"))
    assert await writer.run(OTHER, lambda: 7) == 7, "other files are written"

    answer.set()
    assert (await writer.changes.get(), writer.problem) == (DiskChange(False, ""), "")
    await writer.run(FILE, lambda: done.append("after"))
    assert done == ["late", "after"]


async def test_who_no_longer_waits_leaves_the_file_to_its_write(answer: threading.Event) -> None:
    """A pod that is deleted in the middle of a write: the next write of the file comes after it."""
    done, clock = list[str](), FakeClock()
    writer = DiskWriter(clock, Threads())
    clock.hanging = partial(being_written, writer, FILE)

    def late() -> None:
        answer.wait()
        done.append("late")

    first = asyncio.create_task(writer.run(FILE, late))
    await clock.settle()
    first.cancel()
    after = asyncio.create_task(writer.run(FILE, lambda: done.append("after")))
    await clock.settle()
    answer.set()
    await after
    assert done == ["late", "after"]
    assert not writer.problem


async def test_what_the_work_raises_is_raised() -> None:
    def full() -> None:
        raise OSError(28, "No space left on device")

    writer = DiskWriter(FakeClock(), Threads())
    with pytest.raises(OSError, match="No space left"):
        await writer.run(FILE, full)
    assert not writer.problem
    assert await writer.run(FILE, lambda: "now") == "now"


def test_work_that_hangs_keeps_no_other_from_its_thread(answer: threading.Event) -> None:
    threads = Threads()
    held = [threads.submit(answer.wait) for _ in range(20)]
    assert threads.submit(lambda: 7).result(60 * PATIENCE) == 7
    answer.set()
    assert all(future.result(60 * PATIENCE) for future in held)
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "disk"), "the process can end"
