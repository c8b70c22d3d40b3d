"""The simulated runtime and its cgroups, with a record of what they were told and more levers for a test.

runtime.exit("c1", 1)     the running container of that name ends by itself
runtime.fail["pull"] = …  the next calls of that kind are refused with the text
runtime.lose("c1")        its state is unknown until it is stopped
runtime.vanish("c1")      it is listed once more and cannot be inspected any more
runtime.silent = True     nothing is told of what containers may use
runtime.stats.append(…)   what a container is said to use
runtime.listens = True    it knows UpdatePodSandboxResources
runtime.needs = 24 << 20  bytes that every container uses: started with no more, it is killed
runtime.exec = …          what a command in a container comes to, by the container's name and the command
runtime.calls             what was asked, in order
runtime.boxes             sandboxes by id, with their configs; `instances` containers, with config and sandbox

It tells no events, as containerd before 1.7: what happened is found by looking. Images are those that a test names.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Literal

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
from podfit.kubelet.cgroup.protocol import Busy, CgroupConfig, Layout, Throttling
from podfit.kubelet.runtime.configs import ContainerConfig, SandboxConfig
from podfit.kubelet.runtime.errors import CRIError, NotFound, TimedOut, Unimplemented
from podfit.kubelet.runtime.simulated import SimulatedRuntime
from podfit.kubelet.runtime.types import (
    ContainerEvent,
    ContainerStats,
    Executed,
    Image,
    RuntimeCondition,
    RuntimeStatus,
    SandboxStats,
    Streams,
    Version,
)

LEAST = 6 << 20
"""With a lower memory limit runc may be killed before it has started the container."""


class FakeCgroups(MemoryCgroups):
    """`used` is what every group uses, in bytes; `throttled` is by the last part of the path; `processes` are in groups
    and not the runtime's."""

    def __init__(self) -> None:
        super().__init__(Layout())
        self.used = 0
        self.throttled: dict[str, Throttling] = {}
        self.processes: dict[str, int] = {}

    @property
    def groups(self) -> dict[str, CgroupConfig]:
        return self._groups

    def memory_usage(self, path: str) -> int | None:
        return self.used

    def throttling(self, path: str) -> Throttling | None:
        self._group(path)
        return self.throttled.get(path.rpartition("/")[2])

    def kill(self, path: str) -> tuple[int, ...]:
        inside = [group for group in self.processes if group == path or group.startswith(f"{path}/")]
        return tuple(self.processes.pop(group) for group in inside)

    def remove(self, path: str) -> None:
        if any(group == path or group.startswith(f"{path}/") for group in self.processes):
            raise Busy(f"removing {path}: Device or resource busy")
        super().remove(path)


