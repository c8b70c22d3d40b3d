"""`Proxier`: keeps the table of a node as Services and their endpoints are.

    informers ─▶ Services that have changed ─▶ decide.services ─▶ difference ─▶ nft, one transaction ─▶ conntrack

The table is sent whole at first, after a transaction that failed, and when somebody has removed it; what changes while
a transaction is under way goes with the next one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Service
from podfit.api.discovery.v1.types import SERVICE_NAME_LABEL, EndpointSlice
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.decide.services.backends import ProxyPlace, ServiceBackends, service_backends, stale_flows
from podfit.decide.services.rules import Parts, host_port_rules, service_rules
from podfit.decide.services.ruleset import Frame, difference, merged, whole
from podfit.net import nft
from podfit.net.metrics import Metrics
from podfit.net.supervisor import Supervisor
from podfit.proxy.conntrack import end_flows

if TYPE_CHECKING:
    from prometheus_client import Counter, Gauge, Histogram

log = logging.getLogger(__name__)

Key = tuple[str, str]
BY_SERVICE = "service"
RETRY_SECONDS = 1.0
LOOK_SECONDS = 30.0
"""How often the table is looked for: somebody may have removed it with all others."""
WELL_SECONDS = 60.0
"""Changes that have waited for longer make the proxy unwell."""
DURATIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384)


class ProxyMetrics:
    """Under kube-proxy's names."""

    def __init__(self, metrics: Metrics) -> None:
        def took(name: str, what: str) -> "Histogram":
            return metrics.histogram(f"kubeproxy_{name}_duration_seconds", what, buckets=DURATIONS)

        def count(name: str, what: str) -> "Counter":
            return metrics.counter(f"kubeproxy_sync_proxy_rules_{name}_total", what)

        def moment(name: str, what: str) -> "Gauge":
            return metrics.gauge(f"kubeproxy_sync_proxy_rules_{name}_timestamp_seconds", what)

        self.sync = took("sync_proxy_rules", "SyncProxyRules latency in seconds")
        self.full = took("sync_full_proxy_rules", "Latency of sending the whole table in seconds")
        self.partial = took("sync_partial_proxy_rules", "Latency of sending what changed in seconds")
        self.programming = took("network_programming", "From a change to its rules in seconds")
        self.failures = count("nftables_sync_failures", "Cumulative nftables sync failures")
        self.services = count("service_changes", "Cumulative service changes")
        self.endpoints = count("endpoint_changes", "Cumulative endpoint changes")
        self.queued = moment("last_queued", "When a sync of rules was queued last")
        self.last = moment("last", "When rules were synced last")


class Sources(msgspec.Struct, frozen=True):
    """Clients: `services` reads Services, EndpointSlices and the node, `pods` the node's pods."""

    services: Client
    pods: Client


