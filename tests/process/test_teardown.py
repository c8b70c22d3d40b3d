"""Taking down what a killed cluster has left: its containerd is started for that, and answers when it is ready."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from podfit.decide.lifecycle.facts import Sandbox
from podfit.kubelet.cgroup.memory import MemoryCgroups
from podfit.kubelet.runtime.configs import SandboxConfig
from podfit.kubelet.runtime.containerd import Containerd
from podfit.kubelet.runtime.errors import CRIError, Unavailable
from podfit.kubelet.runtime.simulated.runtime import SimulatedRuntime
from podfit.process.teardown import ANSWER_SECONDS, REMOVAL_SECONDS, first_answer, remove_sandboxes
from support.clock import FakeClock


class Starting(SimulatedRuntime):
    """Not ready for some questions."""

    refusals = 0
    error: CRIError = Unavailable("server is not initialized yet")

    async def list_sandboxes(self, *, labelled: Mapping[str, str] | None = None) -> tuple[Sandbox, ...]:
        self.refusals -= 1
        if self.refusals >= 0:
            raise self.error
        return await super().list_sandboxes(labelled=labelled)


class Refusing(SimulatedRuntime):
    """Does not remove a sandbox so many times."""

    refusals = 0
    error = CRIError("")

    async def remove_sandbox(self, sandbox_id: str) -> None:
        self.refusals -= 1
        if self.refusals >= 0:
            raise self.error
        await super().remove_sandbox(sandbox_id)


class Kept(Containerd):
    revived = 0

    async def revive(self) -> None:
        self.revived += 1


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def containerd(tmp_path: Path, clock: FakeClock) -> Kept:
    return Kept(tmp_path, sandbox_image="pause", clock=clock)


async def asked(clock: FakeClock, containerd: Kept, refusals: int, error: CRIError) -> tuple[Sandbox, ...]:
    runtime = Starting(clock, MemoryCgroups())
    runtime.refusals, runtime.error = refusals, error
    asking = asyncio.create_task(first_answer(runtime, containerd, clock))
    await clock.advance(ANSWER_SECONDS + 1)
    return await asking


async def test_it_is_asked_until_it_answers(clock: FakeClock, containerd: Kept) -> None:
    assert await asked(clock, containerd, 5, Unavailable("server is not initialized yet")) == ()
    assert containerd.revived == 5


async def test_what_does_not_answer_for_long_is_given_up(clock: FakeClock, containerd: Kept) -> None:
    with pytest.raises(Unavailable, match="not initialized"):
        await asked(clock, containerd, 10**6, Unavailable("server is not initialized yet"))


async def test_a_refusal_is_an_answer(clock: FakeClock, containerd: Kept) -> None:
    with pytest.raises(CRIError, match="denied"):
        await asked(clock, containerd, 1, CRIError("denied"))
    assert not containerd.revived


async def taken_down(clock: FakeClock, refusals: int, error: CRIError) -> tuple[Sandbox, ...]:
    """What is left of two sandboxes; the removal of one is refused so many times."""
    runtime = Refusing(clock, MemoryCgroups())
    for name in ("a", "b"):
        await runtime.run_sandbox(SandboxConfig(name=name, namespace="default", uid=name))
    runtime.refusals, runtime.error = refusals, error
    removing = asyncio.create_task(remove_sandboxes(runtime, await runtime.list_sandboxes(), clock))
    await clock.advance(REMOVAL_SECONDS + 1)
    await removing
    return await runtime.list_sandboxes()


async def test_what_cannot_be_removed_yet_is_tried_again(clock: FakeClock) -> None:
    assert await taken_down(clock, 5, CRIError("container is in starting state, can't be removed")) == ()


async def test_what_stays_refused_is_told(clock: FakeClock) -> None:
    with pytest.raises(CRIError, match="starting state"):
        await taken_down(clock, 10**6, CRIError("container is in starting state, can't be removed"))


async def test_a_runtime_that_went_away_is_told_at_once(clock: FakeClock) -> None:
    with pytest.raises(Unavailable):
        await taken_down(clock, 1, Unavailable("connection refused"))
