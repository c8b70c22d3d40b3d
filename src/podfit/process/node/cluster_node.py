"""A node of the cluster: its kubelet on what it drives, and how to take both down."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

from podfit.api.meta.base import ResourceList
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.decide.node.shutdown import is_shutdown
from podfit.kubelet.cgroup.protocol import CgroupError, Cgroups
from podfit.kubelet.disk.mounter import DirectoryMounter, TmpfsMounter
from podfit.kubelet.kubelet import Kubelet
from podfit.kubelet.managers.config import ManagerError
from podfit.kubelet.network.network import PodNetwork
from podfit.kubelet.node.pressure import MachineSignals, MemoryShare, observe_nothing
from podfit.kubelet.runtime.containerd import Containerd
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.runtime.shims import LeakedShims
from podfit.net.programs import ran
from podfit.net.supervisor import Supervisor
from podfit.net.wire import Handler
from podfit.process.data.running_process import RunningNode
from podfit.process.errors import MachineError
from podfit.process.node.backend import NodeBackend, release
from podfit.process.node.kubelet_config import PlayedNode, kubelet_config, node_machine
from podfit.process.options import NodeKind, NodeOptions

BOOTED = Path("/run/systemd/system")
"""There while systemd is the first process (sd_booted(3))."""
QUESTION = ("systemctl", "is-system-running")
ANSWER_SECONDS = 5.0


async def service_manager(booted: Path = BOOTED, question: tuple[str, ...] = QUESTION) -> str:
    """Such as `running`, `degraded` or `stopping`; empty without systemd, `unknown` when it does not answer."""
    if not await asyncio.to_thread(booted.is_dir):
        return ""
    try:
        ended = await ran(*question, seconds=ANSWER_SECONDS)
    except TimeoutError:
        return "unknown"
    except OSError as error:
        log.warning("systemd cannot be asked whether the machine goes down error=%s", error)
        return "unknown"
    return ended.said.strip() or "unknown"


log = logging.getLogger(__name__)

SHIM_SECONDS = 15.0


def _share(cgroups: Cgroups, root: str) -> MemoryShare | None:
    """None when the node has all of the machine's memory. Raises MachineError."""
    try:
        limit = cgroups.read_memory(root) if root else None
    except CgroupError as error:
        raise MachineError(f"the memory of --cgroup-root {root} cannot be read: {error}") from error
    return None if limit is None else MemoryShare(cgroups, root, limit)


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
    at `port` of `address` where there is one. `client` speaks as the node; `size` is what a
    simulated one has otherwise than others, `played` is set for a Node that somebody else has made. Without a `network`
    all pods are on the host's. `bursts` is whether limits move inside burst ceilings where the options do not say.
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
        size: ResourceList | None = None,
        played: PlayedNode | None = None,
        network: PodNetwork | None = None,
        bursts: bool = False,
    ) -> None:
        self.name = name
        self.kind = kind
        self.network, self.client = network, client
        self._clock = clock
        self.backend = backend
        simulated = kind is NodeKind.SIMULATED
        self._shutdown = options.kubelet.shutdown
        share = None if simulated else _share(backend.cgroups, options.kubelet.cgroup_root)
        config = kubelet_config(
            name,
            options,
            simulated=simulated,
            passing_seconds=backend.passing_seconds,
            size=size,
            played=played,
            memory=share.limit if share is not None else None,
            api_server=api_server,
            address=address,
            port=port,
            bursts=bursts,
        )
        self._new_kubelet = partial(
            Kubelet,
            client=client,
            runtime=backend.runtime,
            cgroups=backend.cgroups,
            config=config,
            machine=node_machine(config, backend.cgroups, options),
            clock=clock,
            reach=backend.reach,
            checks=backend.checks,
            network=network,
            mounter=DirectoryMounter() if simulated else TmpfsMounter(),
            runtime_name="simulated" if simulated else "containerd",
            observe=observe_nothing
            if simulated
            else MachineSignals(nodefs=config.root, imagefs=backend.images or options.data.containerd, share=share),
        )
        try:
            self._kubelet = self._new_kubelet()
        except ManagerError as error:
            raise MachineError(str(error)) from error
        self.supervisor = Supervisor(f"node {name}")
        self.lost = False

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
            shutdown_seconds=sum(group.seconds for group in self._shutdown),
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

    async def lose(self) -> None:
        """Its kubelet ends without a word; containers go on, and nobody here is asked about them."""
        if not self.lost:
            self.lost = True
            await self._kubelet.stop(stop_pods=False)

    async def restore(self) -> None:
        """A kubelet begins anew on what is there."""
        if self.lost:
            self._kubelet = self._new_kubelet()
            await self._kubelet.start()
            self.lost = False

    async def terminated(self) -> None:
        """The process was told to end; see `decide.node.shutdown.is_shutdown`."""
        if self._shutdown and not self.lost and is_shutdown(self._shutdown, await service_manager()):
            await self._kubelet.shut_down()

    async def stop(self, *, pods: bool, runtime: bool) -> None:
        """Stops it. With `runtime` our own containerd ends as well, if nothing runs on it any more."""
        if not self.lost:
            await self._kubelet.stop(stop_pods=pods)
        await self.supervisor.stop()
        await release(self.backend, end=runtime)
