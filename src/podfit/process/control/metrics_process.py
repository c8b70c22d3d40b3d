"""`podfit metrics-server`: metrics.k8s.io of any cluster, in a process of its own behind an APIService."""

import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from podfit import __version__
from podfit.client.delegated import DelegatedAccess
from podfit.client.front_proxy import FrontProxyAccess, believed
from podfit.client.kubeconfig import Access, load
from podfit.core.clock import Clock
from podfit.metrics.authorized_handler import Outside
from podfit.metrics.kubelets import Kubelets, Reached
from podfit.metrics.objects import register
from podfit.metrics.scraper import ScrapeSettings
from podfit.metrics.server import MetricsServer
from podfit.net.http_server import HttpsServer
from podfit.net.metrics import Metrics
from podfit.net.supervisor import Supervisor
from podfit.net.tls import KeyPair, client_context, server_context
from podfit.net.wire import SMALL_BODY
from podfit.process.control.control_process import self_signed
from podfit.process.errors import UsageError
from podfit.process.foreground import Announce, start_or_stop
from podfit.process.listening import listen


class MetricsServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`register_as` is the address by which the API server reaches it, when it is to make its own APIService."""

    kubeconfig: Path
    port: int
    address: str
    interval: float = 60.0
    reached: Reached = Reached()
    verify_kubelets: bool = True
    kubelet_authority: Path | None = None
    nodes: str = ""
    tls: KeyPair | None = None
    register_as: str = ""


class MetricsServerProcess:
    """`start` makes one that serves, `stop` ends it; `failure` returns only if a part of it breaks."""

    def __init__(self, options: MetricsServerOptions, clock: Clock) -> None:
        self.options, self._clock = options, clock
        self.metrics = Metrics()
        self._supervisor = Supervisor("metrics server")
        self._closing = AsyncExitStack()

    @classmethod
    async def start(cls, options: MetricsServerOptions, *, announce: Announce, clock: Clock) -> "MetricsServerProcess":
        """Raises ClusterError, ApiError or ConnectionError, and then nothing runs."""
        process = cls(options, clock)
        await start_or_stop(process._start(announce), process.stop)
        return process

    async def _start(self, announce: Announce) -> None:
        options, access = self.options, load([self.options.kubeconfig])
        client = access.client(user_agent=f"podfit-metrics-server/{__version__}")
        self._closing.push_async_callback(client.close)
        kubelets = Kubelets(_tls(access, options), options.reached, _token(access))
        self._closing.push_async_callback(kubelets.close)
        server = MetricsServer(
            client,
            kubelets.ask,
            clock=self._clock,
            settings=ScrapeSettings(interval=options.interval),
            metrics=self.metrics,
            nodes=options.nodes,
        )
        told, delegated = await believed(client), DelegatedAccess(client, self._clock)
        door = Outside(server, FrontProxyAccess(told, delegated), delegated, self.metrics)
        tls = server_context(options.tls) if options.tls is not None else self_signed(options.address)
        https = HttpsServer(door, tls, clients=told.everybody, body_limit=SMALL_BODY)
        self._closing.push_async_callback(https.close)
        port = await listen(https, (options.address,), options.port, "podfit metrics-server --secure-port 0")
        if options.register_as:
            await register(client, options.register_as, port)
        self._supervisor.run(server.run(), name="metrics server")
        announce(f"podfit {__version__}: metrics-server")
        announce(f"  api       {access.server}")
        announce(f"  serves    https://{options.address}:{port}")

    async def failure(self) -> None:
        """Waits; raises what broke a part of the process."""
        await self._supervisor.failure()

    async def stop(self, *, pods: bool = False) -> None:
        """There are no pods here."""
        await self._supervisor.stop()
        await self._closing.aclose()


def _tls(access: Access, options: MetricsServerOptions) -> ssl.SSLContext:
    """To kubelets: signed by the authority that is named, else by the cluster's own."""
    if access.plugin is not None:
        raise UsageError("the kubeconfig signs in by a command, not for kubelets: name one with a certificate or token")
    named = options.kubelet_authority
    authorities = named.read_bytes() if named is not None else access.authorities
    return client_context(
        authorities=authorities, certificate=access.certificate, key=access.key, verify=options.verify_kubelets
    )


def _token(access: Access) -> Callable[[], str] | None:
    return access.read_token if access.token or access.token_file else None
