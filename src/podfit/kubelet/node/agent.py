"""Keeps the node object and its Lease alive.

    every 10 s    renew the Lease in kube-node-lease; look whether the status changed
    every minute  write the status, changed or not: its heartbeat
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from podfit.api import codec
from podfit.api.coordination import Lease, LeaseSpec
from podfit.api.core.nodes import Node, NodeCondition, NodeStatus
from podfit.api.meta import ObjectMeta, OwnerReference
from podfit.client.backoff import Backoff
from podfit.client.rest import STRATEGIC_PATCH, Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.features import FeatureGates
from podfit.core.times import format_micro, format_time
from podfit.kubelet.config import KubeletConfig
from podfit.kubelet.node.status import Health, node_annotations, node_labels, node_object, node_status
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.runtime.types import Image, Version

log = logging.getLogger(__name__)

LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
RENEW_SECONDS = 10.0
REPORT_SECONDS = 60.0
_EXISTS, _NOT_FOUND = 409, 404


class NodeAgent:
    def __init__(
        self, client: Client, runtime: Runtime, config: KubeletConfig, *, clock: Clock, gates: FeatureGates,
        pressure: Callable[[], tuple[str, ...]],
    ) -> None:
        self._client = client
        self._runtime = runtime
        self._config = config
        self._clock = clock
        self._gates = gates
        self._pressure = pressure
        self._look = asyncio.Event()
        self._reported: NodeStatus | None = None
        self._reported_at = 0.0
        self.node: Node | None = None
        """As the API last answered; None before registration."""
        self.shutting_down = False

    async def register(self) -> Node:
        """Create the node object, or take over the one that is there. Tries until the API accepts it."""
        backoff = Backoff(0.2, 7.0)
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
            group.create_task(self._every(self._renew, "renew lease", asyncio.Event()))
            group.create_task(self._every(self._report, "report node status", self._look))

    async def shut_down(self) -> None:
        """Say that the node goes; it is not Ready any more."""
        self.shutting_down = True
        if self.node is not None:
            await self._try(self._report, "report that the node is shutting down")

    def reference(self) -> OwnerReference:
        """This node as an owner."""
        uid = self.node.metadata.uid if self.node is not None else ""
        return OwnerReference(api_version="v1", kind="Node", name=self._config.name, uid=uid, controller=True)

    def changed(self) -> None:
        """Something that the status tells is not what it was: report it now."""
        self._look.set()

    async def _register(self) -> Node:
        status = await self._status()
        try:
            created = await self._client.create(node_object(self._config, status))
        except ApiError as error:
            if error.code != _EXISTS:
                raise
            metadata = {"labels": node_labels(self._config), "annotations": node_annotations(self._config)}
            known = await self._client.patch(Node, self._config.name, "", {"metadata": metadata})
            self._reported = known.status
            return await self._write(await self._status())
        if created.status.conditions:
            self._remember(created.status)
            return created
        return await self._write(status)

    async def _report(self) -> None:
        """Write the status if it differs from what was reported, or if it is time for a heartbeat."""
        status = await self._status()
        due = self._clock.monotonic() - self._reported_at >= REPORT_SECONDS
        if not due and self._reported is not None and _essence(status) == _essence(self._reported):
            return
        try:
            self.node = await self._write(status)
        except ApiError as error:
            if error.code != _NOT_FOUND:
                raise
            log.warning("the node object was deleted, registering again node=%s", self._config.name)
            self.node = await self._register()

    async def _write(self, status: NodeStatus) -> Node:
        patch: dict[str, Any] = codec.to_dict(status)
        patch["addresses"] = [{"$patch": "replace"}, *patch["addresses"]]
        written = await self._client.patch(
            Node, self._config.name, "", {"status": patch}, content_type=STRATEGIC_PATCH, subresource="status")
        self._remember(status)
        return written

    def _remember(self, status: NodeStatus) -> None:
        self._reported, self._reported_at = status, self._clock.monotonic()

    async def _status(self) -> NodeStatus:
        version, images, health = await self._ask_runtime()
        previous: dict[str, NodeCondition] = {
            each.type: each for each in (self._reported.conditions if self._reported else ())}
        return node_status(
            self._config, gates=self._gates, version=version, images=images, health=health,
            now=format_time(self._clock.now()), previous=previous)

    async def _ask_runtime(self) -> tuple[Version | None, tuple[Image, ...], Health]:
        try:
            version, images, status = await asyncio.gather(
                self._runtime.version(), self._runtime.list_images(), self._runtime.status())
        except CRIError as error:
            return None, (), self._health(f"container runtime is down: {error}")
        if status.runtime_ready:
            return version, images, self._health()
        texts = [f"{each.reason}: {each.message}" for each in status.conditions if not each.status]
        return version, images, self._health(f"container runtime is not ready: {'; '.join(texts)}")

    def _health(self, runtime: str = "") -> Health:
        return Health(runtime=runtime, pressure=self._pressure(), shutting_down=self.shutting_down)

    async def _renew(self) -> None:
        now = format_micro(self._clock.now())
        try:
            await self._client.patch(
                Lease, self._config.name, LEASE_NAMESPACE,
                {"spec": {"renewTime": now, "holderIdentity": self._config.name}})
        except ApiError as error:
            if error.code != _NOT_FOUND:
                raise
            await self._client.create(self._lease(now))

    def _lease(self, now: str) -> Lease:
        uid = self.node.metadata.uid if self.node is not None else ""
        owner = OwnerReference(api_version="v1", kind="Node", name=self._config.name, uid=uid)
        spec = LeaseSpec(holder_identity=self._config.name, lease_duration_seconds=LEASE_SECONDS, renew_time=now)
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


def _essence(status: NodeStatus) -> NodeStatus:
    """The status without its heartbeats."""
    still = tuple(replace(each, last_heartbeat_time=None) for each in status.conditions)
    return replace(status, conditions=still)
