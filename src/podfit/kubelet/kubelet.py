"""A node: takes the pods that were placed on it, runs them, and says how they are.

                ┌──────────── pods of this node (informer) ────────────┐
                ▼                                                      │
PodManager ── AllocationManager        what is allocated: checkpoint   │ status, delete
    │              │ sync                                              │
    ▼              ▼                                                   │
PodWorker ── PodWorld ── Starter, Killer, Actuator ── runtime, cgroups, volumes
    ▲
RuntimeWatch    containers that ended         NodeAgent    node object, Lease
"""

import asyncio
import logging

from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.decide.cgroup.container_resources import Machine
from podfit.kubelet.cgroup.protocol import CgroupError, Cgroups
from podfit.kubelet.checkpoints.checkpoint import CheckpointError
from podfit.kubelet.composition import AllocationParts, Base, Maintenance, NodeParts, PodParts
from podfit.kubelet.config import KubeletConfig
from podfit.kubelet.disk.mounter import Mounter
from podfit.kubelet.network.network import OthersNetwork, PodNetwork
from podfit.kubelet.node.pressure import Observe, observe_nothing
from podfit.kubelet.node.status import DISK_ANSWERS, DISK_HANGS
from podfit.kubelet.probes.checks import Checks
from podfit.kubelet.runtime.container_network import ContainerReach
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.server.configz import configuration
from podfit.kubelet.server.handler import NodeServer
from podfit.kubelet.server.summary import Summary
from podfit.kubelet.server.usage import UsageMetrics
from podfit.net.metrics import Metrics
from podfit.net.supervisor import Supervisor

log = logging.getLogger(__name__)


