"""A node of the cluster: the runtime it stands on, its kubelet, and how to take both down."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

from podfit.api.core.v1.nodes.types import Node
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.clock import Clock
from podfit.core.randomness import Random
from podfit.kubelet.cgroup.protocol import CgroupError, Cgroups
from podfit.kubelet.kubelet import Kubelet
from podfit.kubelet.managers.config import ManagerError
from podfit.kubelet.node.pressure import MachineSignals, MemoryShare, observe_nothing
from podfit.kubelet.probes.node_network import NodeReach
from podfit.kubelet.runtime import images
from podfit.kubelet.runtime.archives import Importer
from podfit.kubelet.runtime.container_network import ContainerReach, SimulatedReach
from podfit.kubelet.runtime.containerd import Containerd, ContainerdFailed
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.runtime.shims import LeakedShims
from podfit.kubelet.volumes.mounter import DirectoryMounter, TmpfsMounter
from podfit.net.supervisor import Supervisor
from podfit.net.wire import Handler, Identity
from podfit.process.errors import MachineError
from podfit.process.kubelet_config import kubelet_config, node_machine
from podfit.process.node_runtime import PreparedRuntime, containerd_failed
from podfit.process.options import NodeKind, NodeOptions
from podfit.process.process import RunningNode

log = logging.getLogger(__name__)

READY_SECONDS = 30.0
STEP = 0.01
SHIM_SECONDS = 15.0


class NodeBackend(msgspec.Struct, frozen=True):
    """What a kubelet drives. `containerd` is set where it is our own child; `images` is where another keeps images."""

    runtime: Runtime
    cgroups: Cgroups
    detail: str
    reach: ContainerReach
    containerd: Containerd | None = None
    images: Path | None = None


async def real_backend(prepared: PreparedRuntime, options: NodeOptions, clock: Clock) -> NodeBackend:
    """Wait for our own containerd, or connect to the runtime that was named. Raises MachineError."""
    found, containerd = prepared.cgroups, prepared.containerd
    if containerd is None:
        runtime = _cri(Path(options.runtime_endpoint))
        try:
            detail = await _described(runtime, found.described)
            await _check_cgroup_driver(runtime, detail)
        except MachineError:
            await runtime.close()
            raise
        return NodeBackend(runtime, found.cgroups, detail, _reach(), images=await _image_root(runtime))
    try:
        await containerd.start()
    except ContainerdFailed as error:
        raise containerd_failed(options.data, containerd, error) from error
    runtime = _cri(containerd.places.socket, containerd.importer)
    try:
        await _until_ready(runtime, containerd, clock)
        await _load_built_in(runtime, containerd.places.root / "images")
        detail = await _described(runtime, found.described)
        return NodeBackend(runtime, found.cgroups, detail, _reach(), containerd)
    except MachineError:
        await _give_up(NodeBackend(runtime, found.cgroups, "", _reach(), containerd))
        raise


def _share(cgroups: Cgroups, root: str) -> MemoryShare | None:
    """None when the node has all of the machine's memory. Raises MachineError."""
    try:
        limit = cgroups.read_memory(root) if root else None
    except CgroupError as error:
        raise MachineError(f"the memory of --cgroup-root {root} cannot be read: {error}") from error
    return None if limit is None else MemoryShare(cgroups, root, limit)


async def _image_root(runtime: Runtime) -> Path | None:
    try:
        found = await runtime.image_root()
    except CRIError as error:
        log.warning("the runtime does not say where its images are; taken for the node's disk error=%s", error)
        return None
    return Path(found) if found else None


async def _give_up(backend: NodeBackend) -> None:
    """What cannot be used is not left running, unless it does not say whether containers are on it."""
    try:
        await release(backend, end=True)
    except CRIError as error:
        log.warning("containerd is left as it is error=%s", error)


def _cri(socket: Path, importer: Importer | None = None) -> Runtime:
    from podfit.kubelet.runtime.cri.client import CRIRuntime

    return CRIRuntime(socket, importer)


def _reach() -> ContainerReach:
    from podfit.kubelet.runtime.cri.health import check_health

    return NodeReach(check_health)


async def _described(runtime: Runtime, cgroups: str) -> str:
    try:
        version = await runtime.version()
    except CRIError as error:
        raise MachineError(f"the container runtime does not answer: {error}") from error
    return f"{version.runtime_name} {version.runtime_version}, {cgroups}"


async def _check_cgroup_driver(runtime: Runtime, detail: str) -> None:
    """The cgroups that the kubelet makes for pods are named as the driver cgroupfs names them. containerd before 2.0
    does not tell its driver; with the other one it refuses each pod.
    """
    try:
        driver = await runtime.cgroup_driver()
    except CRIError as error:
        raise MachineError(f"the container runtime does not tell its cgroup driver: {error}") from error
    if driver == "systemd":
        raise MachineError(
            f"the container runtime ({detail}) has the cgroup driver systemd, podfit works with cgroupfs only",
            fix=('containerd: SystemdCgroup = false; CRI-O: cgroup_manager = "cgroupfs"',),
        )


async def _until_ready(runtime: Runtime, containerd: Containerd, clock: Clock) -> None:
    """containerd takes connections before it has its containers together again; until then it refuses every call."""
    deadline = clock.monotonic() + READY_SECONDS
    while True:
        try:
            if (await runtime.status()).runtime_ready:
                return
        except CRIError as error:
            if clock.monotonic() > deadline:
                raise MachineError(f"containerd is not ready after {READY_SECONDS:.0f} s: {error}") from error
        await containerd.revive()
        await clock.sleep(STEP)


