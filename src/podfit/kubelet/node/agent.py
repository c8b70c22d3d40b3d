"""The node agent: registers the Node object, updates its status, and renews its Lease.

every 10 s   renew the Lease in kube-node-lease; look whether the status changed, and write it if so
every 5 min  write the status all the same: its heartbeat
at once      when something told that it changed; when the object was deleted, or somebody else wrote our part of it
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from podfit.api.coordination.v1.types import Lease, LeaseSpec
from podfit.api.core.v1.nodes.types import Node, NodeCondition, NodeStatus
from podfit.api.meta import codec
from podfit.api.meta.base import ResourceList
from podfit.api.meta.v1.types import ObjectMeta, OwnerReference
from podfit.client.informer import Informer
from podfit.client.resource import resource_of
from podfit.client.rest import STRATEGIC_PATCH, Client
from podfit.core.backoff import Backoff
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.features import FeatureGates
from podfit.core.times import format_micro, format_time
from podfit.decide.node import node_events
from podfit.decide.node.node_events import NodeEvent
from podfit.decide.node.simulated import SIMULATED
from podfit.decide.pod.spare import SPARE
from podfit.kubelet.config import KubeletConfig
from podfit.kubelet.disk.writer import DiskWriter
from podfit.kubelet.network.network import PodNetwork
from podfit.kubelet.node.extended_resources import extended, is_extended, outdated
from podfit.kubelet.node.pressure import PressureMonitor
from podfit.kubelet.node.status import Health, node_annotations, node_labels, node_object, node_status
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.runtime.types import Image, Version

log = logging.getLogger(__name__)

LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
RENEW_SECONDS = 10.0
REPORT_SECONDS = 300.0
_EXISTS, _NOT_FOUND = 409, 404


class NodeAgent:
    def __init__(
        self,
        client: Client,
        runtime: Runtime,
        config: KubeletConfig,
        *,
        clock: Clock,
        gates: FeatureGates,
        pressure: PressureMonitor,
        writer: DiskWriter,
        network: PodNetwork,
        tell: Callable[[str, str, str], None],
    ) -> None:
        """`tell` records an event of the node: type, reason, message."""
        self._client = client
        self._runtime = runtime
        self._config = config
        self._holder = config.lease_holder or config.name
        self._clock = clock
        self._gates = gates
        self._pressure, self._writer, self._network, self._tell = pressure, writer, network, tell
        self._ranged = asyncio.Event()
        self._said: NodeStatus | None = None  # in events
        self._look = asyncio.Event()
        self._reported: NodeStatus | None = None
        self._reported_at = 0.0
        self._answered: NodeStatus | None = None
        self._own = Informer(client, Node, clock=clock, fields=f"metadata.name={config.name}")
        self._own.add_handler(add=self._seen, update=lambda _, new: self._seen(new), delete=self._gone)
        self.node: Node | None = None
        """As the API last showed it; None before registration."""
        self.shutting_down = False
        self.lent: ResourceList = {}
        """Spare capacity, as told from now on; empty where nothing is lent."""

    async def register(self) -> Node:
        """Create the node object, or take over the one that is there. Tries until the API accepts it."""
        backoff = Backoff(0.2, 7.0, self._client.random)
        while True:
            try:
                self.node = await self._register()
                return self.node
            except (ApiError, ConnectionError) as error:
                delay = backoff.next()
                log.warning("cannot register node node=%s retry_seconds=%.2f error=%s", self._config.name, delay, error)
                await self._clock.sleep(delay)

    async def run(self) -> None:
        """Until cancelled; after `register`."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._own.run())
            group.create_task(self._compared())
            group.create_task(self._every(self._renew, "renew lease", asyncio.Event()))
            group.create_task(self._every(self._report, "report node status", self._look))
            group.create_task(self._every(self._assign, "give pods their network", self._ranged))

    async def shut_down(self) -> None:
        """Say that the node goes; it is not Ready any more."""
        self.shutting_down = True
        if self.node is not None:
            await self._try(self._report, "report that the node is shutting down")

    def reference(self) -> OwnerReference:
        """This node as an owner."""
        uid = self.node.metadata.uid if self.node is not None else ""
        return OwnerReference(api_version="v1", kind="Node", name=self._config.name, uid=uid, controller=True)

    def lend(self, lent: ResourceList) -> None:
        """Tell so much spare capacity."""
        if lent != self.lent:
            self.lent = lent
            self.changed()

    def changed(self) -> None:
        """Something that the status tells is not what it was: report it now."""
        self._look.set()

    def _seen(self, node: Node) -> None:
        """Labels and taints count from now on; what others made of our status is put right."""
        if self.node is None or node.metadata.uid != self.node.metadata.uid or _version(node) <= _version(self.node):
            return
        self._say(node_events.of_cordon(self._config.name, self.node, node))
        if node.spec.pod_cidr != self.node.spec.pod_cidr:
            self._ranged.set()
        self.node = node
        if self._is_foreign() or outdated(node, self.lent) or self._unmarked(node):
            self.changed()

    def _gone(self, node: Node) -> None:
        if self._config.lease_holder:
            return  # whoever made it has deleted it
        if self.node is None or node.metadata.uid == self.node.metadata.uid:
            self._reported = None
            self.changed()

    async def _compared(self) -> None:
        """It may have been deleted between its registration and our first look."""
        await self._own.synced.wait()
        if self.node is not None and self._own.get(self._config.name) is None:
            self._gone(self.node)

    def _is_foreign(self) -> bool:
        """Whether our part of the status is not what the API last answered us."""
        if self.node is None or self._answered is None:
            return False
        return _part(self.node.status, self._answered) != _part(self._answered, self._answered)

    async def _register(self) -> Node:
        if self._config.lease_holder:
            return await self._adopt()
        status = await self._status()
        try:
            created = await self._client.create(node_object(self._config, status))
        except ApiError as error:
            if error.code != _EXISTS:
                raise
            metadata = {"labels": node_labels(self._config), "annotations": node_annotations(self._config)}
            known = await self._client.patch(Node, self._config.name, "", {"metadata": metadata})
            if self.node is None:
                self._say(node_events.of_takeover(self._config.name, known, status))
                ready = tuple(condition for condition in known.status.conditions if condition.type == "Ready")
                self._said = replace(known.status, conditions=ready)
            self._reported = known.status
            self.node = known
            return await self._write(await self._status())
        if created.status.conditions:
            self._remember(created.status, created)
            return created
        self.node = created
        return await self._write(status)

    async def _adopt(self) -> Node:
        """The Node is somebody else's: what it says of itself stays, and it says what it is."""
        self.node = await self._marked(await self._client.get(Node, self._config.name))
        return await self._write(await self._status())

    async def _marked(self, node: Node) -> Node:
        """The Node with the labels and annotations of ours that it lacks; those of a simulated node say so."""
        lacks = {
            "labels": _lacking(node_labels(self._config), node.metadata.labels),
            "annotations": _lacking(node_annotations(self._config), node.metadata.annotations),
        }
        if not any(lacks.values()):
            return node
        return await self._client.patch(Node, self._config.name, "", {"metadata": lacks})

    def _unmarked(self, node: Node) -> bool:
        return self._config.simulated and SIMULATED not in node.metadata.labels

    async def _report(self) -> None:
        """Write the status if it differs from what was reported, or if it is time for a heartbeat."""
        if self.node is not None and self._unmarked(self.node):
            self.node = await self._marked(self.node)
        status = await self._status()
        foreign = self._is_foreign() or (self.node is not None and outdated(self.node, self.lent))
        due = self._clock.monotonic() - self._reported_at >= REPORT_SECONDS or foreign
        if (
            not due
            and self._reported is not None
            and _without_heartbeats(status) == _without_heartbeats(self._reported)
        ):
            return
        try:
            self.node = await self._write(status)
        except ApiError as error:
            if error.code != _NOT_FOUND or self._config.lease_holder:
                raise
            log.warning("the node object was deleted, registering again node=%s", self._config.name)
            self.node = await self._register()

    async def _write(self, status: NodeStatus) -> Node:
        patch: dict[str, Any] = codec.to_dict(status)
        told = self.node.status.allocatable if self.node is not None else {}
        gone = [name for name in told if is_extended(name) and name not in status.allocatable]
        patch["allocatable"] |= dict.fromkeys(gone)
        shown = self.node.status.capacity if self.node is not None else {}
        patch["capacity"] |= dict.fromkeys(name for name in shown if name in SPARE and name not in status.capacity)
        patch["addresses"] = [{"$patch": "replace"}, *patch["addresses"]]
        written = await self._client.patch(
            Node, self._config.name, "", {"status": patch}, content_type=STRATEGIC_PATCH, subresource="status"
        )
        self._remember(status, written)
        return written

    def _remember(self, status: NodeStatus, answer: Node) -> None:
        self._reported, self._reported_at = status, self._clock.monotonic()
        self._answered = answer.status
        self._say(node_events.of_status(self._config.name, self._said, status))
        self._said = status

    def _say(self, events: Iterable[NodeEvent]) -> None:
        for event in events:
            self._tell(event.type, event.reason, event.message)

    async def _status(self) -> NodeStatus:
        version, images, health, recursive = await self._ask_runtime()
        previous: dict[str, NodeCondition] = {
            condition.type: condition for condition in (self._reported.conditions if self._reported else ())
        }
        return node_status(
            self._config,
            gates=self._gates,
            version=version,
            images=images,
            health=health,
            now=format_time(self._clock.now()),
            previous=previous,
            extended=extended(self.node),
            lent=self.lent,
            recursive_read_only=recursive,
        )

    async def _ask_runtime(self) -> tuple[Version | None, tuple[Image, ...], Health, bool]:
        """Its version, images and health, and whether its read-only mounts can be recursive."""
        try:
            version, images = await self._runtime.version(), await self._runtime.list_images()
            status = await self._runtime.status()
        except CRIError as error:
            return None, (), self._health(f"container runtime is down: {error}"), False
        if status.runtime_ready:
            problem = self._network.problem
            text = f"container runtime network not ready: {problem}" if problem else ""
            return version, images, self._health(text), status.recursive_read_only
        texts = [f"{condition.reason}: {condition.message}" for condition in status.conditions if not condition.status]
        health = self._health(f"container runtime is not ready: {'; '.join(texts)}")
        return version, images, health, status.recursive_read_only

    def _health(self, runtime: str = "") -> Health:
        return Health(
            runtime=runtime,
            pressure=self._pressure.conditions,
            disk=self._writer.problem,
            shutting_down=self.shutting_down,
        )

    async def _assign(self) -> None:
        """Pods have addresses of the node's range, once it has one."""
        if await self._network.assign(self.node.spec.pod_cidr if self.node is not None else ""):
            self.changed()

    async def _renew(self) -> None:
        now = format_micro(self._clock.now())
        path = resource_of(Lease).info.path(LEASE_NAMESPACE, self._config.name)
        patch = codec.encode({"spec": {"renewTime": now, "holderIdentity": self._holder}})
        try:  # the answer is not read
            await self._client.request("PATCH", path, patch, content_type=STRATEGIC_PATCH)
        except ApiError as error:
            if error.code != _NOT_FOUND:
                raise
            await self._client.create(self._lease(now))

    def _lease(self, now: str) -> Lease:
        uid = self.node.metadata.uid if self.node is not None else ""
        owner = OwnerReference(api_version="v1", kind="Node", name=self._config.name, uid=uid)
        spec = LeaseSpec(holder_identity=self._holder, lease_duration_seconds=LEASE_SECONDS, renew_time=now)
        meta = ObjectMeta(name=self._config.name, namespace=LEASE_NAMESPACE, owner_references=(owner,))
        return Lease(metadata=meta, spec=spec)

    async def _every(self, act: Callable[[], Awaitable[None]], what: str, sooner: asyncio.Event) -> None:
        while True:
            sooner.clear()
            await self._try(act, what)
            timer = self._clock.call_later(RENEW_SECONDS, sooner.set)
            try:
                await sooner.wait()
            finally:
                timer.cancel()

    async def _try(self, act: Callable[[], Awaitable[None]], what: str) -> None:
        try:
            await act()
        except (ApiError, ConnectionError) as error:
            log.warning("cannot %s node=%s error=%s", what, self._config.name, error)


def _lacking(ours: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    marks = {name: text for name, text in ours.items() if name == SIMULATED and theirs.get(name) != text}
    return {name: text for name, text in ours.items() if name not in theirs} | marks


def _version(node: Node) -> int:
    return int(node.metadata.resource_version or 0)


def _part(status: NodeStatus, ours: NodeStatus) -> NodeStatus:
    """What of a status `ours` speaks of, without heartbeats: others may add conditions and resources."""
    kinds = {condition.type for condition in ours.conditions}
    mine = tuple(condition for condition in status.conditions if condition.type in kinds)
    capacity = {name: amount for name, amount in status.capacity.items() if name in ours.capacity}
    allocatable = {name: amount for name, amount in status.allocatable.items() if name in ours.allocatable}
    return _without_heartbeats(replace(status, conditions=mine, capacity=capacity, allocatable=allocatable))


def _without_heartbeats(status: NodeStatus) -> NodeStatus:
    """The status without its heartbeats."""
    still = tuple(replace(condition, last_heartbeat_time=None) for condition in status.conditions)
    return replace(status, conditions=still)
