"""Running a process until someone stops it, or a part of it breaks.

Ctrl-C (SIGINT)   everything stops, containers too; `podfit down` sends the same
SIGTERM           the process ends, the containers go on, as when a node's kubelet is restarted
SIGKILL           the same, without goodbye: the next `up` takes over what it finds
"""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any, Protocol, TypeVar

Announce = Callable[[str], None]


class Running(Protocol):
    """A process that was started."""

    async def failure(self) -> None: ...
    async def stop(self, *, pods: bool) -> None: ...


P = TypeVar("P", bound=Running)


async def start_or_stop(start: Awaitable[None], stop: Callable[[], Awaitable[None]]) -> None:
    """A process that does not come to its start is stopped: nothing of it runs when this raises what kept it."""
    try:
        await start
    except BaseException:
        await stop()
        raise


async def run_until_stopped(
    start: Coroutine[Any, Any, P],
    *,
    ready: Callable[[P], None] = lambda _: None,
    terminated: Callable[[P], Awaitable[None]] | None = None,
) -> None:
    """Start, call `ready`, and go on until a signal; `terminated` is awaited first when that is SIGTERM. Raises what
    keeps the process from starting, or breaks it.
    """
    stop: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()
    with on_signals(lambda number: None if stop.done() else stop.set_result(number)):
        starting = asyncio.ensure_future(start)
        try:
            await _either(starting, stop)
        finally:  # also when a signal has come before the handlers and cancels this task
            if not starting.done():
                starting.cancel()
                await asyncio.wait({starting})
        process = await starting
        failing = asyncio.ensure_future(process.failure())
        try:
            ready(process)
            await _either(stop, failing)
            if terminated is not None and stop.done() and stop.result() is signal.SIGTERM:
                await terminated(process)
        finally:
            try:
                await process.stop(pods=stop.done() and stop.result() is signal.SIGINT)
            finally:
                failed = failing.done()
                failing.cancel()
                outcome = await asyncio.gather(failing, return_exceptions=True)
        if failed and isinstance(outcome[0], BaseException):
            raise outcome[0]


@contextlib.asynccontextmanager
async def stopping_on_signals() -> AsyncIterator[None]:
    """Cancel the task inside when the process is told to stop, so that it can clean up."""
    task = asyncio.current_task()
    assert task is not None
    with on_signals(lambda _: task.cancel()):
        yield


@contextlib.contextmanager
def on_signals(react: Callable[[signal.Signals], object]) -> Iterator[None]:
    """SIGINT and SIGTERM call `react` instead of ending the process."""
    loop = asyncio.get_running_loop()
    watched = (signal.SIGINT, signal.SIGTERM)
    for number in watched:
        loop.add_signal_handler(number, react, number)
    try:
        yield
    finally:
        for number in watched:
            loop.remove_signal_handler(number)


async def _either(*waited: "asyncio.Future[Any]") -> None:
    await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