class Kubelet:
    """`start`, then `stop`. `runtime_name` is the scheme of container ids, such as `containerd` or `simulated`.

    Probes and hooks ask over `reach`, unless there are `checks` that probe otherwise. Without a `network` all pods are
    on the host's.
    `client` has to speak as `system:node:<name>`. `handler` is the node's own server, to be served or called by whoever
    starts the node; it answers requests that carry an identity (`server.access` gives one to those from the network).
    """

    def __init__(
        self,
        *,
        client: Client,
        runtime: Runtime,
        cgroups: Cgroups,
        config: KubeletConfig,
        machine: Machine,
        mounter: Mounter,
        clock: Clock,
        reach: ContainerReach,
        checks: Checks | None = None,
        network: PodNetwork | None = None,
        runtime_name: str = "containerd",
        observe: Observe = observe_nothing,
    ) -> None:
        self._config = config
        self._supervisor = Supervisor(f"kubelet {config.name}")
        self.metrics = Metrics()
        base = Base(
            client=client,
            runtime=runtime,
            cgroups=cgroups,
            config=config,
            machine=machine,
            mounter=mounter,
            clock=clock,
            reach=reach,
            checks=checks or Checks(runtime, reach),
            network=network or OthersNetwork(host=True),
            runtime_name=runtime_name,
            observe=observe,
            metrics=self.metrics,
        )
        self._network = base.network
        self._node = node = NodeParts(base)
        self._allocation_parts = allocation_parts = AllocationParts(base, node)
        self._pods = pods = PodParts(base, node, allocation_parts)
        self._maintenance = Maintenance(base, node, allocation_parts, pods)
        usage = UsageMetrics(
            runtime, cgroups, pods=allocation_parts.known.pods, clock=clock, simulated=config.simulated
        )
        self.handler = NodeServer(
            runtime,
            pods=allocation_parts.pods.all,
            metrics=self.metrics,
            clock=clock,
            healthy=lambda: pods.runtime_watch.healthy and self._supervisor.broken is None,
            usage=usage,
            summary=Summary(usage, node=config.name, clock=clock, simulated=config.simulated),
            configuration=lambda: configuration(config, machine),
            simulated=config.simulated,
        )

    async def start(self) -> None:
        """Returns when the node is registered and every pod that was placed on it before has its worker."""
        node, allocation_parts, pods, maintenance = self._node, self._allocation_parts, self._pods, self._maintenance
        self._config.root.mkdir(parents=True, exist_ok=True)
        self._config.root.chmod(0o750)
        for component in (
            pods.manager,
            pods.burst_rule,
            pods.probes,
            allocation_parts.allocation,
            pods.puller,
            *allocation_parts.checkpoints,
        ):
            self._supervisor.watch(component.supervisor)
        node.events.node("Normal", "Starting", "Starting kubelet.")
        self._enforce_allocatable()
        await self._network.recover()
        allocation_parts.guard.recover()
        allocation_parts.actuator.cgroups.refresh_tiers(())
        await allocation_parts.pool.recover()
        node.pressure.look()
        pods.manifests.look()
        self._supervisor.begin(pods.services.run())
        self._supervisor.begin(self._network.run())
        for job in (node.events, pods.informer, pods.manager):
            self._supervisor.run(job.run())
        self._supervisor.run(self._follow_pressure())
        self._supervisor.run(self._follow_disk())
        await node.agent.register()
        self._supervisor.run(node.agent.run())
        await pods.manager.ready.wait()
        self._supervisor.run(pods.runtime_watch.look())
        if self._config.bursts:
            self._supervisor.run(pods.burst_rule.run())
        for later in (maintenance.housekeeper, node.pressure, maintenance.evictor, maintenance.images, pods.mirrors):
            self._supervisor.run(later.run())
        if self._config.lends:
            self._supervisor.run(maintenance.lender.run())
        for optional in (
            pods.runtime_watch.listen(),
            allocation_parts.pool.run(),
            pods.manifests.run(),
            maintenance.logs.run(),
        ):
            self._supervisor.begin(optional)  # it ends where there is nothing to do
        log.info("kubelet started node=%s pods=%d", self._config.name, len(allocation_parts.known.uids()))

    async def stop(self, *, stop_pods: bool) -> None:
        """End the kubelet. Containers go on running, unless `stop_pods`: then nothing of this node's pods remains but
        their directories and logs.
        """
        if stop_pods:
            await self.shut_down()
        await asyncio.sleep(0)  # a job that has not begun yet could not be ended
        await self._supervisor.stop()
        await self._pods.probes.close()
        await self._allocation_parts.allocation.close()
        for checkpoint in self._allocation_parts.checkpoints:
            await checkpoint.close()
        await self._pods.puller.close()
        if stop_pods:
            await self._maintenance.housekeeper.take_down()
            await self._forget_managers()

    async def shut_down(self) -> None:
        """The node is about to go: it says so, and takes neither pods nor resizes any more. What runs ends in its order
        if a time for that was configured, else it goes on.
        """
        if self._config.options.shutdown:
            self._node.events.node("Normal", "Shutdown", "Shutdown manager detected shutdown event")
        await self._node.agent.shut_down()
        await self._maintenance.shutdown.end_pods()

    # ------------------------------------------------------------------ inside

    def _enforce_allocatable(self) -> None:
        """What is reserved is kept from pods, whatever their limits are. A simulated node has nothing to share out."""
        if self._config.simulated:
            return
        capacity, managers = self._config.capacity, self._config.managers
        cpu = capacity["cpu"].milli() - 1000 * len(managers.reserved_cpus)
        try:
            self._allocation_parts.actuator.cgroups.enforce_allocatable(
                cpu, capacity["memory"].value() - managers.reserved_memory
            )
        except CgroupError as error:
            text = f"Failed to update Node Allocatable Limits: {error}"
            self._node.events.node("Warning", "FailedNodeAllocatableEnforcement", text)
        else:
            text = "Updated Node Allocatable limit across pods"
            self._node.events.node("Normal", "NodeAllocatableEnforced", text)

    async def _follow_pressure(self) -> None:
        """The API hears of it at once, and resizes that waited for it to pass are tried again."""
        while True:
            await self._node.pressure.changed.wait()
            self._node.pressure.changed.clear()
            self._node.agent.changed()
            self._allocation_parts.allocation.retry_soon("node_changed")

    async def _follow_disk(self) -> None:
        """What was given up while a file hung is done when the disk answers again."""
        while True:
            change = await self._node.writer.changes.get()
            if change.hangs:
                self._node.events.node("Warning", DISK_HANGS, change.problem)
            else:
                if not change.problem:
                    self._node.events.node("Normal", DISK_ANSWERS, "the disk answers again")
                self._allocation_parts.allocation.disk_answers()
                self._allocation_parts.known.wake_all()
            self._node.agent.changed()

    async def _forget_managers(self) -> None:
        """Nothing has CPUs or memory of its own any more, so the next start is free to have other policies."""
        try:
            await self._allocation_parts.managers.give_up()
        except CheckpointError as error:
            log.warning("state of the managers not cleared error=%s", error)
