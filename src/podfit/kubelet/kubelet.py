"""A node: takes the pods that were placed on it, runs them, and says how they are.

                ┌──────────── pods of this node (informer) ────────────┐
                ▼                                                      │
PodManager ── AllocationManager        what is allocated: checkpoint   │ status, delete
    │              │ sync                                              │
    ▼              ▼                                                   │
PodWorker ── PodSync, PodEnd ── Starter, Killer, Actuator ── runtime, cgroups, volumes
    ▲
RuntimeWatch    containers that ended         NodeAgent    node object, Lease
"""

import asyncio
import logging

from podfit.api.core.v1.pods.types import Pod
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.decide.cgroup.container_resources import Machine
from podfit.kubelet.actuation.actuator import Actuator
from podfit.kubelet.actuation.guarded_shrink import Guard
from podfit.kubelet.allocation.manager import AllocationManager
from podfit.kubelet.backoff import CrashBackoff
from podfit.kubelet.cgroup.protocol import CgroupError, Cgroups
from podfit.kubelet.checkpoints.checkpoint import Checkpoint, CheckpointError
from podfit.kubelet.config import KubeletConfig
from podfit.kubelet.disk.writer import DiskWriter, Threads
from podfit.kubelet.eviction.evictor import Evictor
from podfit.kubelet.eviction.local_storage import StorageMeter
from podfit.kubelet.eviction.reclaim import Reclaimer
from podfit.kubelet.housekeeping import Housekeeper
from podfit.kubelet.images.collector import ImageCollector
from podfit.kubelet.images.pull_secrets import PullSecrets
from podfit.kubelet.images.puller import Puller
from podfit.kubelet.managers.manager import ResourceManagers
from podfit.kubelet.managers.shared_pool import SharedPool
from podfit.kubelet.node.agent import NodeAgent
from podfit.kubelet.node.events import KubeletEvents
from podfit.kubelet.node.pressure import Observe, PressureMonitor, observe_nothing
from podfit.kubelet.node.status import DISK_ANSWERS, DISK_HANGS
from podfit.kubelet.node.view import NodeViews
from podfit.kubelet.pods.attempts import Attempts
from podfit.kubelet.pods.event_delay import EventDelay
from podfit.kubelet.pods.hooks import Hooks
from podfit.kubelet.pods.killer import Killer
from podfit.kubelet.pods.known_pods import AllocatedPods, KnownPods
from podfit.kubelet.pods.manager import PodManager
from podfit.kubelet.pods.metrics import PodMetrics
from podfit.kubelet.pods.starter import RETRY_SECONDS, Starter
from podfit.kubelet.pods.watch import RuntimeWatch
from podfit.kubelet.pods.worker_context import WorkerContext
from podfit.kubelet.probes.checks import Checks
from podfit.kubelet.probes.manager import ProbeManager
from podfit.kubelet.runtime.container_network import ContainerReach
from podfit.kubelet.runtime.log_rotation import LogRotation
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.server.configz import configuration
from podfit.kubelet.server.handler import NodeServer
from podfit.kubelet.server.summary import Summary
from podfit.kubelet.server.usage import UsageMetrics
from podfit.kubelet.shutdown import GracefulShutdown
from podfit.kubelet.sources.lookup import Lookup
from podfit.kubelet.sources.names import NO_NAMES, NodeNames
from podfit.kubelet.sources.services import ServiceVariables
from podfit.kubelet.static.directory import ManifestDirectory
from podfit.kubelet.static.mirrors import Mirrors
from podfit.kubelet.volumes.claimed import ClaimedVolumes
from podfit.kubelet.volumes.manager import Volumes
from podfit.kubelet.volumes.mounter import Mounter
from podfit.kubelet.volumes.payloads import Payloads
from podfit.kubelet.volumes.tokens import TokenSource
from podfit.net.files import write_whole
from podfit.net.metrics import Metrics
from podfit.net.supervisor import Supervisor

log = logging.getLogger(__name__)

IMAGES = "imagefs.available"


