"""`podfit metrics-server`: metrics.k8s.io of any cluster, in a process of its own behind an APIService."""

import os
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import msgspec

from podfit import __version__
from podfit.api.metrics.v1beta1.types import GROUP, VERSION
from podfit.client.authorized_api import AggregatedApi, AuthorizedApi
from podfit.client.delegated import DelegatedAccess
from podfit.client.front_proxy import FrontProxyAccess, believed
from podfit.client.kubeconfig import Access, default_paths, load
from podfit.core.clock import Clock
from podfit.core.options import DURATION, PORT, Bound, Option, Part
from podfit.metrics.kubelets import Kubelets, Reached
from podfit.metrics.objects import register
from podfit.metrics.scraper import ScrapeSettings
from podfit.metrics.server import MetricsServer
from podfit.net.addresses import own_address
from podfit.net.http_server import HttpsServer
from podfit.net.metrics import Metrics
from podfit.net.supervisor import Supervisor
from podfit.net.tls import KeyPair, client_context, server_context
from podfit.net.wire import SMALL_BODY
from podfit.process.control.control_process import self_signed
from podfit.process.errors import UsageError
from podfit.process.foreground import Announce, start_or_stop
from podfit.process.listening import listen

LEAST_SECONDS = 10.0


class MetricsServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `podfit metrics-server`. Times in seconds."""

    kubeconfig: Annotated[Path, Option("How it reaches the API server.", usual="KUBECONFIG or ~/.kube/config")] = (
        msgspec.field(default_factory=lambda: default_paths(os.environ)[0])
    )
    interval: Annotated[
        float,
        Option(
            "From one round of questions to the next; 10s at least.",
            flag="metric-resolution",
            unit=DURATION,
            bound=Bound("at least 10s", lambda seconds: seconds >= LEAST_SECONDS),
        ),
    ] = 60.0
    insecure_kubelets: Annotated[
        bool, Option("Take any serving certificate from kubelets.", flag="kubelet-insecure-tls", negative=False)
    ] = False
    kubelet_authority: Annotated[
        Path | None,
        Option(
            "Who signed the kubelets' certificates.",
            flag="kubelet-certificate-authority",
            usual="the cluster's authority",
        ),
    ] = None
    reached: Annotated[Reached, Part()] = Reached()
    nodes: Annotated[str, Option("Only nodes with these labels.", flag="node-selector")] = ""
    register: Annotated[
        bool,
        Option("Make its APIService, service and roles, leading to this machine; as an administrator.", negative=False),
    ] = False
    advertise_address: Annotated[str, Option("By which the API server reaches it.", usual="this machine's own")] = ""
    address: Annotated[str, Option("Where it listens.", flag="bind-address")] = "0.0.0.0"
    port: Annotated[int, Option("Where it listens; 0 takes a free one.", flag="secure-port", bound=PORT)] = 4443
    tls: Annotated[KeyPair | None, Part()] = None

    @property
    def register_as(self) -> str:
        """The address by which the API server reaches it; empty where it makes no APIService. Raises UsageError."""
        if not self.register:
            return ""
        if found := self.advertise_address or own_address():
            return found
        raise UsageError("this machine has no address but loopback: name one with --advertise-address")


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
        register_as = options.register_as
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
        dead = "metric collection did not end within its time"
        alive, ready = (lambda: "" if server.alive else dead), (lambda: "" if server.ready else "no metrics to serve")
        health = {"/livez": alive, "/healthz": alive, "/readyz": ready}
        api = AggregatedApi(group=GROUP, version=VERSION, serve=server.api, health=health, metrics=self.metrics)
        door = AuthorizedApi(api, FrontProxyAccess(told, delegated), delegated)
        tls = server_context(options.tls) if options.tls is not None else self_signed(options.address)
        https = HttpsServer(door, tls, clients=told.everybody, body_limit=SMALL_BODY)
        self._closing.push_async_callback(https.close)
        port = await listen(https, (options.address,), options.port, "podfit metrics-server --secure-port 0")
        if register_as:
            await register(client, register_as, port)
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
        authorities=authorities, certificate=access.certificate, key=access.key, verify=not options.insecure_kubelets
    )


def _token(access: Access) -> Callable[[], str] | None:
    return access.read_token if access.token or access.token_file else None
