"""The simulated runtime: states, endings by the clock, refusals, events."""

import asyncio
import math
from pathlib import Path

import pytest

from podfit.decide.lifecycle.facts import ContainerState, LinuxResources
from podfit.kubelet.cgroup.memory import MemoryCgroups
from podfit.kubelet.cgroup.protocol import CgroupConfig
from podfit.kubelet.runtime.configs import ContainerConfig, SandboxConfig
from podfit.kubelet.runtime.errors import CRIError, NotFound, Unavailable
from podfit.kubelet.runtime.simulated import SimulatedRuntime
from podfit.kubelet.runtime.simulated.program import Ending, ending
from podfit.kubelet.runtime.types import EventKind
from support.clock import FakeClock

PARENT = "/simulated/kubepods/burstable/podu1"


class World:
    def __init__(self, tmp_path: Path) -> None:
        self.clock = FakeClock()
        self.cgroups = MemoryCgroups()
        self.runtime = SimulatedRuntime(self.clock, self.cgroups)
        self.sandbox = SandboxConfig(
            name="p", namespace="d", uid="u1", cgroup_parent=PARENT, log_directory=str(tmp_path)
        )
        self.cgroups.create(PARENT, CgroupConfig())

    async def start(self, *command: str, memory: int = 0) -> str:
        sandbox_id = await self.runtime.run_sandbox(self.sandbox)
        config = ContainerConfig(
            name="c",
            image="any",
            command=command,
            log_path="c.log",
            resources=LinuxResources(cpu_quota=20_000, cpu_period=100_000, memory_limit=memory),
        )
        container_id = await self.runtime.create_container(sandbox_id, config, self.sandbox)
        await self.runtime.start_container(container_id)
        return container_id


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["sleep", "5"], Ending(5, 0)),
        (["/bin/sh", "-c", "sleep 5; exit 3"], Ending(5, 3)),
        (["sh", "-c", "exit 7"], Ending(0, 7)),
        (["true"], Ending(0, 0)),
        (["false"], Ending(0, 1)),
        (["sleep", "infinity"], None),
        (["nginx", "-g", "daemon off;"], None),
        (["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"], None),
        (["sh", "-c", "unbalanced '"], None),
        ([], None),
    ],
)
def test_what_a_command_would_do(command: list[str], expected: Ending | None) -> None:
    assert ending(command) == expected


async def test_a_sleep_ends_when_its_time_is_over(world: World) -> None:
    container_id = await world.start("sleep", "5")
    await world.clock.advance(4)
    assert (await world.runtime.container_status(container_id)).state is ContainerState.RUNNING
    await world.clock.advance(1)
    ended = await world.runtime.container_status(container_id)
    assert (ended.state, ended.exit_code, ended.reason) == (ContainerState.EXITED, 0, "Completed")


@pytest.mark.parametrize(
    ("command", "code", "after"),
    [
        (["sleep", "60"], 137, 3),
        (["sh", "-c", "sleep infinity"], 137, 3),
        (["sh", "-c", "sleep 1; trap 'exit 0' TERM; while :; do sleep 1; done"], 0, 0),
        (["sleep", "2"], 0, 2),
        (["serve"], 0, 0),
    ],
)
async def test_a_sleep_has_to_be_killed(world: World, command: list[str], code: int, after: float) -> None:
    container_id = await world.start(*command)
    stopping = asyncio.create_task(world.runtime.stop_container(container_id, grace_seconds=3))
    await world.clock.advance(after - 0.1 if after else 0)
    assert ((await world.runtime.container_status(container_id)).state is ContainerState.RUNNING) is (after > 0)
    await world.clock.advance(3)
    await stopping
    ended = await world.runtime.container_status(container_id)
    assert (ended.state, ended.exit_code) == (ContainerState.EXITED, code)
    assert ended.finished_at - ended.started_at == after * 10**9


async def test_how_long_a_command_runs_can_be_told(world: World) -> None:
    world.runtime.delays["run"] = 2
    container_id = await world.start("false")
    await world.clock.advance(1.9)
    assert (await world.runtime.container_status(container_id)).state is ContainerState.RUNNING
    await world.clock.advance(0.1)
    assert (await world.runtime.container_status(container_id)).exit_code == 1


async def test_an_update_reaches_the_group_and_keeps_the_rest(world: World) -> None:
    container_id = await world.start("serve", memory=64 << 20)
    await world.runtime.update_container_resources(container_id, LinuxResources(cpu_quota=30_000, cpu_period=100_000))
    values = world.cgroups.read_container(f"{PARENT}/{container_id}")
    assert (values.cpu.quota, values.memory_limit) == (30_000, 64 << 20)
    status = await world.runtime.container_status(container_id)
    assert status.resources is not None
    assert (status.resources.cpu_quota, status.resources.memory_limit) == (30_000, 64 << 20)


