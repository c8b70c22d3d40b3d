"""A private containerd with one pod in it, for tests that need real containers and nothing else of podfit.

    async with private_containerd(directory) as machine:
        runtime = await machine.start()
        sandbox_id, container_id = await machine.run(runtime)

On leaving, its containers, cgroups and processes are gone. `python -m support.containerd DIR` does the same in a
process of its own, prints the ids of containerd and the container, and waits to be killed; with `--empty` before DIR
there is no pod, the socket is printed, and SIGINT ends all of it.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from podfit.decide.lifecycle.facts import LinuxResources
from podfit.kubelet.cgroup.detect import detect
from podfit.kubelet.cgroup.protocol import CgroupConfig, Cgroups, Layout
from podfit.kubelet.runtime import images
from podfit.kubelet.runtime.configs import ContainerConfig, SandboxConfig
from podfit.kubelet.runtime.containerd import Containerd
from podfit.kubelet.runtime.cri.client import CRIRuntime
from podfit.kubelet.runtime.errors import CRIError
from podfit.net.system import SystemClock
from support.eventually import eventually_async

STAY = ("sh", "-c", "echo hello; trap 'exit 3' TERM; while :; do sleep 1 & wait $!; done")
SECONDS = 20


class Machine:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.containerd = Containerd(directory / "containerd", sandbox_image=images.PAUSE, clock=SystemClock())
        self.layout = Layout(f"/podfit-{self.containerd.places.tag}")
        self.cgroups: Cgroups = detect(self.layout).cgroups
        self.pod = self.layout.pod("u1", "Burstable")
        self.sandbox = SandboxConfig(
            name="p", namespace="d", uid="u1", cgroup_parent=self.pod, host_network=True, log_directory=str(directory)
        )

    @property
    def marks(self) -> tuple[str, ...]:
        """One of these is in the name of everything that it makes on the machine: files, mounts, cgroups, processes."""
        return str(self.directory), self.containerd.places.tag

    async def start(self) -> CRIRuntime:
        await self.containerd.start()
        runtime = CRIRuntime(self.containerd.places.socket, self.containerd.importer)

        async def answers() -> bool:
            if answered := await ready(runtime):
                return answered
            await self.containerd.revive()
            return False

        await eventually_async(answers, within=SECONDS, what="containerd answers", every=0.01)
        return runtime

    async def run(self, runtime: CRIRuntime) -> tuple[str, str]:
        """A pod of 50 ms of CPU and 64 MiB with a container of 20 ms and 32 MiB: ids of sandbox and container."""
        await self.load_images(runtime)
        self.cgroups.create(self.pod, CgroupConfig(cpu_quota=50_000, memory_limit=64 << 20))
        sandbox_id = await runtime.run_sandbox(self.sandbox)
        config = ContainerConfig(
            name="c",
            image="busybox:1.36",
            command=STAY,
            log_path="c.log",
            resources=LinuxResources(cpu_shares=256, cpu_quota=20_000, cpu_period=100_000, memory_limit=32 << 20),
        )
        container_id = await runtime.create_container(sandbox_id, config, self.sandbox)
        await runtime.start_container(container_id)
        return sandbox_id, container_id

    async def load_images(self, runtime: CRIRuntime) -> None:
        for recipe in (images.pause_recipe(), images.busybox_recipe()):
            await runtime.import_archive(images.archive(recipe, self.directory / "images"))

    async def clear(self) -> None:
        runtime = await self.start()
        for sandbox in await runtime.list_sandboxes():
            await runtime.stop_sandbox(sandbox.id)
            await runtime.remove_sandbox(sandbox.id)
        await runtime.close()
        await self.containerd.stop()
        for tree in self.layout.trees:
            self.cgroups.remove(tree)


async def ready(runtime: CRIRuntime) -> bool:
    try:
        return (await runtime.status()).runtime_ready
    except CRIError:
        return False


@asynccontextmanager
async def private_containerd(directory: Path) -> AsyncIterator[Machine]:
    machine = Machine(directory)
    try:
        yield machine
    finally:
        await machine.clear()


async def _wait_to_be_killed(directory: Path) -> None:
    machine = Machine(directory)
    runtime = await machine.start()
    _, container_id = await machine.run(runtime)
    _say(f"{machine.containerd.pid} {container_id}")
    await asyncio.Event().wait()


async def _serve_until_interrupted(directory: Path) -> None:
    async with private_containerd(directory) as machine:
        runtime = await machine.start()
        await machine.load_images(runtime)
        await runtime.close()
        _say(f"{machine.containerd.pid} {machine.containerd.places.socket}")
        interrupted = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupted.set)
        await interrupted.wait()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    *empty, folder = sys.argv[1:]
    asyncio.run((_serve_until_interrupted if empty else _wait_to_be_killed)(Path(folder)))
