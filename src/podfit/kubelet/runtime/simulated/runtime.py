"""The simulated runtime: the same protocol as CRI, over states in memory.

    runtime.end(container_id, code)     a container ends by itself
    runtime.use(container_id, bytes)    its memory use; a limit below it is then refused (v1) or kills (v2)
    runtime.faults["pull_image"] = error     that call raises it, until it is taken out again
    runtime.delays["stop_container"] = 5     that call first waits so many seconds of the Clock; inf = it hangs

A fault or delay of `"*"` holds for every call, as when the runtime is down. Ids count up, so a test sees the same ones
on every run.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from podfit.core.clock import Clock
from podfit.decide.lifecycle.facts import (
    ContainerState,
    ContainerStatus,
    LinuxResources,
    Sandbox,
    SandboxState,
    SandboxStatus,
)
from podfit.decide.pod.pull_credentials import Credential
from podfit.kubelet.cgroup.memory import MemoryCgroups
from podfit.kubelet.runtime.configs import ContainerConfig, SandboxConfig
from podfit.kubelet.runtime.errors import CRIError, TimedOut, Unimplemented
from podfit.kubelet.runtime.simulated.addresses import SimulatedAddresses
from podfit.kubelet.runtime.simulated.program import WELL, begin_log, ending, has_to_be_killed
from podfit.kubelet.runtime.simulated.state import KILLED, SimulatedState, group_of
from podfit.kubelet.runtime.types import (
    CgroupDriver,
    Container,
    ContainerEvent,
    ContainerStats,
    EventKind,
    Executed,
    Image,
    RuntimeCondition,
    RuntimeStatus,
    SandboxStats,
    Streams,
    Version,
)

_IMAGE_ID = "simulated://"  # no name of an image begins so
NOTHING_RUNS = "a container of a simulated node runs nothing: there is no process to reach"


class SimulatedRuntime(SimulatedState):
    """`faults` and `delays` make calls fail or take longer, by the call's name or `*` for all. The delay `run` is how
    long a command that ends by itself runs, whatever it says.

    With `programs_end` init containers and containers of Jobs end well after a second, unless their command says more.
    Without `addresses` sandboxes have none.
    """

    def __init__(
        self,
        clock: Clock,
        cgroups: MemoryCgroups,
        *,
        programs_end: bool = False,
        addresses: SimulatedAddresses | None = None,
    ) -> None:
        super().__init__(clock, cgroups)
        self._programs_end, self._addresses = programs_end, addresses

    # ------------------------------------------------------------------ sandboxes

    async def run_sandbox(self, config: SandboxConfig, *, handler: str = "") -> str:
        await self._may("run_sandbox")
        sandbox_id = f"sandbox-{next(self._ids)}"
        status = SandboxStatus(
            id=sandbox_id,
            name=config.name,
            namespace=config.namespace,
            uid=config.uid,
            attempt=config.attempt,
            state=SandboxState.READY,
            created_at=self._now(),
            labels=config.labels,
            annotations=config.annotations,
            host_network=config.host_network,
            ips=(self._addresses.take(sandbox_id),) if self._addresses is not None and not config.host_network else (),
        )
        self._sandboxes[sandbox_id] = status, config
        return sandbox_id

    async def stop_sandbox(self, sandbox_id: str) -> None:
        await self._may("stop_sandbox")
        if sandbox_id not in self._sandboxes:
            return
        for container_id in self._inside(sandbox_id):
            self.end(container_id, KILLED)
        status, config = self._sandboxes[sandbox_id]
        self._sandboxes[sandbox_id] = replace(status, state=SandboxState.NOT_READY), config

    async def remove_sandbox(self, sandbox_id: str) -> None:
        await self._may("remove_sandbox")
        for container_id in self._inside(sandbox_id):
            self._remove(container_id)
        self._sandboxes.pop(sandbox_id, None)
        if self._addresses is not None:
            self._addresses.give_back(sandbox_id)

    async def list_sandboxes(self, *, labelled: Mapping[str, str] | None = None) -> tuple[Sandbox, ...]:
        await self._may("list_sandboxes")
        return tuple([status for status, _ in self._sandboxes.labelled(labelled or {})])

    async def sandbox_status(self, sandbox_id: str) -> SandboxStatus:
        await self._may("sandbox_status")
        return self._sandbox(sandbox_id)

    async def update_sandbox_resources(
        self, sandbox_id: str, *, resources: LinuxResources, overhead: LinuxResources | None = None
    ) -> None:
        raise Unimplemented("the simulated runtime keeps no sandbox resources")

    async def sandbox_stats(self, sandbox_id: str) -> SandboxStats:
        await self._may("sandbox_stats")
        self._sandbox(sandbox_id)
        inside = tuple([self._stats(container) for container in self._inside(sandbox_id)])
        used = sum(container.memory_usage or 0 for container in inside)
        return SandboxStats(id=sandbox_id, timestamp=self._now(), memory_usage=used, containers=inside)

    # ------------------------------------------------------------------ containers

    async def create_container(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig) -> str:
        await self._may("create_container")
        self._sandbox(sandbox_id)
        container_id = f"container-{next(self._ids)}"
        log = Path(sandbox.log_directory, config.log_path) if config.log_path else None
        image = _image(config.image)
        status = ContainerStatus(
            id=container_id,
            name=config.name,
            attempt=config.attempt,
            state=ContainerState.CREATED,
            created_at=self._now(),
            image=image.tags[0],
            image_id=image.id,
            image_ref=image.id,
            log_path=str(log or ""),
            resources=config.resources,
            stop_signal=config.stop_signal,
            labels=config.labels,
            annotations=config.annotations,
        )
        self._containers[container_id] = status, config, sandbox_id
        return container_id

    async def start_container(self, container_id: str) -> None:
        await self._may("start_container")
        status = self._status(container_id)
        _, config, _ = self._containers[container_id]
        self._cgroups.create(self._path(container_id), group_of(status.resources or LinuxResources()))
        self._change(container_id, state=ContainerState.RUNNING, started_at=self._now())
        self._tell(container_id, EventKind.STARTED)
        plan = ending([*config.command, *config.args])
        if plan is None and self._programs_end and config.has_end:
            plan = WELL
        if plan is not None:
            seconds = self.delays.get("run", plan.seconds)
            self._timers[container_id] = self._clock.call_later(seconds, partial(self.end, container_id, plan.code))

    async def stop_container(self, container_id: str, *, grace_seconds: int) -> None:
        await self._may("stop_container")
        if container_id not in self._containers:
            return
        status, config, _ = self._containers[container_id]
        killed = has_to_be_killed([*config.command, *config.args])
        if killed and status.state is ContainerState.RUNNING:
            await self._clock.sleep(grace_seconds)
        if container_id in self._containers:
            self.end(container_id, KILLED if killed or not grace_seconds else 0)

    async def remove_container(self, container_id: str) -> None:
        await self._may("remove_container")
        self._remove(container_id)

    async def list_containers(self, *, labelled: Mapping[str, str] | None = None) -> tuple[Container, ...]:
        await self._may("list_containers")
        return tuple(
            Container(
                id=container.id,
                sandbox_id=owner,
                name=container.name,
                attempt=container.attempt,
                image=container.image,
                image_id=container.image_id,
                state=container.state,
                created_at=container.created_at,
                labels=container.labels,
                annotations=container.annotations,
            )
            for container, _, owner in self._containers.labelled(labelled or {})
        )

    async def container_status(self, container_id: str) -> ContainerStatus:
        await self._may("container_status")
        return self._status(container_id)

    async def update_container_resources(self, container_id: str, resources: LinuxResources) -> None:
        """What is zero or empty stays as it is, as in the CRI."""
        await self._may("update_container_resources")
        status = self._status(container_id)
        changed = {name: value for name in LinuxResources.__struct_fields__ if (value := getattr(resources, name))}
        if status.state is ContainerState.RUNNING:
            self._apply(container_id, resources)
        self._change(container_id, resources=replace(status.resources or LinuxResources(), **changed))

    async def reopen_container_log(self, container_id: str) -> None:
        """Nothing writes but this: a log is there once somebody wants to read it."""
        await self._may("reopen_container_log")
        begin_log(self._status(container_id))

    async def exec_sync(self, container_id: str, command: Sequence[str], *, timeout_seconds: float) -> Executed:
        """Nothing runs, so nothing fails but `false` and `exit N`."""
        await self._may("exec_sync")
        if self._status(container_id).state is not ContainerState.RUNNING:
            raise CRIError(f"container {container_id} is not running")
        plan = ending(command)
        if plan is not None:
            if 0 < timeout_seconds < plan.seconds:
                await self._clock.sleep(timeout_seconds)
                raise TimedOut(f"the command took longer than {timeout_seconds:g} s")
            await self._clock.sleep(plan.seconds)
        return Executed(exit_code=plan.code if plan is not None else 0)

    async def exec_url(self, container_id: str, command: Sequence[str], streams: Streams) -> str:
        raise Unimplemented(NOTHING_RUNS)

    async def attach_url(self, container_id: str, streams: Streams) -> str:
        raise Unimplemented(NOTHING_RUNS)

    async def port_forward_url(self, sandbox_id: str) -> str:
        raise Unimplemented(NOTHING_RUNS)

    async def container_stats(self, container_id: str) -> ContainerStats:
        await self._may("container_stats")
        return self._stats(container_id)

    async def list_container_stats(self) -> tuple[ContainerStats, ...]:
        await self._may("list_container_stats")
        return tuple([self._stats(container_id) for container_id in self._containers])

    # ------------------------------------------------------------------ images, runtime

    async def list_images(self) -> tuple[Image, ...]:
        await self._may("list_images")
        names = sorted({config.image for _, config, _ in self._containers.values()})
        return tuple(_image(name) for name in names)

    async def image_status(self, image: str) -> Image | None:
        """Every image is there: nothing would be read from it."""
        await self._may("image_status")
        return _image(image)

    async def pull_image(self, image: str, credential: Credential | None = None) -> str:
        await self._may("pull_image")
        return _image(image).id

    async def remove_image(self, image: str) -> None:
        """There is nothing to remove."""

    async def image_root(self) -> str:
        return ""

    async def import_archive(self, archive: Path) -> tuple[str, ...]:
        raise Unimplemented("a simulated node needs no images")

    async def version(self) -> Version:
        await self._may("version")
        return Version(runtime_name="simulated", runtime_version="1", api_version="v1")

    async def status(self) -> RuntimeStatus:
        await self._may("status")
        kinds = ("RuntimeReady", "NetworkReady")
        return RuntimeStatus(conditions=tuple(RuntimeCondition(type=kind, status=True) for kind in kinds))

    async def cgroup_driver(self) -> CgroupDriver | None:
        return "cgroupfs"

    async def events(self) -> AsyncIterator[ContainerEvent] | None:
        queue: asyncio.Queue[ContainerEvent] = asyncio.Queue()
        self._listeners[queue] = None
        return self._stream(queue)

    async def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()

    async def _stream(self, queue: "asyncio.Queue[ContainerEvent]") -> AsyncIterator[ContainerEvent]:
        try:
            while True:
                yield await queue.get()
        finally:
            self._listeners.pop(queue, None)


def _image(image: str) -> Image:
    """The image by its name or by its id, as runtimes find images."""
    name = image.removeprefix(_IMAGE_ID)
    return Image(id=_IMAGE_ID + name, tags=(name,), size=0)
