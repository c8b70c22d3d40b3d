"""The parts of a kubelet, put together: each class makes those of one side, from what it stands on and the sides above.

    NodeParts ──▶ AllocationParts ──▶ PodParts ──▶ Maintenance

NodeParts    what the node is, and says of itself
AllocationParts   what its pods are promised, and how a promise becomes real
PodParts     what runs and ends pods
Maintenance      what is done unasked, so that the node lasts
"""

from pathlib import Path

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.decide.cgroup.container_resources import Machine
from podfit.kubelet.actuation.actuator import Actuator
from podfit.kubelet.actuation.guarded_shrink import Guard
from podfit.kubelet.allocation.manager import AllocationManager
from podfit.kubelet.bursts.record import BurstRecord
from podfit.kubelet.bursts.rule import BurstRule
from podfit.kubelet.cgroup.protocol import Cgroups
from podfit.kubelet.checkpoints.checkpoint import Checkpoint
from podfit.kubelet.checkpoints.entries import Entries
from podfit.kubelet.config import KubeletConfig
from podfit.kubelet.disk.mounter import Mounter
from podfit.kubelet.disk.writer import DiskWriter, Threads
from podfit.kubelet.eviction.evictor import Evictor
from podfit.kubelet.eviction.local_storage import StorageMeter
from podfit.kubelet.eviction.reclaim import Reclaimer
from podfit.kubelet.eviction.spare import Lender
from podfit.kubelet.housekeeping import Housekeeper
from podfit.kubelet.images.collector import ImageCollector
from podfit.kubelet.images.image_volumes import ImageVolumes
from podfit.kubelet.images.pull_secrets import PullSecrets
from podfit.kubelet.images.puller import Puller
from podfit.kubelet.managers.manager import ResourceManagers
from podfit.kubelet.managers.shared_pool import SharedPool
from podfit.kubelet.network.network import PodNetwork
from podfit.kubelet.node.agent import NodeAgent
from podfit.kubelet.node.events import KubeletEvents
from podfit.kubelet.node.pressure import Observe, PressureMonitor
from podfit.kubelet.node.view import NodeViews
from podfit.kubelet.pods.attempts import Attempts
from podfit.kubelet.pods.hooks import Hooks
from podfit.kubelet.pods.killer import Killer
from podfit.kubelet.pods.known_pods import AllocatedPods, KnownPods
from podfit.kubelet.pods.manager import PodManager
from podfit.kubelet.pods.metrics import PodMetrics
from podfit.kubelet.pods.own_files import NoFiles, OwnFiles
from podfit.kubelet.pods.resize_turns import LEAST, EventDelay, Slots
from podfit.kubelet.pods.runtime_watch import RuntimeWatch
from podfit.kubelet.pods.starter import Starter
from podfit.kubelet.pods.worker_context import WorkerContext
from podfit.kubelet.probes.checks import Checks
from podfit.kubelet.probes.manager import ProbeManager
from podfit.kubelet.runtime.container_network import ContainerReach
from podfit.kubelet.runtime.log_rotation import LogRotation
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.shutdown import GracefulShutdown
from podfit.kubelet.sources.lookup import Lookup
from podfit.kubelet.sources.names import NO_NAMES, NodeNames
from podfit.kubelet.sources.services import ServiceVariables
from podfit.kubelet.static.directory import ManifestDirectory
from podfit.kubelet.static.mirrors import Mirrors
from podfit.kubelet.volumes.claimed import ClaimedVolumes
from podfit.kubelet.volumes.manager import Volumes
from podfit.kubelet.volumes.payloads import Payloads
from podfit.kubelet.volumes.tokens import TokenSource
from podfit.kubelet.volumes.unwritten import NoTokens, UnwrittenVolumes
from podfit.net.files import write_atomic, write_whole
from podfit.net.metrics import Metrics

IMAGES = "imagefs.available"


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """What a kubelet stands on; `kubelet.kubelet.Kubelet` says what each is. `metrics` are its own."""

    client: Client
    runtime: Runtime
    cgroups: Cgroups
    config: KubeletConfig
    machine: Machine
    mounter: Mounter
    clock: Clock
    reach: ContainerReach
    checks: Checks
    network: PodNetwork
    runtime_name: str
    observe: Observe
    metrics: Metrics


