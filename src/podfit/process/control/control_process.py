"""Controllers, scheduler or recommender in a process of its own: works while it leads.

Its server (HTTPS, loopback unless told otherwise) tells anybody whether it is well, and its metrics to who may read
them. Losing the Lease ends the process, as upstream's: what starts it again starts from nothing.
"""

import os
import socket
import ssl
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec

from podfit import __version__
from podfit.api.authorization.v1.types import NonResourceAttributes
from podfit.client.accounts import AccountTokens, AsAccount
from podfit.client.delegated import DelegatedAccess
from podfit.client.election import Election, LostLease, NewerLease
from podfit.client.kubeconfig import Access, find, load
from podfit.client.rate_limit import Rate
from podfit.client.rest import Client
from podfit.client.transport import Https
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.net.authority import Authority
from podfit.net.http_client import HttpsClient
from podfit.net.http_server import HttpsServer
from podfit.net.metrics import CONTENT_TYPE, Metrics
from podfit.net.supervisor import Supervisor
from podfit.net.system import SystemClock
from podfit.net.tls import client_context, server_context
from podfit.net.wire import SMALL_BODY, Identity, Request, Response
from podfit.process.control.options import ControlOptions, ElectedOptions
from podfit.process.errors import MachineError
from podfit.process.foreground import Announce, start_or_stop
from podfit.process.identities import account_of, agent
from podfit.process.listening import listen

