"""A runtime and a cgroup tree that remember what they were told, with levers for a test.

runtime.exit("c1", 1)     the running container of that name ends by itself
runtime.fail["pull"] = …  the next calls of that kind are refused with the text
runtime.vanish("c1")      it is listed once more and cannot be inspected any more
runtime.silent = True     nothing is told of what containers may use
runtime.stats.append(…)   what a container is said to use
runtime.listens = True    it knows UpdatePodSandboxResources
runtime.needs = 24 << 20  bytes that every container uses: started with no more, it is killed
runtime.exec = …          what a command in a container comes to, by the container's name and the command
runtime.calls             what was asked, in order
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from msgspec.structs import replace

from podfit.core.clock import Clock
from podfit.decide.pod.pull_credentials import Credential
from podfit.kubelet.cgroup.protocol import (
    CgroupConfig,
    ContainerValues,
    CPUValues,
    Enforcement,
    Layout,
    Missing,
    PodCgroup,
    Throttling,
    Unsupported,
)
from podfit.kubelet.runtime.configs import ContainerConfig, SandboxConfig
from podfit.kubelet.runtime.errors import CRIError, NotFound, TimedOut, Unimplemented
from podfit.kubelet.runtime.types import (
    Container,
    ContainerEvent,
    ContainerState,
    ContainerStats,
    ContainerStatus,
    Executed,
    Image,
    LinuxResources,
    RuntimeCondition,
    RuntimeStatus,
    Sandbox,
    SandboxState,
    SandboxStatus,
    Streams,
    Version,
)

LEAST = 6 << 20
"""With a lower memory limit runc may be killed before it has started the container."""


@dataclass
class _Box:
    sandbox: Sandbox
    config: SandboxConfig


class FakeRuntime:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ids = itertools.count(1)
        self.boxes: dict[str, _Box] = {}
        self.containers: dict[str, tuple[str, ContainerStatus, ContainerConfig]] = {}
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

    def running(self, name: str) -> ContainerStatus:
        return next(s for _, s, _ in self.containers.values() if s.name == name and s.state is ContainerState.RUNNING)

    def config(self, name: str) -> ContainerConfig:
        """Of the newest instance."""
        return max(
            (c for _, s, c in self.containers.values() if s.name == name), key=lambda container: container.attempt
        )

    def exit(self, name: str, code: int, reason: str = "") -> None:
        key = self.running(name).id
        self._end(key, code)
        self._set(key, reason=reason)

    def finish(self, container_id: str, code: int = 0) -> None:
        """One container, of several with its name, ends by itself."""
        self._end(container_id, code)

    def alter(self, name: str, **resources: Any) -> None:
        """As an NRI plugin does: the container may use something else than was asked for."""
        running = self.running(name)
        self._set(running.id, resources=replace(running.resources or LinuxResources(), **resources))

    def undo_start(self, container_id: str) -> None:
        """As if whoever started it had been interrupted just before."""
        self._set(container_id, state=ContainerState.CREATED, exit_code=0, finished_at=0)

    def vanish(self, name: str) -> None:
        self._vanished.add(self.running(name).id)

    def kill_box(self, uid: str) -> None:
        """The sandbox dies, and its containers with it."""
        for key, box in self.boxes.items():
            if box.sandbox.uid == uid:
                self._stop_box(key)

    # ------------------------------------------------------------------ sandboxes

    async def run_sandbox(self, config: SandboxConfig, *, handler: str = "") -> str:
        self._call("sandbox", config.name)
        key = f"box{next(self._ids)}"
        sandbox = Sandbox(
            id=key,
            name=config.name,
            namespace=config.namespace,
            uid=config.uid,
            attempt=config.attempt,
            state=SandboxState.READY,
            created_at=self._now(),
            labels=config.labels,
            annotations=config.annotations,
        )
        self.boxes[key] = _Box(sandbox, config)
        return key

    async def stop_sandbox(self, sandbox_id: str) -> None:
        self._call("stop-sandbox", sandbox_id)
        self._stop_box(sandbox_id)

    async def remove_sandbox(self, sandbox_id: str) -> None:
        self.boxes.pop(sandbox_id, None)
        self.containers = {key: container for key, container in self.containers.items() if container[0] != sandbox_id}

    async def list_sandboxes(self, *, labelled: Mapping[str, str] | None = None) -> tuple[Sandbox, ...]:
        self._call("list", "")
        wanted = (labelled or {}).items()
        return tuple(box.sandbox for box in self.boxes.values() if wanted <= box.sandbox.labels.items())

    async def sandbox_status(self, sandbox_id: str) -> SandboxStatus:
        if sandbox_id not in self.boxes:
            raise NotFound(sandbox_id)
        box = self.boxes[sandbox_id]
        known: dict[str, Any] = {name: getattr(box.sandbox, name) for name in Sandbox.__struct_fields__}
        return SandboxStatus(**known, host_network=box.config.host_network)

    async def update_sandbox_resources(
        self, sandbox_id: str, *, resources: LinuxResources, overhead: LinuxResources | None = None
    ) -> None:
        if not self.listens:
            raise Unimplemented("not implemented")
        self._call("tell", sandbox_id)

    # ------------------------------------------------------------------ containers

    async def create_container(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig) -> str:
        self._call("create", config.name)
        key = f"id{next(self._ids)}"
        log = _touched(Path(sandbox.log_directory, config.log_path))
        self.containers[key] = (
            sandbox_id,
            ContainerStatus(
                id=key,
                name=config.name,
                attempt=config.attempt,
                state=ContainerState.CREATED,
                created_at=self._now(),
                image=config.image,
                image_id=config.image,
                resources=config.resources,
                stop_signal=config.stop_signal if self.knows_signals else "",
                labels=config.labels,
                annotations=config.annotations,
                log_path=str(log),
                recursive_read_only=frozenset(m.container_path for m in config.mounts if m.recursive_read_only),
            ),
            config,
        )
        return key

    async def start_container(self, container_id: str) -> None:
        status = self.containers[container_id][1]
        limit = status.resources.memory_limit if status.resources else 0
        try:
            self._call("start", status.name)
            if 0 < limit < LEAST:
                raise CRIError("container init was OOM-killed (memory limit too low?)")
        except CRIError:
            self._set(
                container_id, state=ContainerState.EXITED, exit_code=128, reason="StartError", finished_at=self._now()
            )
            raise
        self._set(container_id, state=ContainerState.RUNNING, started_at=self._now())
        if 0 < limit <= self.needs:
            self._end(container_id, 137)
            self._set(container_id, reason="OOMKilled")

    async def stop_container(self, container_id: str, *, grace_seconds: int) -> None:
        name = self.containers[container_id][1].name
        self._call("stop", f"{name} {grace_seconds}s")
        if self.hangs_on_stop:
            await asyncio.Event().wait()
        if name in self.stubborn:
            await self._clock.sleep(grace_seconds)
            self._end(container_id, 137)
        else:
            self._end(container_id, 0)

    async def remove_container(self, container_id: str) -> None:
        self.containers.pop(container_id, None)

    async def list_containers(self, *, labelled: Mapping[str, str] | None = None) -> tuple[Container, ...]:
        wanted = (labelled or {}).items()
        return tuple(
            Container(
                id=key,
                sandbox_id=box,
                name=s.name,
                attempt=s.attempt,
                image=s.image,
                image_id=s.image_id,
                state=s.state,
                created_at=s.created_at,
                labels=s.labels,
                annotations=s.annotations,
            )
            for key, (box, s, _) in self.containers.items()
            if wanted <= s.labels.items()
        )

    async def container_status(self, container_id: str) -> ContainerStatus:
        if container_id in self._vanished:
            self.containers.pop(container_id, None)
        if container_id not in self.containers:
            raise NotFound(container_id)
        status = self.containers[container_id][1]
        return replace(status, resources=None) if self.silent else status

    async def update_container_resources(self, container_id: str, resources: LinuxResources) -> None:
        status = self.containers[container_id][1]
        self._call("update", status.name)
        old = status.resources or LinuxResources()
        given = {k: getattr(resources, k) for k in LinuxResources.__struct_fields__ if getattr(resources, k)}
        self._set(container_id, resources=replace(old, **given))

    async def reopen_container_log(self, container_id: str) -> None:
        self._call("reopen", self.containers[container_id][1].name)
        _touched(Path(self.containers[container_id][1].log_path))

    async def exec_sync(self, container_id: str, command: Sequence[str], *, timeout_seconds: float) -> Executed:
        name = self.containers[container_id][1].name
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

    async def container_stats(self, container_id: str) -> Any:
        raise Unimplemented("not implemented")

    async def list_container_stats(self) -> tuple[ContainerStats, ...]:
        self._call("stats", "")
        return tuple(self.stats)

    async def sandbox_stats(self, sandbox_id: str) -> Any:
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

    async def image_root(self) -> str:
        return ""

    async def remove_image(self, image: str) -> None:
        self._call("rmi", image)
        self.removed()
        self.images = {name: known for name, known in self.images.items() if image not in (name, known.id)}

    async def import_archive(self, archive: Path) -> tuple[str, ...]:
        return ()

    async def version(self) -> Version:
        return self.told_version

    async def status(self) -> RuntimeStatus:
        ready = RuntimeCondition(type="RuntimeReady", status=self.ready)
        return RuntimeStatus(conditions=(ready,), recursive_read_only=self.recursive_read_only)

    async def cgroup_driver(self) -> Literal["cgroupfs", "systemd"] | None:
        return None

    async def events(self) -> AsyncIterator[ContainerEvent] | None:
        return None

    async def close(self) -> None:
        """Nothing is held."""

    # ------------------------------------------------------------------ inside

    def _call(self, kind: str, what: str) -> None:
        if kind != "list":
            self.calls.append(f"{kind} {what}")
        if kind in self.fail:
            raise CRIError(self.fail[kind])

    def _now(self) -> int:
        return int(self._clock.now().timestamp() * 1e9)

    def _set(self, key: str, **changes: Any) -> None:
        box, status, config = self.containers[key]
        self.containers[key] = box, replace(status, **changes), config

    def _end(self, key: str, code: int) -> None:
        if key in self.containers and self.containers[key][1].state is ContainerState.RUNNING:
            self._set(key, state=ContainerState.EXITED, exit_code=code, finished_at=self._now())

    def _stop_box(self, sandbox_id: str) -> None:
        box = self.boxes.get(sandbox_id)
        if box is not None:
            box.sandbox = replace(box.sandbox, state=SandboxState.NOT_READY)
            for key in [key for key, container in self.containers.items() if container[0] == sandbox_id]:
                self._end(key, 137)


def _touched(path: Path) -> Path:
    path.touch()
    return path


@dataclass
class FakeCgroups:
    layout: Layout = field(default_factory=Layout)
    driver: Literal["cgroupfs"] = "cgroupfs"
    version: Literal["v1", "v2"] = "v1"
    enforced: Enforcement = field(default_factory=lambda: Enforcement(cpu=True, memory=True, pids=True))
    groups: dict[str, CgroupConfig] = field(default_factory=dict)
    usage: int = 0  # bytes, of every group alike
    throttled: dict[str, Throttling] = field(default_factory=dict)  # by the last part of the path

    def create(self, path: str, config: CgroupConfig) -> None:
        for parent in PurePosixPath(path).parents:
            if parent.name:
                self.groups.setdefault(str(parent), CgroupConfig())
        self.groups[path] = config

    def exists(self, path: str) -> bool:
        return path in self.groups

    def read_cpu(self, path: str) -> CPUValues:
        config = self._group(path)
        return CPUValues(shares=config.cpu_shares or 1024, quota=config.cpu_quota, period=config.cpu_period)

    def read_memory(self, path: str) -> int | None:
        return self._group(path).memory_limit

    def set_cpu_shares(self, path: str, shares: int) -> None:
        self.groups[path] = replace(self._group(path), cpu_shares=shares)

    def set_cpu_limit(self, path: str, *, quota: int, period: int) -> None:
        self.groups[path] = replace(self._group(path), cpu_quota=None if quota == -1 else quota, cpu_period=period)

    def memory_high(self, path: str) -> int | None:
        raise Unsupported("these are the cgroups of version 1")

    def set_memory_high(self, path: str, high: int) -> None:
        raise Unsupported("these are the cgroups of version 1")

    def reclaim(self, path: str, amount: int) -> None:
        raise Unsupported("these are the cgroups of version 1")

    def memory_stall(self, path: str) -> int | None:
        return None

    def throttling(self, path: str) -> Throttling | None:
        self._group(path)
        return self.throttled.get(path.rpartition("/")[2])

    def set_memory_limit(self, path: str, limit: int) -> None:
        self.groups[path] = replace(self._group(path), memory_limit=None if limit == -1 else limit)

    def memory_usage(self, path: str) -> int | None:
        return self.usage

    def working_set(self, path: str) -> int | None:
        return self.usage

    def read_container(self, path: str) -> ContainerValues:
        return ContainerValues(
            cpu=CPUValues(shares=2, quota=None, period=100_000), memory_limit=None, memory_usage=self.usage
        )

    def remove(self, path: str) -> None:
        self._group(path)
        self.groups = {
            key: group for key, group in self.groups.items() if key != path and not key.startswith(path + "/")
        }

    def list_pods(self) -> tuple[PodCgroup, ...]:
        return tuple(
            PodCgroup(path=path, uid=path.rpartition("/pod")[2], qos="Burstable")
            for path in self.groups
            if "/pod" in path
        )

    def _group(self, path: str) -> CgroupConfig:
        if path not in self.groups:
            raise Missing(path)
        return self.groups[path]