class NodeParts:
    def __init__(self, base: Base) -> None:
        config, clock = base.config, base.clock
        self.event_delay = EventDelay(clock)
        self.events = KubeletEvents(base.client, config.name, clock=clock, after=self.event_delay.wait)
        self.writer = DiskWriter(clock, Threads() if config.files else None)
        self.pressure = PressureMonitor(
            base.observe,
            config.eviction_hard,
            clock=clock,
            transition=config.options.eviction_pressure_transition_period,
        )
        self.agent = NodeAgent(
            base.client,
            base.runtime,
            config,
            clock=clock,
            gates=base.machine.gates,
            pressure=self.pressure,
            writer=self.writer,
            network=base.network,
            tell=self.events.node,
        )


class AllocationParts:
    def __init__(self, base: Base, node: NodeParts) -> None:
        config, clock = base.config, base.clock
        self.known = KnownPods()
        allocated, actuated = _checkpoints(config, node.writer)
        self.checkpoints = (allocated, actuated)
        self.managers = ResourceManagers(config.managers, config.root, node.writer)
        self.pool = SharedPool(base.runtime, self.managers, node=config.name, clock=clock)
        self.allocation = AllocationManager(
            allocated=allocated,
            actuated=actuated,
            node=NodeViews(config, base.machine, self.managers, node.agent, node.pressure),
            clock=clock,
            emit=node.events.pod,
            sync=self.known.resize,
            grow=self._grow,
            end=self.known.preempt,
            metrics=base.metrics,
            managers=self.managers,
        )
        moved = config.root / "burst_limits_state" if config.files and config.bursts else None
        self.bursts = BurstRecord(moved, node.writer, clock, base.machine.gates)
        self.pods = AllocatedPods(self.known, self.allocation)
        self.guard = Guard(base.cgroups, clock, config.root / "guarded_shrinks")
        self.actuator = Actuator(
            runtime=base.runtime,
            cgroups=base.cgroups,
            machine=base.machine,
            record=actuated,
            clock=clock,
            metrics=base.metrics,
            managers=self.managers,
            guard=self.guard,
        )

    def _grow(self, pod: Pod) -> None:
        live = self.known.live(pod.metadata.uid)
        if live is not None:
            self.actuator.grow(pod, live)


def _checkpoints(config: KubeletConfig, writer: DiskWriter) -> tuple[Entries, Entries]:
    """What is allocated and what is actuated. A simulated resize waits for no runtime, so it needs no journal."""
    if not config.files:
        return Entries("allocated"), Entries("actuated")
    root, journaled = config.root, not config.simulated
    return (
        Checkpoint(root / "allocated_pods_state", writer, write=write_atomic, journaled=journaled),
        Checkpoint(root / "actuated_pods_state", writer, write=write_whole, journaled=journaled, durable=False),
    )


