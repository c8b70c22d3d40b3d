"""The private containerd on this machine: a container's life over CRI, adoption after a kill, nothing left behind."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podfit.kubelet.cgroup.detect import detect
from podfit.kubelet.cgroup.protocol import CgroupConfig, Cgroups, Layout
from podfit.kubelet.runtime import images
from podfit.kubelet.runtime.containerd import Containerd
from podfit.kubelet.runtime.cri.client import CRIRuntime
from podfit.kubelet.runtime.errors import CRIError, NotFound, Unimplemented
from podfit.kubelet.runtime.types import ContainerConfig, ContainerState, LinuxResources, SandboxConfig
from podfit.net.system import SystemClock
from support.machine import Snapshot

pytestmark = [pytest.mark.node, pytest.mark.xdist_group("node")]

LAYOUT = Layout("/podfit-runtime-test")
STAY = ("sh", "-c", "echo hello; trap 'exit 3' TERM; while :; do sleep 1 & wait $!; done")


class Machine:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.containerd = Containerd(directory / "containerd", sandbox_image=images.PAUSE, clock=SystemClock())
        self.cgroups: Cgroups = detect(LAYOUT).cgroups
        self.pod = LAYOUT.pod("u1", "Burstable")
        self.sandbox = SandboxConfig(
            name="p", namespace="d", uid="u1", cgroup_parent=self.pod, host_network=True, log_directory=str(directory)
        )

    async def start(self) -> CRIRuntime:
        await self.containerd.start()
        runtime = CRIRuntime(self.containerd.places.socket, self.containerd.importer)
        async with asyncio.timeout(20):
            while not await _ready(runtime):
                await self.containerd.revive()
                await SystemClock().sleep(0.01)
        return runtime

    async def run(self, runtime: CRIRuntime) -> tuple[str, str]:
        for recipe in (images.pause_recipe(), images.busybox_recipe()):
            await runtime.import_archive(images.archive(recipe, self.directory / "images"))
        self.cgroups.create(self.pod, CgroupConfig(cpu_quota=50_000, memory_limit=64 << 20))
        sandbox_id = await runtime.run_sandbox(self.sandbox)
        config = ContainerConfig(
            name="c", image="busybox:1.36", command=STAY, log_path="c.log",
            resources=LinuxResources(cpu_shares=256, cpu_quota=20_000, cpu_period=100_000, memory_limit=32 << 20),
        )  # fmt: skip
        container_id = await runtime.create_container(sandbox_id, config, self.sandbox)
        await runtime.start_container(container_id)
        return sandbox_id, container_id

    async def clear(self) -> None:
        runtime = await self.start()
        for sandbox in await runtime.list_sandboxes():
            await runtime.stop_sandbox(sandbox.id)
            await runtime.remove_sandbox(sandbox.id)
        await runtime.close()
        await self.containerd.stop()
        self.cgroups.remove(LAYOUT.prefix)


async def _ready(runtime: CRIRuntime) -> bool:
    try:
        return (await runtime.status()).runtime_ready
    except CRIError:
        return False


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    before = Snapshot.take()
    made = Machine(tmp_path)
    yield made
    await made.clear()
    assert Snapshot.take().since(before) == {}


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


async def test_a_new_launcher_adopts_the_running_one(machine: Machine) -> None:
    runtime = await machine.start()
    await runtime.close()
    other = Containerd(machine.directory / "containerd", sandbox_image=images.PAUSE, clock=SystemClock())
    await other.start()
    assert other.pid == machine.containerd.pid


async def test_an_archive_that_is_none_is_refused_with_its_name(machine: Machine, tmp_path: Path) -> None:
    runtime = await machine.start()
    damaged = tmp_path / "damaged.tar"
    damaged.write_bytes(b"no tar at all")
    with pytest.raises(CRIError, match=r"damaged\.tar"):
        await runtime.import_archive(damaged)
    await runtime.close()