async def test_a_limit_below_usage_is_refused_and_changes_nothing(world: World) -> None:
    container_id = await world.start("serve", memory=64 << 20)
    world.runtime.use(container_id, 50 << 20)
    with pytest.raises(CRIError, match="busy"):
        await world.runtime.update_container_resources(container_id, LinuxResources(memory_limit=32 << 20))
    assert world.cgroups.read_memory(f"{PARENT}/{container_id}") == 64 << 20


async def test_more_than_the_limit_is_killed(world: World) -> None:
    container_id = await world.start("serve", memory=64 << 20)
    world.runtime.use(container_id, 65 << 20)
    ended = await world.runtime.container_status(container_id)
    assert (ended.exit_code, ended.reason) == (137, "OOMKilled")


async def test_faults_are_raised_until_taken_out(world: World) -> None:
    container_id = await world.start("serve")
    world.runtime.faults["update_container_resources"] = CRIError("no")
    with pytest.raises(CRIError, match="no"):
        await world.runtime.update_container_resources(container_id, LinuxResources(cpu_quota=1))
    del world.runtime.faults["update_container_resources"]
    await world.runtime.update_container_resources(container_id, LinuxResources(cpu_quota=30_000))


async def test_a_late_answer_comes_when_the_clock_says(world: World) -> None:
    container_id = await world.start("serve")
    world.runtime.delays["stop_container"] = 5
    stopping = asyncio.create_task(world.runtime.stop_container(container_id, grace_seconds=1))
    await world.clock.advance(4)
    assert (await world.runtime.container_status(container_id)).state is ContainerState.RUNNING
    await world.clock.advance(1)
    await stopping
    assert (await world.runtime.container_status(container_id)).state is ContainerState.EXITED


async def test_a_hanging_call_never_answers(world: World) -> None:
    world.runtime.delays["pull_image"] = math.inf
    pulling = asyncio.create_task(world.runtime.pull_image("any"))
    await world.clock.advance(86_400)
    assert not pulling.done()
    pulling.cancel()


async def test_a_runtime_that_is_down_answers_nothing_and_loses_nothing(world: World) -> None:
    container_id = await world.start("sleep", "5")
    world.runtime.faults["*"] = Unavailable("connection refused")
    for call in (world.runtime.list_containers(), world.runtime.version(), world.runtime.list_sandboxes()):
        with pytest.raises(Unavailable):
            await call
    await world.clock.advance(10)
    world.runtime.faults.clear()
    assert (await world.runtime.container_status(container_id)).state is ContainerState.EXITED


async def test_events_tell_what_happens(world: World) -> None:
    events = await world.runtime.events()
    assert events is not None
    container_id = await world.start("true")
    await world.clock.advance(0)
    told = [await anext(events) for _ in range(2)]
    assert [(event.container_id, event.kind) for event in told] == [
        (container_id, EventKind.STARTED),
        (container_id, EventKind.STOPPED),
    ]


async def test_removal_is_idempotent(world: World) -> None:
    container_id = await world.start("serve")
    await world.runtime.remove_container(container_id)
    await world.runtime.remove_container(container_id)
    with pytest.raises(NotFound):
        await world.runtime.container_status(container_id)
    assert not world.cgroups.exists(f"{PARENT}/{container_id}")


@pytest.mark.parametrize(("programs_end", "has_end"), [(True, True), (True, False), (False, True)])
async def test_unknown_programs_that_have_an_end_come_to_it_where_nobody_ends_them(
    programs_end: bool, has_end: bool, tmp_path: Path
) -> None:
    world = World(tmp_path)
    runtime = SimulatedRuntime(world.clock, world.cgroups, programs_end=programs_end)
    sandbox_id = await runtime.run_sandbox(world.sandbox)
    config = ContainerConfig(name="c", image="any", command=("migrate",), has_end=has_end)
    container_id = await runtime.create_container(sandbox_id, config, world.sandbox)
    await runtime.start_container(container_id)
    await world.clock.advance(2)
    status = await runtime.container_status(container_id)
    ended = status.state is ContainerState.EXITED and status.exit_code == 0
    assert ended == (programs_end and has_end)


async def test_an_image_is_known_by_its_name_however_it_was_asked_for(world: World) -> None:
    """The kubelet makes containers from the id that `image_status` gave it."""
    image = await world.runtime.image_status("nginx:1.25")
    assert image is not None
    config = ContainerConfig(name="c", image=image.id)
    sandbox_id = await world.runtime.run_sandbox(world.sandbox)
    container_id = await world.runtime.create_container(sandbox_id, config, world.sandbox)
    status = await world.runtime.container_status(container_id)
    assert (status.image, status.image_id, status.image_ref) == ("nginx:1.25", image.id, image.id)
    assert await world.runtime.list_images() == (image,)
    assert await world.runtime.image_status(image.id) == image