class Kubelet:
    """`start`, then `stop`. `runtime_name` is the scheme of container ids, such as `containerd` or `simulated`.

    Probes and hooks ask over `reach`, unless there are `checks` that probe otherwise.
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
        runtime_name: str = "containerd",
        observe: Observe = observe_nothing,
    ) -> None:
        self._config = config
        self._supervisor = Supervisor(f"kubelet {config.name}")
        self.metrics = Metrics()

        event_delay = EventDelay(clock)
        self._events = KubeletEvents(client, config.name, clock=clock, after=event_delay.wait)
        threads = None if config.simulated else Threads()  # a simulated node waits for nobody outside its event loop
        self._writer = DiskWriter(clock, threads)
        self._pressure = PressureMonitor(
            observe, config.eviction_hard, clock=clock, transition=config.pressure_transition
        )
        self._agent = NodeAgent(
            client,
            runtime,
            config,
            clock=clock,
            gates=machine.gates,
            pressure=self._pressure,
            writer=self._writer,
            tell=self._events.node,
        )
        self._informer = Informer(client, Pod, clock=clock, fields=f"spec.nodeName={config.name}")

        self._known = KnownPods()
        self._watch = RuntimeWatch(runtime, self._known, clock=clock)
        self._mirrors = Mirrors(
            self._informer, client, clock=clock, owner=self._agent.reference, shown=self._known.shown
        )
        self._manifests = ManifestDirectory(
            config.manifests, node=config.name, clock=clock, gates=machine.gates, listeners=(self._known, self._mirrors)
        )

        journaled = not config.simulated  # a simulated resize waits for no runtime
        allocated = Checkpoint(config.root / "allocated_pods_state", self._writer, journaled=journaled)
        actuated = Checkpoint(
            config.root / "actuated_pods_state", self._writer, write=write_whole, journaled=journaled, durable=False
        )
        self._checkpoints = (allocated, actuated)
        self._managers = ResourceManagers(config.managers, config.root, self._writer)
        self._pool = SharedPool(runtime, self._managers, node=config.name, clock=clock)
        self._allocation = AllocationManager(
            allocated=allocated,
            actuated=actuated,
            node=NodeViews(config, machine, self._managers, self._agent, self._pressure),
            clock=clock,
            emit=self._events.pod,
            sync=lambda uid, _trigger: self._known.resize(uid),
            end=self._known.preempt,
            metrics=self.metrics,
            managers=self._managers,
        )
        pods = AllocatedPods(self._known, self._allocation)

        self._guard = Guard(cgroups, clock, config.root / "guarded_shrinks")
        self._actuator = Actuator(
            runtime=runtime,
            cgroups=cgroups,
            machine=machine,
            record=actuated,
            clock=clock,
            metrics=self.metrics,
            managers=self._managers,
            guard=self._guard,
        )
        lookup = Lookup(client, clock)
        self._services = ServiceVariables(client, clock, api_server=config.api_server, follow=not config.simulated)
        payloads = Payloads(lookup, config.allocatable, TokenSource(client, clock))
        volumes = Volumes(config.root, payloads, mounter, self._writer, clock.now, ClaimedVolumes(client))
        self._puller = Puller(runtime, clock=clock, retry=RETRY_SECONDS)
        self._probes = ProbeManager(
            checks or Checks(runtime, reach),
            address=config.host_ip,
            clock=clock,
            random=client.random,
            changed=self._known.wake,
            emit=self._events.pod,
        )
        names = NO_NAMES if config.simulated else NodeNames()
        hooks = Hooks(runtime, reach, clock, config.host_ip)
        killer = Killer(runtime, clock, self._events.pod, hooks)
        context = WorkerContext(
            client=client,
            runtime=runtime,
            cgroups=cgroups,
            config=config,
            clock=clock,
            machine=machine,
            runtime_name=runtime_name,
            allocation=self._allocation,
            actuator=self._actuator,
            volumes=volumes,
            starter=Starter(
                runtime,
                self._actuator,
                self._puller,
                lookup,
                PullSecrets(lookup),
                volumes,
                config.allocatable,
                clock,
                client.random,
                CrashBackoff(),
                self._pool,
                names,
                hooks,
                killer,
                self._events.pod,
                self._services,
            ),
            killer=killer,
            metrics=PodMetrics(self.metrics),
            probes=self._probes,
            names=names,
            emit=self._events.pod,
            event_delay=event_delay,
            tell=self._events.node,
            active=pods.active,
        )
        attempts = Attempts(config.root / "unfinished_pods", self._writer)
        self._pods = PodManager(context, self._known, self._informer, attempts)
        log_root = None if config.simulated else config.log_root
        self._logs = LogRotation(runtime, log_root, self._writer, clock)
        self._images = ImageCollector(
            runtime, config.images, clock=clock, disk=lambda: self._pressure.seen.get(IMAGES), tell=self._events.node
        )
        self._evictor = Evictor(
            runtime,
            self._pressure,
            self._known,
            pods,
            StorageMeter(volumes, log_root, self._writer, clock),
            Reclaimer(runtime, self._known, self._images, self._writer),
            clock,
            self._events.pod,
            self._events.node,
        )
        self._shutdown = GracefulShutdown(self._known, clock, config.shutdown)
        self._housekeeper = Housekeeper(
            runtime, cgroups, volumes, config, clock, self._actuator, self._known, self._informer, pods
        )
        usage = UsageMetrics(runtime, cgroups, pods=self._known.pods, clock=clock, simulated=config.simulated)
        self.handler = NodeServer(
            runtime,
            pods=pods.all,
            metrics=self.metrics,
            clock=clock,
            healthy=lambda: self._watch.healthy and self._supervisor.broken is None,
            usage=usage,
            summary=Summary(usage, node=config.name, clock=clock, simulated=config.simulated),
            configuration=lambda: configuration(config, machine),
        )

    async def start(self) -> None:
        """Returns when the node is registered and every pod that was placed on it before has its worker."""
        self._config.root.mkdir(parents=True, exist_ok=True)
        self._config.root.chmod(0o750)
        for component in (self._pods, self._probes, self._allocation, self._puller, *self._checkpoints):
            self._supervisor.watch(component.supervisor)
        self._events.node("Normal", "Starting", "Starting kubelet.")
        self._enforce_allocatable()
        self._guard.recover()
        self._actuator.cgroups.refresh_tiers(())
        await self._pool.recover()
        self._pressure.look()
        self._manifests.look()
        self._supervisor.begin(self._services.run())
        for job in (self._events, self._informer, self._pods):
            self._supervisor.run(job.run())
        self._supervisor.run(self._follow_pressure())
        self._supervisor.run(self._follow_disk())
        await self._agent.register()
        self._supervisor.run(self._agent.run())
        await self._pods.ready.wait()
        self._supervisor.run(self._watch.look())
        for later in (self._housekeeper, self._pressure, self._evictor, self._images, self._mirrors):
            self._supervisor.run(later.run())
        for optional in (self._watch.listen(), self._pool.run(), self._manifests.run(), self._logs.run()):
            self._supervisor.begin(optional)  # it ends where there is nothing to do
        log.info("kubelet started node=%s pods=%d", self._config.name, len(self._known.uids()))

    async def stop(self, *, stop_pods: bool) -> None:
        """End the kubelet. Containers go on running, unless `stop_pods`: then nothing of this node's pods remains but
        their directories and logs.
        """
        if stop_pods:
            await self.shut_down()
        await asyncio.sleep(0)  # a job that has not begun yet could not be ended
        await self._supervisor.stop()
        await self._probes.close()
        await self._allocation.close()
        for checkpoint in self._checkpoints:
            await checkpoint.close()
        await self._puller.close()
        if stop_pods:
            await self._housekeeper.take_down()
            await self._forget_managers()

    async def shut_down(self) -> None:
        """The node is about to go: it says so, and takes neither pods nor resizes any more. What runs ends in its order
        if a time for that was configured, else it goes on.
        """
        if self._config.shutdown:
            self._events.node("Normal", "Shutdown", "Shutdown manager detected shutdown event")
        await self._agent.shut_down()
        await self._shutdown.end_pods()

    # ------------------------------------------------------------------ inside

    def _enforce_allocatable(self) -> None:
        """What is reserved is kept from pods, whatever their limits are. A simulated node has nothing to share out."""
        if self._config.simulated:
            return
        capacity, managers = self._config.capacity, self._config.managers
        cpu = capacity["cpu"].milli() - 1000 * len(managers.reserved_cpus)
        try:
            self._actuator.cgroups.enforce_allocatable(cpu, capacity["memory"].value() - managers.reserved_memory)
        except CgroupError as error:
            text = f"Failed to update Node Allocatable Limits: {error}"
            self._events.node("Warning", "FailedNodeAllocatableEnforcement", text)
        else:
            text = "Updated Node Allocatable limit across pods"
            self._events.node("Normal", "NodeAllocatableEnforced", text)

    async def _follow_pressure(self) -> None:
        """The API hears of it at once, and resizes that waited for it to pass are tried again."""
        while True:
            await self._pressure.changed.wait()
            self._pressure.changed.clear()
            self._agent.changed()
            self._allocation.retry_soon("node_changed")

    async def _follow_disk(self) -> None:
        """What was given up while a file hung is done when the disk answers again."""
        while True:
            change = await self._writer.changes.get()
            if change.hangs:
                self._events.node("Warning", DISK_HANGS, change.problem)
            else:
                if not change.problem:
                    self._events.node("Normal", DISK_ANSWERS, "the disk answers again")
                self._allocation.disk_answers()
                self._known.wake_all()
            self._agent.changed()

    async def _forget_managers(self) -> None:
        """Nothing has CPUs or memory of its own any more, so the next start is free to have other policies."""
        try:
            await self._managers.give_up()
        except CheckpointError as error:
            log.warning("state of the managers not cleared error=%s", error)
