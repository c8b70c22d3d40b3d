"""The name server of `podfit up` and of `podfit dns`."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

import msgspec

from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import plainly
from podfit.core.randomness import Random
from podfit.decide.dns.own import NUMBER, DnsPlace
from podfit.decide.dns.zone import Zone
from podfit.decide.pod.resolver import DOMAIN
from podfit.dns.forwarder import PORT, Forwarder
from podfit.dns.host_resolvers import RESOLV_CONF, HostResolvers
from podfit.dns.metrics import DnsMetrics
from podfit.dns.names import ClusterNames
from podfit.dns.own_service import OwnService
from podfit.dns.server import DnsServer, bound
from podfit.net.addresses import interface_addresses
from podfit.net.metrics import Metrics
from podfit.net.supervisor import Supervisor
from podfit.process.errors import MachineError
from podfit.process.network_options import DnsOptions

log = logging.getLogger(__name__)

LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))


class DnsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`addresses` to answer at, at least one; `domain` is the cluster's. With `publish` the Service `kube-dns` leads to
    the first of them, on `node`. A `port` that is taken is an error unless `any_port`.
    """

    addresses: tuple[str, ...]
    port: int
    domain: str
    node: str
    publish: bool
    any_port: bool = False


class DnsNode:
    """`run` until cancelled. `serving` is set when it answers; `others` then says why no Service leads here."""

    def __init__(
        self,
        client: Client,
        options: DnsOptions,
        settings: DnsSettings,
        *,
        clock: Clock,
        random: Random,
        metrics: Metrics,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`tell` is told where it answers, once it does."""
        self._client, self._settings, self._clock = client, settings, clock
        counts = DnsMetrics()
        zone = Zone(settings.domain or DOMAIN, serial=int(clock.now().timestamp()))
        self.names = ClusterNames(client, zone, clock)
        own = settings.addresses if settings.port == PORT else ()
        resolvers = HostResolvers(clock, options.resolv_conf or RESOLV_CONF, own)
        forwarder = Forwarder(resolvers, clock, random, counts)
        self.server = DnsServer(zone, forwarder, may_ask(options.networks), clock, counts)
        counts.declare(
            metrics,
            entries=lambda: forwarder.cache.entries,
            names=lambda: zone.names,
            waiting=lambda: forwarder.waiting,
        )
        self._own: OwnService | None = None
        self.port = 0
        self.serving = asyncio.Event()
        self._tell = tell

    @property
    def healthy(self) -> bool:
        return self.serving.is_set()

    @property
    def others(self) -> str:
        return self._own.others if self._own is not None else ""

    def line(self) -> str:
        """Where it answers, for people."""
        if self.others:
            return f"  note      dns: {self.others}"
        settings = self._settings
        return f"  dns       {settings.domain}, at {', '.join(settings.addresses)} port {self.port}"

    async def run(self) -> None:
        """Raises MachineError."""
        running = Supervisor("name server")
        running.watch(self.server.forwarder.supervisor)
        running.run(self.names.run(), name="names")
        begin = running.begin(self._begin(running), name="listening")
        try:
            await running.failure()
        finally:
            begin.cancel()
            await running.stop()
            await self.server.close()

    async def _begin(self, running: Supervisor) -> None:
        """Nobody is answered before the names are known: one that is not there yet would not exist."""
        await self.names.ready.wait()
        self.port = await self._listen()
        if self._settings.publish:
            self._own = OwnService(self._client, self.names, self._place(), self._clock)
            running.run(self._own.run(), name="Service kube-dns")
            await self._own.settled.wait()
        self.serving.set()
        self._tell(self.line())

    async def _listen(self) -> int:
        settings = self._settings
        port = settings.port
        for address in settings.addresses:
            try:
                port = await self.server.listen(address, port)
            except OSError as error:
                if not settings.any_port:
                    raise _taken(address, port, error) from error
                log.warning("another port is taken for names address=%s error=%s", address, plainly(error))
                port = await self.server.listen(address, 0)
        return port

    def _place(self) -> DnsPlace:
        """The tenth address of Services. Raises MachineError."""
        first = self.names.services.get("kubernetes", "default")
        if first is None:
            raise MachineError("there is no Service kubernetes, whose address tells that of kube-dns")
        settings = self._settings
        service = str(ip_address(first.spec.cluster_ip) + NUMBER)
        return DnsPlace(service=service, address=settings.addresses[0], port=self.port, node=settings.node)


def check_free(settings: DnsSettings) -> None:
    """Before anything is asked of the API server. Raises MachineError where it cannot answer."""
    for address in settings.addresses:
        try:
            for sock in bound(address, settings.port):
                sock.close()
        except OSError as error:
            raise _taken(address, settings.port, error) from error


def _taken(address: str, port: int, error: OSError) -> MachineError:
    fix = ("take another port:  --dns-port 5353",)
    return MachineError(f"no names at {address} port {port}: {plainly(error)}", fix=fix)


def may_ask(networks: Iterable[str]) -> list[IPv4Network | IPv6Network]:
    """These, and this machine by its loopback and by its own addresses."""
    own = (ip_network(address) for address in interface_addresses())
    return [*LOOPBACK, *own, *(ip_network(network) for network in networks)]
