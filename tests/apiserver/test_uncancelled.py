"""Work that goes on when whoever asked for it has gone."""

import asyncio

import pytest

from podfit.apiserver.handlers.uncancelled import uncancelled
from podfit.core.errors import ApiError
from support.clock import at_rest


async def test_its_result_and_its_error_are_those_of_the_work() -> None:
    async def work(error: Exception | None) -> int:
        await asyncio.sleep(0)
        if error is not None:
            raise error
        return 7

    assert await uncancelled(work(None)) == 7
    with pytest.raises(KeyError):
        await uncancelled(work(KeyError("x")))


@pytest.mark.parametrize(
    ("error", "logged"),
    [(None, False), (ApiError(409, "Conflict", "changed meanwhile"), False), (ValueError("a defect"), True)],
)
async def test_it_goes_on_without_its_client(
    error: Exception | None, logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """What went wrong with the server itself is logged, as nobody waits for it."""
    going, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await going.wait()
        ended.set()
        if error is not None:
            raise error

    client = asyncio.create_task(uncancelled(work()))
    await at_rest()
    client.cancel()
    with pytest.raises(asyncio.CancelledError):
        await client
    going.set()
    await ended.wait()
    await at_rest()
    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == ([error] if logged else [])


async def test_work_that_is_cancelled_itself_says_so() -> None:
    async def work() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await uncancelled(work())
