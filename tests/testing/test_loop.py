"""The loop of a virtual clock says when nothing is left to do: nobody counts its turns."""

import ast
import asyncio
import socket
import threading
from pathlib import Path

import pytest

from podfit.testing import clock as clocks
from podfit.testing.clock import NeverAtRest, VirtualClock

TESTS = Path(__file__).parents[1]
TURNING = {
    "store/test_watch.py": "each number of turns is another moment at which a history is read",
    "kubelet/test_bursts.py": "each number of turns is another moment at which a kubelet is killed",
}


async def test_rest_is_the_end_of_a_long_chain() -> None:
    done = []

    async def chain() -> None:
        for _ in range(5000):
            await asyncio.sleep(0)
        done.append("chain")

    task = asyncio.create_task(chain())
    await VirtualClock().settle()
    assert done == ["chain"]
    await task


async def test_rest_waits_for_threads_and_for_what_they_lead_to() -> None:
    may_end, done = threading.Event(), []

    async def work() -> None:
        await asyncio.to_thread(may_end.wait, 10)
        await asyncio.sleep(0)
        done.append("work")

    task = asyncio.create_task(work())
    threading.Timer(0.05, may_end.set).start()
    await VirtualClock().settle()
    assert done == ["work"]
    await task


async def test_rest_waits_for_bytes_that_have_arrived() -> None:
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    reading = asyncio.create_task(reader.read(5))
    theirs.send(b"hello")
    await VirtualClock().settle()
    assert reading.done()
    writer.close()
    await writer.wait_closed()
    theirs.close()


async def test_a_timer_of_real_time_is_at_rest() -> None:
    task = asyncio.create_task(asyncio.sleep(60))
    await asyncio.wait_for(VirtualClock().settle(), 5)
    assert not task.done()
    task.cancel()


async def test_who_never_rests_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "REST_SECONDS", 0.05)

    async def spin() -> None:
        while True:  # noqa: ASYNC110  (what is to be found)
            await asyncio.sleep(0)

    task = asyncio.create_task(spin(), name="spinner")
    with pytest.raises(NeverAtRest, match="spinner"):
        await VirtualClock().settle()
    task.cancel()


def test_another_loop_is_refused() -> None:
    with asyncio.Runner() as runner, pytest.raises(TypeError, match=r"needs the loop of podfit\.testing\.loop"):
        runner.run(VirtualClock().settle())


def turning(path: Path) -> bool:
    """Whether a file has a loop over a number that does nothing but yield to the event loop."""
    text = path.read_text()
    if "asyncio.sleep(0" not in text:
        return False
    return any(
        isinstance(loop, ast.For)
        and ast.unparse(loop.iter).startswith("range(")
        and [ast.unparse(line) for line in loop.body] == ["await asyncio.sleep(0)"]
        for loop in ast.walk(ast.parse(text))
    )


def test_no_test_counts_turns() -> None:
    mine = Path(__file__)
    found = {str(path.relative_to(TESTS)) for path in TESTS.rglob("*.py") if path != mine and turning(path)}
    assert found == set(TURNING)