class FakeRuntime(SimulatedRuntime):
    def __init__(self, clock: Clock, cgroups: FakeCgroups) -> None:
        super().__init__(clock, cgroups)
        self.images = {"app:1": Image(id="sha256:1", tags=("app:1",), size=10)}
        self.calls: list[str] = []
        self.fail: dict[str, str] = {}
        self.stubborn: set[str] = set()  # containers that ignore SIGTERM
        self.pullable: set[str] = set()
        self.guarded: dict[str, str] = {}  # passwords of images
        self.ready = True
        self.silent = False
        self.listens = False
        self.stats: list[ContainerStats] = []
        self.needs = 0
        self.streaming = ""  # the URL of its streaming server
        self.knows_signals = True
        self.recursive_read_only = True
        self.told_version = Version(runtime_name="fake", runtime_version="1", api_version="v1")
        self.hangs = 0.0  # seconds that a command without a limit takes when it hangs
        self.exec: Callable[[str, str], Executed | CRIError] = lambda _name, _command: Executed(exit_code=0)
        self.removed: Callable[[], object] = lambda: None  # what an image that goes comes to
        self.hangs_on_stop = False
        self._vanished: set[str] = set()

    # ------------------------------------------------------------------ levers

    @property
    def boxes(self) -> MutableMapping[str, tuple[SandboxStatus, SandboxConfig]]:
        return self._sandboxes

    @property
    def instances(self) -> MutableMapping[str, tuple[ContainerStatus, ContainerConfig, str]]:
        return self._containers

    def running(self, name: str) -> ContainerStatus:
        return next(s for s in self.containers() if s.name == name and s.state is ContainerState.RUNNING)

    def config(self, name: str) -> ContainerConfig:
        """Of the newest instance."""
        configs = (config for status, config, _ in self._containers.values() if status.name == name)
        return max(configs, key=lambda config: config.attempt)

    def exit(self, name: str, code: int, reason: str = "") -> None:
        self.end(self.running(name).id, code, reason=reason)

    def alter(self, name: str, **resources: Any) -> None:
        """As an NRI plugin does: the container may use something else than was asked for."""
        running = self.running(name)
        self._change(running.id, resources=replace(running.resources or LinuxResources(), **resources))

    def undo_start(self, container_id: str) -> None:
        """As if whoever started it had been interrupted just before."""
        self._change(container_id, state=ContainerState.CREATED, exit_code=0, finished_at=0)

    def lose(self, name: str) -> None:
        """As containerd that was killed while it started the container: nobody knows what became of it."""
        self._change(self.running(name).id, state=ContainerState.UNKNOWN)

    def vanish(self, name: str) -> None:
        self._vanished.add(self.running(name).id)

    def kill_box(self, uid: str) -> None:
        """The sandbox dies, and its containers with it."""
        for key, (status, config) in self._sandboxes.items():
            if status.uid == uid:
                self._sandboxes[key] = replace(status, state=SandboxState.NOT_READY), config
                for container_id in self._inside(key):
                    self.end(container_id, 137)

    # ------------------------------------------------------------------ sandboxes

    async def run_sandbox(self, config: SandboxConfig, *, handler: str = "") -> str:
        self._call("sandbox", config.name)
        return await super().run_sandbox(config, handler=handler)

    async def stop_sandbox(self, sandbox_id: str) -> None:
        self._call("stop-sandbox", sandbox_id)
        await super().stop_sandbox(sandbox_id)

    async def list_sandboxes(self, *, labelled: Mapping[str, str] | None = None) -> tuple[Sandbox, ...]:
        self._call("list", "")
        return await super().list_sandboxes(labelled=labelled)

    async def update_sandbox_resources(
        self, sandbox_id: str, *, resources: LinuxResources, overhead: LinuxResources | None = None
    ) -> None:
        if not self.listens:
            raise Unimplemented("not implemented")
        self._call("tell", sandbox_id)

    # ------------------------------------------------------------------ containers

    async def create_container(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig) -> str:
        self._call("create", config.name)
        container_id = await super().create_container(sandbox_id, config, sandbox)
        _empty(Path(sandbox.log_directory, config.log_path))
        read_only = frozenset(mount.container_path for mount in config.mounts if mount.recursive_read_only)
        self._change(container_id, recursive_read_only=read_only)
        if not self.knows_signals:
            self._change(container_id, stop_signal="")
        return container_id

    async def start_container(self, container_id: str) -> None:
        status = self._status(container_id)
        limit = status.resources.memory_limit if status.resources else 0
        try:
            self._call("start", status.name)
            if 0 < limit < LEAST:
                raise CRIError("container init was OOM-killed (memory limit too low?)")
        except CRIError:
            failed = {"exit_code": 128, "reason": "StartError", "finished_at": self._now()}
            self._change(container_id, state=ContainerState.EXITED, **failed)
            raise
        await super().start_container(container_id)
        if 0 < limit <= self.needs:
            self.end(container_id, 137, reason="OOMKilled")

    async def stop_container(self, container_id: str, *, grace_seconds: int) -> None:
        name = self._status(container_id).name
        self._call("stop", f"{name} {grace_seconds}s")
        if self._status(container_id).state is ContainerState.UNKNOWN:
            self._change(container_id, state=ContainerState.RUNNING)
            self.end(container_id, 255)
            return
        if self.hangs_on_stop:
            await asyncio.Event().wait()
        if name in self.stubborn:
            await self._clock.sleep(grace_seconds)
            self.end(container_id, 137)
        else:
            self.end(container_id, 0)

    async def container_status(self, container_id: str) -> ContainerStatus:
        if container_id in self._vanished:
            self._containers.pop(container_id, None)
        status = await super().container_status(container_id)
        return replace(status, resources=None) if self.silent else status

    async def update_container_resources(self, container_id: str, resources: LinuxResources) -> None:
        self._call("update", self._status(container_id).name)
        await super().update_container_resources(container_id, resources)

    async def reopen_container_log(self, container_id: str) -> None:
        self._call("reopen", self._status(container_id).name)
        _touch(Path(self._status(container_id).log_path))

    async def exec_sync(self, container_id: str, command: Sequence[str], *, timeout_seconds: float) -> Executed:
        name = self._status(container_id).name
        self._call("exec", f"{name} {' '.join(command)}")
        answer = self.exec(name, " ".join(command))
        if isinstance(answer, TimedOut):
            await self._clock.sleep(timeout_seconds or self.hangs)
        if isinstance(answer, CRIError):
            raise answer
        return answer

    async def exec_url(self, container_id: str, command: Sequence[str], streams: Streams) -> str:
        return self.streaming

    async def attach_url(self, container_id: str, streams: Streams) -> str:
        return self.streaming

    async def port_forward_url(self, sandbox_id: str) -> str:
        return self.streaming

    async def container_stats(self, container_id: str) -> ContainerStats:
        raise Unimplemented("not implemented")

    async def list_container_stats(self) -> tuple[ContainerStats, ...]:
        self._call("stats", "")
        return tuple(self.stats)

    async def sandbox_stats(self, sandbox_id: str) -> SandboxStats:
        raise Unimplemented("not implemented")

    # ------------------------------------------------------------------ images, runtime

    async def list_images(self) -> tuple[Image, ...]:
        return tuple(self.images.values())

    async def image_status(self, image: str) -> Image | None:
        return next((known for name, known in self.images.items() if image in (name, known.id)), None)

    async def pull_image(self, image: str, credential: Credential | None = None) -> str:
        self._call("pull", image if credential is None else f"{image} as {credential.username}")
        if image in self.guarded and (credential is None or credential.password != self.guarded[image]):
            raise CRIError(f"{image}: 401 Unauthorized")
        if image not in self.pullable:
            raise NotFound(f"{image}: not found")
        self.images[image] = Image(id=f"sha256:{image}", tags=(image,), size=5)
        return self.images[image].id

    async def remove_image(self, image: str) -> None:
        self._call("rmi", image)
        self.removed()
        self.images = {name: known for name, known in self.images.items() if image not in (name, known.id)}

    async def version(self) -> Version:
        return self.told_version

    async def status(self) -> RuntimeStatus:
        ready = RuntimeCondition(type="RuntimeReady", status=self.ready)
        return RuntimeStatus(conditions=(ready,), recursive_read_only=self.recursive_read_only)

    async def cgroup_driver(self) -> Literal["cgroupfs", "systemd"] | None:
        return None

    async def events(self) -> AsyncIterator[ContainerEvent] | None:
        return None

    # ------------------------------------------------------------------ inside

    def _call(self, kind: str, what: str) -> None:
        if kind != "list":
            self.calls.append(f"{kind} {what}")
        if kind in self.fail:
            raise CRIError(self.fail[kind])


def _empty(log: Path) -> None:
    """What is in it is for a test to write."""
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"")


def _touch(log: Path) -> None:
    log.touch()