ClientOf = Callable[[Identity], Client]
Loops = Callable[[ClientOf, Metrics], Iterator[Coroutine[Any, Any, None]]]
HEALTH = ("/healthz", "/livez", "/readyz", "/health-check", "/health", "/ready")


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is: `name` is its verb, `lease` its Lease unless it was told another name, empty for none.

    `healthy` is asked for its health; `told` are annotations of the Lease about the process. `kubeconfig` is its own
    unless it was told another; without one it is the usual one, or in a pod its service account.
    """

    name: str
    lease: str = ""
    kubeconfig: Path | None = None
    healthy: Callable[[], bool] = lambda: True
    told: Mapping[str, str] = msgspec.field(default_factory=dict)


class Clients:
    """One of the process itself, and for each service account one that shows its token."""

    def __init__(self, access: Access, clock: Clock, user: str, rate: Rate | None) -> None:
        self.own = access.client(user_agent=user)
        self._rate, self._clock = rate, clock
        self._tokens = AccountTokens(self.own, clock)
        nameless = client_context(authorities=access.authorities, verify=access.verify)
        self._shared = Https(HttpsClient(access.server, nameless, reach=access.reach))

    def of(self, identity: Identity) -> Client:
        """Each asks at its own `rate`; the Lease is not held up by any of them."""
        name = account_of(identity)
        account = AsAccount(self._shared, self._tokens, name)
        client = Client(account, user_agent=agent(identity)) if name else self.own
        return client.limited(self._rate, self._clock) if self._rate is not None else client

    async def close(self) -> None:
        await self._shared.close()
        await self.own.close()


class ControlServer:
    """/healthz, /livez and /readyz for anybody, /metrics for who may get that path."""

    def __init__(self, access: DelegatedAccess, metrics: Metrics, healthy: Callable[[], bool]) -> None:
        self._access, self._metrics, self._healthy = access, metrics, healthy

    async def __call__(self, request: Request) -> Response:
        if request.path in HEALTH:
            return _text(200, "ok") if self._healthy() else _text(500, "it works no more, or too slowly\n")
        who = await self._access.identify(request)
        if who is None:
            return _text(401, "Unauthorized")
        try:
            may = await self._access.allowed(who, NonResourceAttributes(path=request.path, verb=request.method.lower()))
        except (ApiError, ConnectionError) as error:
            return _text(500, f"the API server does not say whether {who.user} may: {error}\n")
        if not may:
            return _text(403, f'forbidden: User "{who.user}" cannot {request.method.lower()} path "{request.path}"\n')
        if request.path == "/metrics" and request.method == "GET":
            return Response(200, {"content-type": CONTENT_TYPE}, self._metrics.exposition())
        return _text(404, "404 page not found\n")


class ControlProcess:
    """`start` makes one that serves and waits to lead, `stop` ends it; `failure` returns only if it breaks."""

    def __init__(self, role: Role, options: ControlOptions, loops: Loops, clock: Clock) -> None:
        self.role, self.options, self._loops, self._clock = role, options, loops, clock
        self.metrics = Metrics()
        self.leading = False
        self._supervisor = Supervisor(role.name)
        self._closing = AsyncExitStack()

    @classmethod
    async def start(
        cls, role: Role, options: ControlOptions, loops: Loops, *, announce: Announce, clock: Clock
    ) -> "ControlProcess":
        """Raises ClusterError, and then nothing runs."""
        process = cls(role, options, loops, clock)
        await start_or_stop(process._start(announce), process.stop)
        return process

    async def _start(self, announce: Announce) -> None:
        options, name = self.options, self.role.name
        access = reached(options.connection.kubeconfig or self.role.kubeconfig)
        user, rate = f"podfit-{name.replace(' ', '-')}/{__version__}", options.connection.rate
        clients = Clients(access, self._clock, user, rate)
        self._closing.push_async_callback(clients.close)
        server = ControlServer(DelegatedAccess(clients.own, self._clock), self.metrics, self.role.healthy)
        https = HttpsServer(
            server, self_signed(options.address), clients=access.authorities or b"", body_limit=SMALL_BODY
        )
        self._closing.push_async_callback(https.close)
        port = await listen(https, (options.address,), options.port, f"podfit {name} --secure-port 0")
        announce(f"podfit {__version__}: {name}")
        announce(f"  api       {access.server}")
        announce(f"  serves    https://{options.address}:{port}")
        self._supervisor.run(self._lead(clients, announce), name="leading")

    async def _lead(self, clients: Clients, announce: Announce) -> None:
        options = self.options
        election = options.election if isinstance(options, ElectedOptions) and options.election.elect else None
        identity = f"{socket.gethostname()}_{os.getpid()}_{clients.own.random.uuid()}"

        async def work() -> None:
            announce(f"  leads     as {identity}" if election else "  works     without a lease")
            working = Supervisor("control loops")
            try:
                for loop in self._loops(clients.of, self.metrics):
                    working.run(loop)
                await working.failure()
            finally:
                await working.stop()

        if election is None:
            return await work()
        lease = Election(
            clients.own,
            self._clock,
            name=election.name or self.role.lease,
            namespace=election.namespace,
            identity=identity,
            pace=election.pace,
            told=self.role.told,
        )
        try:
            await lease.lead(work)
        except LostLease as error:
            raise MachineError(f"no longer the leader: {error}", fix=("start it again",)) from error
        except NewerLease as error:
            raise MachineError(str(error), fix=("run that podfit, or a newer one",)) from error

    async def failure(self) -> None:
        """Waits; raises what broke a part of the process, or MachineError when the Lease is lost."""
        await self._supervisor.failure()

    async def stop(self, *, pods: bool = False) -> None:
        """Frees the Lease. There are no pods here."""
        await self._supervisor.stop()
        await self._closing.aclose()


def reached(kubeconfig: Path | None) -> Access:
    """What a kubeconfig says, by default the usual one or in a pod its service account. Raises KubeconfigError."""
    return load([kubeconfig]) if kubeconfig is not None else find(os.environ)


def self_signed(address: str) -> ssl.SSLContext:
    """For a server that only its machine's own tools reach; the key is on no disk when this returns."""
    with tempfile.TemporaryDirectory() as directory:
        authority = Authority.load(Path(directory), clock=SystemClock(), name="podfit-self-signed")
        return server_context(authority.server("server", hosts=("localhost", address)))


def _text(status: int, text: str) -> Response:
    return Response(status, {"content-type": "text/plain; charset=utf-8"}, text.encode())
