"""The private containerd on this machine: a container's life over CRI, adoption after a kill, nothing left behind."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podfit.decide.lifecycle.facts import ContainerState, LinuxResources
from podfit.kubelet.runtime.errors import CRIError, NotFound, Unimplemented
from support.containerd import Machine, private_containerd, ready
from support.eventually import eventually_async
from support.machine import Snapshot

pytestmark = [pytest.mark.node, pytest.mark.xdist_group("node")]

TESTS = Path(__file__).parents[2]


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    """In a directory whose name is longer than a Unix socket's path may be, and has to be quoted in TOML."""
    directory = tmp_path / ('a "long" name ' + "x" * 100)
    directory.mkdir()
    before = Snapshot.take()
    async with private_containerd(directory) as made:
        yield made
    left = Snapshot.take().since(before)
    assert [name for names in left.values() for name in names if any(mark in name for mark in made.marks)] == []


async def test_a_container_lives_and_is_resized(machine: Machine) -> None:
    runtime = await machine.start()
    sandbox_id, container_id = await machine.run(runtime)
    kernel = machine.cgroups.layout.container("u1", "Burstable", container_id)
    assert machine.cgroups.read_container(kernel).cpu.quota == 20_000

    await runtime.update_container_resources(container_id, LinuxResources(cpu_quota=30_000, cpu_period=100_000))
    await runtime.update_container_resources(container_id, LinuxResources(memory_limit=48 << 20))
    values = machine.cgroups.read_container(kernel)
    assert (values.cpu.quota, values.memory_limit) == (30_000, 48 << 20)
    status = await runtime.container_status(container_id)
    assert status.resources is not None
    assert (status.resources.cpu_quota, status.resources.memory_limit) == (30_000, 48 << 20)

    await runtime.stop_container(container_id, grace_seconds=5)
    ended = await runtime.container_status(container_id)
    assert (ended.state, ended.exit_code) == (ContainerState.EXITED, 3)
    assert ended.log_path == str(machine.directory / "c.log")
    assert "hello" in (machine.directory / "c.log").read_text()
    await runtime.stop_sandbox(sandbox_id)
    await runtime.remove_sandbox(sandbox_id)
    await runtime.remove_sandbox(sandbox_id)
    with pytest.raises(NotFound):
        await runtime.container_status(container_id)
    await runtime.close()


async def test_optional_calls_are_unimplemented_or_work(machine: Machine) -> None:
    runtime = await machine.start()
    sandbox_id, _ = await machine.run(runtime)
    for _ in range(2):
        with contextlib.suppress(Unimplemented):
            await runtime.update_sandbox_resources(sandbox_id, resources=LinuxResources(cpu_shares=2))
    assert await runtime.cgroup_driver() in (None, "cgroupfs")
    await runtime.close()


async def test_a_killed_containerd_leaves_containers_that_the_next_one_knows(machine: Machine) -> None:
    runtime = await machine.start()
    _, container_id = await machine.run(runtime)
    await runtime.close()
    os.kill(machine.containerd.pid, signal.SIGKILL)
    runtime = await machine.start()
    assert (await runtime.container_status(container_id)).state is ContainerState.RUNNING
    await runtime.close()


async def test_a_killed_parent_leaves_all_running_and_the_next_one_adopts_it(machine: Machine) -> None:
    """The parent is a process of its own. Another session means that Ctrl-C in its terminal spares containerd too."""
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "support.containerd", str(machine.directory), cwd=TESTS, stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    pid, container_id = (await parent.stdout.readline()).decode().split()
    assert os.getsid(int(pid)) != os.getsid(parent.pid)
    parent.kill()
    await parent.wait()

    runtime = await machine.start()
    assert machine.containerd.pid == int(pid)
    assert (await runtime.container_status(container_id)).state is ContainerState.RUNNING
    await runtime.close()


async def test_one_that_dies_is_started_again(machine: Machine) -> None:
    runtime = await machine.start()
    _, container_id = await machine.run(runtime)
    first, told = machine.containerd.pid, list[int]()
    watching = asyncio.create_task(machine.containerd.watch(lambda: told.append(machine.containerd.pid)))
    os.kill(first, signal.SIGKILL)

    async def back() -> bool:
        return bool(told) and await ready(runtime)

    await eventually_async(back, within=30, what="it was told of, and answers")
    watching.cancel()
    assert told == [machine.containerd.pid] != [first]
    assert (await runtime.container_status(container_id)).state is ContainerState.RUNNING
    await runtime.close()


async def test_an_archive_that_is_none_is_refused_with_its_name(machine: Machine, tmp_path: Path) -> None:
    runtime = await machine.start()
    damaged = tmp_path / "damaged.tar"
    damaged.write_bytes(b"no tar at all")
    with pytest.raises(CRIError, match=r"damaged\.tar"):
        await runtime.import_archive(damaged)
    await runtime.close()