async def _load_built_in(runtime: Runtime, directory: Path) -> None:
    """The pause image and busybox, unless this containerd has them from an earlier start."""
    for name, recipe in images.BUILT_IN.items():
        try:
            if await runtime.image_status(name) is None:
                archive = await asyncio.to_thread(images.archive, recipe(), directory)
                await runtime.import_archive(archive)
        except images.MissingProgram as error:
            raise MachineError(str(error), fix=("install it:  apt-get install busybox-static",)) from error
        except CRIError as error:
            raise MachineError(f"cannot load a built-in image: {error}") from error


async def release(backend: NodeBackend, *, end: bool) -> None:
    """Let go of the runtime. With `end` our own containerd is stopped, unless something still runs on it: its files
    hold the containers' file systems, so it has to be the last to go."""
    try:
        if end and backend.containerd is not None and not await backend.runtime.list_sandboxes():
            await backend.containerd.stop()
    finally:
        await backend.runtime.close()


def simulated_backend(clock: Clock) -> NodeBackend:
    from podfit.kubelet.cgroup.memory import MemoryCgroups
    from podfit.kubelet.runtime.simulated import SimulatedRuntime

    cgroups = MemoryCgroups()
    return NodeBackend(SimulatedRuntime(clock, cgroups), cgroups, "containers do not run", SimulatedReach())


def local_client(name: str, api: Handler, random: Random) -> Client:
    """As the node, to an API server in this process."""
    identity = Identity(f"system:node:{name}", ("system:nodes", "system:authenticated"))
    return Client(Local(api, identity), user_agent="kubelet", random=random)


async def wait_until_ready(client: Client, name: str) -> None:
    node = await client.get(Node, name)
    if _is_ready(node):
        return
    version = node.metadata.resource_version
    async for event in client.watch(Node, resource_version=version, fields=f"metadata.name={name}"):
        if event.type != "BOOKMARK" and _is_ready(event.object):
            return


async def pressures(client: Client, name: str) -> list[str]:
    """`DiskPressure: kubelet has disk pressure`, for each condition that is true and should not be."""
    node = await client.get(Node, name)
    found = [
        condition
        for condition in node.status.conditions
        if condition.type.endswith("Pressure") and condition.status == "True"
    ]
    return [f"{condition.type}: {condition.message}" for condition in found]


def _is_ready(node: Node) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions)


async def end_leaked_shims(runtime: Runtime, containerd: Containerd, clock: Clock) -> None:
    """Until cancelled. The sandboxes are asked for before the processes are looked at: one that comes in between has a
    shim that is seen for the first time.
    """
    leaked = LeakedShims(containerd.places.socket)
    while True:
        try:
            known = {sandbox.id for sandbox in await runtime.list_sandboxes()}
        except CRIError as error:
            log.debug("not looking for leaked shims error=%s", error)
        else:
            await asyncio.to_thread(leaked.look, known)
        await clock.sleep(SHIM_SECONDS)


class ClusterNode:
    """One node, whose containers find the API server at `api_server`. `handler` is its kubelet's server, which listens
    at `port` of `address` where there is one. `client` speaks as the node.
    """

    def __init__(
        self,
        name: str,
        kind: NodeKind,
        backend: NodeBackend,
        options: NodeOptions,
        client: Client,
        clock: Clock,
        *,
        api_server: str,
        address: str = "",
        port: int = 0,
    ) -> None:
        self.name = name
        self.kind = kind
        self._clock = clock
        self.backend = backend
        simulated = kind is NodeKind.SIMULATED
        share = None if simulated else _share(backend.cgroups, options.kubelet.cgroup_root)
        config = kubelet_config(
            name,
            options,
            simulated=simulated,
            memory=share.limit if share is not None else None,
            api_server=api_server,
            address=address,
            port=port,
        )
        try:
            self._kubelet = Kubelet(
                client=client,
                runtime=backend.runtime,
                cgroups=backend.cgroups,
                config=config,
                machine=node_machine(config, backend.cgroups, options),
                clock=clock,
                reach=backend.reach,
                mounter=DirectoryMounter() if simulated else TmpfsMounter(),
                runtime_name="simulated" if simulated else "containerd",
                observe=observe_nothing
                if simulated
                else MachineSignals(nodefs=config.root, imagefs=backend.images or options.data.containerd, share=share),
            )
        except ManagerError as error:
            raise MachineError(str(error)) from error
        self.supervisor = Supervisor(f"node {name}")

    @property
    def cgroups(self) -> Cgroups:
        return self.backend.cgroups

    @property
    def handler(self) -> Handler:
        return self._kubelet.handler

    def running(self) -> RunningNode:
        """What the state file says of it."""
        containerd = self.backend.containerd
        return RunningNode(
            name=self.name,
            kind=str(self.kind),
            detail=self.backend.detail,
            runtime_endpoint=str(containerd.places.socket) if containerd else "",
            cgroup_root=self.cgroups.layout.root,
            containerd_pid=containerd.pid if containerd else 0,
        )

    async def start(self, changed: Callable[[], None]) -> None:
        """`changed` is called when `running` says something else."""
        containerd = self.backend.containerd
        if containerd is not None:
            self.supervisor.run(containerd.watch(changed), name="containerd")
            shims = end_leaked_shims(self.backend.runtime, containerd, self._clock)
            self.supervisor.run(shims, name="leaked shims")
        await self._kubelet.start()

    async def stop(self, *, pods: bool, runtime: bool) -> None:
        """With `runtime` our own containerd ends as well, if nothing runs on it any more."""
        await self._kubelet.stop(stop_pods=pods)
        await self.supervisor.stop()
        await release(self.backend, end=runtime)