class Proxier:
    """`node` is the node's name; `cluster` the range of all pods, by default the node's own. `table` and `comment` are
    of the table. NodePorts answer on this machine and for pods, elsewhere at `node_port_addresses` only.
    """

    def __init__(
        self,
        sources: Sources,
        *,
        node: str,
        table: str,
        comment: str,
        clock: Clock,
        metrics: Metrics,
        cluster: str = "",
        node_port_addresses: tuple[str, ...] = (),
        apply: Callable[[str], Awaitable[None]] = nft.apply,
    ) -> None:
        self._node, self._table, self._comment, self._cluster = node, table, comment, cluster
        self._addresses, self._clock = node_port_addresses, clock
        self.metrics = ProxyMetrics(metrics)
        self._apply = apply
        read, own = sources.services, f"spec.nodeName={node}"
        self._nodes = Informer(read, Node, clock=clock, fields=f"metadata.name={node}")
        self._services = Informer(read, Service, clock=clock)
        indexes = {BY_SERVICE: of_service}
        self._slices = Informer(read, EndpointSlice, clock=clock, indexes=indexes)
        self._pods = Informer(sources.pods, Pod, clock=clock, fields=own)
        self._news = asyncio.Event()
        self._changed: dict[Key, None] = {}
        self._since: float | None = None
        self._frame: Frame | None = None
        self._backends: dict[str, ServiceBackends] = {}
        self._parts: dict[str, Parts] = {}
        self._host_ports = Parts()
        self.last_sync = 0.0
        self.synced = asyncio.Event()
        self._follow()

    def _follow(self) -> None:
        def service(found: Service) -> None:
            self.metrics.services.inc()
            self._touch((found.metadata.namespace, found.metadata.name))

        def endpoints(found: EndpointSlice) -> None:
            self.metrics.endpoints.inc()
            for key in of_service(found):
                self._touch(key)

        def other(_: object) -> None:
            self._touch(None)

        def pod(old: Pod, new: Pod) -> None:
            if host_port_rules((old,)) != host_port_rules((new,)):
                self._touch(None)

        self._services.add_handler(add=service, update=lambda _, new: service(new), delete=service)
        self._slices.add_handler(add=endpoints, update=lambda _, new: endpoints(new), delete=endpoints)
        self._pods.add_handler(add=other, update=pod, delete=other)
        self._nodes.add_handler(add=other, update=lambda _, new: other(new))

    def _touch(self, key: Key | None) -> None:
        if key is not None:
            self._changed[key] = None
        if self._since is None:
            self._since = self._clock.monotonic()
            self.metrics.queued.set(self._clock.now().timestamp())
        self._news.set()

    @property
    def healthy(self) -> bool:
        """Whether what has changed is in the kernel, or has been waited for a short time only."""
        return self._since is None or self._clock.monotonic() - self._since < WELL_SECONDS

    async def run(self) -> None:
        """Until cancelled; the table stays, so that connections go on while another proxy starts."""
        following = Supervisor("proxy")
        informers = (self._nodes, self._services, self._slices, self._pods)
        for informer in informers:
            following.run(informer.run())
        following.run(self._keep())
        try:
            await following.failure()
        finally:
            await following.stop()

    async def _keep(self) -> None:
        for informer in (self._nodes, self._services, self._slices):  # without pods only their own ports are missing
            await informer.synced.wait()
        while True:
            timer = self._clock.call_later(LOOK_SECONDS, self._news.set)
            try:
                await self._news.wait()
            finally:
                timer.cancel()
            self._news.clear()
            try:
                await self._sync()
            except nft.NftFailed as error:
                self._frame = None
                self.metrics.failures.inc()
                log.warning("rules not sent, trying again whole error=%s", error)
                await self._clock.sleep(RETRY_SECONDS)
                self._news.set()

    async def _sync(self) -> None:
        """Raises NftFailed."""
        began, since = self._clock.monotonic(), self._since
        frame = self._placed()
        if frame is None:
            return
        idle = not self._changed and since is None and frame == self._frame
        if idle and self._table in await nft.tables():
            return
        wanted, self._since = list(self._changed), None
        self._changed.clear()
        full = frame != self._frame or idle
        before = dict(self._backends)
        text = self._whole(frame) if full else self._partial(frame, wanted)
        try:
            if text:
                await self._apply(text)
        except nft.NftFailed:
            self._since = since
            raise
        self._frame = frame
        await end_flows(stale_flows(before, self._backends))
        took, now = self._clock.monotonic() - began, self._clock.now().timestamp()
        self.metrics.sync.observe(took)
        (self.metrics.full if full else self.metrics.partial).observe(took)
        if since is not None:
            self.metrics.programming.observe(self._clock.monotonic() - since)
        self.metrics.last.set(now)
        self.last_sync = now
        self.synced.set()

    def _placed(self) -> Frame | None:
        """None until the node is known."""
        node = self._nodes.get(self._node)
        if node is None:
            return None
        address = next((known.address for known in node.status.addresses if known.type == "InternalIP"), "")
        pods = node.spec.pod_cidr if ":" not in node.spec.pod_cidr else ""
        place = ProxyPlace(self._node, address, self._cluster or pods, pods)
        return Frame(self._table, self._comment, place, self._addresses)

    def _whole(self, frame: Frame) -> str:
        self._backends, self._parts = {}, {}
        for service in self._services.list():
            self._judge(frame, (service.metadata.namespace, service.metadata.name))
        self._host_ports = host_port_rules(self._pods.list())
        return whole(frame, (*self._parts.values(), self._host_ports))

    def _partial(self, frame: Frame, wanted: Iterable[Key]) -> str:
        before = [self._host_ports]
        after = [host_port_rules(self._pods.list())]
        for key in wanted:
            name = "/".join(key)
            before.append(self._parts.get(name, Parts()))
            self._judge(frame, key)
            after.append(self._parts.get(name, Parts()))
        self._host_ports = after[0]
        return difference(self._table, merged(before), merged(after))

    def _judge(self, frame: Frame, key: Key) -> None:
        name, service = "/".join(key), self._services.get(key[1], key[0])
        slices = self._slices.by_index(BY_SERVICE, key)
        backends = service_backends(service, slices, frame.place) if service is not None else None
        if backends is None:
            self._backends.pop(name, None)
            self._parts.pop(name, None)
        else:
            self._backends[name] = backends
            self._parts[name] = service_rules(backends)


def of_service(found: EndpointSlice) -> tuple[Key, ...]:
    name = found.metadata.labels.get(SERVICE_NAME_LABEL)
    return ((found.metadata.namespace, name),) if name else ()