class PodParts:
    def __init__(self, base: Base, node: NodeParts, allocation_parts: AllocationParts) -> None:
        config, clock, client = base.config, base.clock, base.client
        self.informer = Informer(client, Pod, clock=clock, fields=f"spec.nodeName={config.name}", at_once=True)
        self.runtime_watch = RuntimeWatch(base.runtime, allocation_parts.known, clock=clock)
        self.mirrors = Mirrors(
            self.informer, client, clock=clock, owner=node.agent.reference, shown=allocation_parts.known.shown
        )
        self.manifests = ManifestDirectory(
            config.manifests,
            node=config.name,
            clock=clock,
            gates=base.machine.gates,
            listeners=(allocation_parts.known, self.mirrors),
        )
        self.lookup = Lookup(client, clock)
        self.services = ServiceVariables(client, clock, api_server=config.api_server, follow=not config.simulated)
        tokens = TokenSource(client, clock) if config.files else NoTokens()
        volumes = Volumes if config.files else UnwrittenVolumes
        payloads = Payloads(self.lookup, config.allocatable, tokens)
        claimed = ClaimedVolumes(client, host_paths=config.files)
        self.volumes = volumes(config.root, payloads, base.mounter, node.writer, clock.now, claimed)
        self.puller = Puller(base.runtime, clock=clock)
        self.probes = ProbeManager(
            base.checks,
            address=config.host_ip,
            clock=clock,
            random=client.random,
            changed=allocation_parts.known.wake,
            emit=node.events.pod,
        )
        attempts = Attempts(config.root / "unfinished_pods", node.writer, synced=config.files)
        self.manager = PodManager(
            self._context(base, node, allocation_parts), allocation_parts.known, self.informer, attempts
        )
        self.burst_rule = BurstRule(
            allocation_parts.bursts,
            self.informer,
            allocation_parts.known,
            allocation_parts.allocation,
            base.cgroups,
            clock=clock,
            gates=base.machine.gates,
            emit=node.events.pod,
            changed=self.manager.changed,
        )

    def _context(self, base: Base, node: NodeParts, allocation_parts: AllocationParts) -> WorkerContext:
        options = base.config.options
        names = NO_NAMES if base.config.simulated else NodeNames(resolver=Path(options.resolv_conf))
        own_files = OwnFiles if base.config.files else NoFiles
        hooks = Hooks(base.runtime, base.reach, base.clock, base.config.host_ip)
        killer = Killer(base.runtime, base.clock, node.events.pod, hooks)
        starter = Starter(
            base.runtime,
            allocation_parts.actuator,
            self.puller,
            ImageVolumes(base.runtime, self.puller),
            self.lookup,
            PullSecrets(self.lookup),
            self.volumes,
            base.config.allocatable,
            allocation_parts.pool,
            own_files(self.volumes, names, base.client.random, base.config.host_ip, options.cluster_domain),
            hooks,
            node.events.pod,
            self.services,
        )
        return WorkerContext(
            client=base.client,
            runtime=base.runtime,
            cgroups=base.cgroups,
            config=base.config,
            clock=base.clock,
            machine=base.machine,
            runtime_name=base.runtime_name,
            allocation=allocation_parts.allocation,
            actuator=allocation_parts.actuator,
            volumes=self.volumes,
            starter=starter,
            killer=killer,
            metrics=PodMetrics(base.metrics),
            probes=self.probes,
            names=names,
            network=base.network,
            emit=node.events.pod,
            event_delay=node.event_delay,
            resize_turns=Slots(max(LEAST, 2 * base.config.capacity["cpu"].value()), base.clock),
            tell=node.events.node,
            active=allocation_parts.pods.active,
            desired=allocation_parts.bursts.desired,
            burst_conditions=allocation_parts.bursts.conditions,
        )


class Maintenance:
    def __init__(self, base: Base, node: NodeParts, allocation_parts: AllocationParts, pods: PodParts) -> None:
        config, clock, runtime, known = base.config, base.clock, base.runtime, allocation_parts.known
        log_root = None if config.simulated else config.log_root
        self.logs = LogRotation(runtime, log_root, node.writer, clock)
        self.images = ImageCollector(
            runtime,
            config.options.images,
            clock=clock,
            disk=lambda: node.pressure.seen.get(IMAGES),
            tell=node.events.node,
        )
        evictions = base.metrics.gauge(  # as kubelet_preemptions, for the sake of its name
            "kubelet_evictions", "Cumulative number of pod evictions by eviction signal", ("eviction_signal",)
        )
        self.evictor = Evictor(
            runtime,
            node.pressure,
            known,
            allocation_parts.pods,
            StorageMeter(pods.volumes, log_root, node.writer, clock),
            Reclaimer(runtime, known, self.images, node.writer),
            clock,
            node.events.pod,
            node.events.node,
            lambda signal: evictions.labels(signal).inc(),
        )
        self.lender = Lender(
            runtime,
            config,
            node.agent,
            known,
            allocation_parts.pods,
            base.observe,
            clock,
            node.events.pod,
            lambda signal: evictions.labels(signal).inc(),
        )
        self.shutdown = GracefulShutdown(known, clock, config.options.shutdown)
        self.housekeeper = Housekeeper(
            runtime,
            base.cgroups,
            pods.volumes,
            config,
            clock,
            allocation_parts.actuator,
            known,
            pods.informer,
            allocation_parts.pods,
        )
