"""Whoever owns a task ends it, and hears when it ends by itself."""

import asyncio

import pytest

from podfit.net.supervisor import EndedUnexpectedly, Supervisor
from support.clock import at_rest


async def _forever() -> None:
    await asyncio.Event().wait()


async def _breaks() -> None:
    raise ValueError("broken")


async def _ends() -> int:
    return 1


async def test_what_should_last_and_ends_is_a_failure() -> None:
    owner = Supervisor("owner")
    owner.run(_ends(), name="short")
    with pytest.raises(EndedUnexpectedly, match="short ended by itself"):
        await owner.failure()


async def test_an_error_is_heard_and_told_with_the_names(caplog: pytest.LogCaptureFixture) -> None:
    owner = Supervisor("owner")
    owner.run(_forever())
    owner.begin(_breaks(), name="work")
    with pytest.raises(ValueError, match="broken"):
        await owner.failure()
    assert "task failed task=work owner=owner error=broken" in caplog.text
    with pytest.raises(ValueError, match="broken"):  # also who asks later
        await owner.failure()
    await owner.stop()


async def test_what_may_end_ends_and_what_is_held_belongs_to_the_caller() -> None:
    owner = Supervisor("owner")
    assert await owner.begin(_ends(), name="one") == 1
    with pytest.raises(ValueError, match="broken"):
        await owner.hold(_breaks(), name="held")
    task = owner.begin(_forever(), name="cancelled")
    task.cancel()
    await asyncio.wait({task})
    assert owner.broken is None


async def test_stop_ends_everything_also_what_is_begun_by_the_end_of_another() -> None:
    owner, ended = Supervisor("owner"), list[str]()

    async def begins_at_its_end() -> None:
        try:
            await _forever()
        finally:
            owner.begin(tells("second"), name="second")

    async def tells(name: str) -> None:
        try:
            await _forever()
        finally:
            ended.append(name)

    owner.run(begins_at_its_end())
    owner.run(tells("first"))
    await at_rest()
    await owner.stop()
    assert not {"first"} - set(ended)
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []
    assert owner.broken is None


async def test_stop_waits_for_what_takes_its_time_and_a_failure_by_then_is_none() -> None:
    owner, gate = Supervisor("owner"), asyncio.Event()

    async def slow() -> None:
        try:
            await _forever()
        finally:
            await gate.wait()
            raise ValueError("at the end")

    owner.run(slow())
    await at_rest()
    stopping = asyncio.create_task(owner.stop())
    await at_rest()
    assert not stopping.done()
    gate.set()
    await stopping
    assert owner.broken is None


async def test_a_task_that_ended_just_before_the_stop_is_forgotten_without_a_word() -> None:
    owner = Supervisor("owner")
    unexpected: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unexpected.append(context))
    tasks = owner.run(_breaks()), owner.hold(_breaks(), name="held")
    await asyncio.sleep(0)
    assert all(task.done() for task in tasks), "and its callbacks have not run yet"
    await owner.stop()
    await at_rest()
    assert (unexpected, owner.broken) == ([], None)


async def test_finish_waits_for_what_may_end_and_for_nothing_else() -> None:
    owner, gate = Supervisor("owner"), asyncio.Event()
    owner.run(_forever())
    owner.begin(gate.wait(), name="wait")
    finishing = asyncio.create_task(owner.finish())
    await at_rest()
    assert not finishing.done()
    gate.set()
    await finishing
    await owner.stop()


async def test_a_failure_reaches_the_owner_of_the_owner() -> None:
    process, component, part = Supervisor("process"), Supervisor("component"), Supervisor("part")
    process.watch(component)
    component.watch(part)
    part.run(_breaks())
    with pytest.raises(ValueError, match="broken"):
        await process.failure()
    late = Supervisor("late")
    late.watch(part)
    assert late.broken is part.broken
