"""Controllers or scheduler in a process of its own: reaches the API server with a kubeconfig, works while it leads.

Its server (HTTPS, loopback unless told otherwise) tells anybody whether it is well, and its metrics to who may read
them. Losing the Lease ends the process, as upstream's: what starts it again starts from nothing.
"""

import asyncio
import os
import secrets
import signal
import socket
import ssl
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec

from podfit import __version__
from podfit.api.authorization import NonResourceAttributes
from podfit.client.accounts import AccountTokens, AsAccount
from podfit.client.delegated import DelegatedAccess
from podfit.client.election import Election, LostLease, Pace
from podfit.client.kubeconfig import Access, load
from podfit.client.rest import Client
from podfit.client.transport import Https
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.net.authority import Authority
from podfit.net.client_certificates import Trust
from podfit.net.http_client import HttpsClient
from podfit.net.http_server import HttpsServer
from podfit.net.metrics import CONTENT_TYPE, Metrics
from podfit.net.system import SystemClock
from podfit.net.tls import client_context, server_context
from podfit.net.wire import Identity, Request, Response
from podfit.process.errors import MachineError
from podfit.process.foreground import on_signals
from podfit.process.identities import account_of, agent
from podfit.process.listening import listen

Announce = Callable[[str], None]
ClientOf = Callable[[Identity], Client]
Loops = Callable[[ClientOf, Metrics], Iterator[Coroutine[Any, Any, None]]]
HEALTH = ("/healthz", "/livez", "/readyz")


class ControlOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`lease` names the Lease in kube-system; without `elect` there is none."""

    name: str
    kubeconfig: Path
    lease: str
    port: int
    address: str = "127.0.0.1"
    elect: bool = True
    pace: Pace = Pace()


class Clients:
    """One of the process itself, and for each service account one that shows its token."""

    def __init__(self, access: Access, clock: Clock, user: str) -> None:
        self.own = access.client(user_agent=user)
        self._tokens = AccountTokens(self.own, clock)
        nameless = client_context(authorities=access.authorities, verify=access.verify)
        self._shared = Https(HttpsClient(access.server, nameless, reach=access.reach))

    def of(self, identity: Identity) -> Client:
        name = account_of(identity)
        if not name:
            return self.own
        return Client(AsAccount(self._shared, self._tokens, name), user_agent=agent(identity))

    async def close(self) -> None:
        await self._shared.close()
        await self.own.close()


class ControlServer:
    """/healthz, /livez and /readyz for anybody, /metrics for who may get that path."""

    def __init__(self, access: DelegatedAccess, metrics: Metrics) -> None:
        self._access, self._metrics = access, metrics

    async def __call__(self, request: Request) -> Response:
        if request.path in HEALTH:
            return _text(200, "ok")
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


async def run_control(options: ControlOptions, loops: Loops, *, announce: Announce, clock: Clock) -> None:
    """Until SIGINT or SIGTERM. Raises ClusterError, and what breaks one of the loops."""
    stop: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()
    access, metrics = load([options.kubeconfig]), Metrics()
    async with AsyncExitStack() as closing:
        clients = Clients(access, clock, f"podfit-{options.name}/{__version__}")
        closing.push_async_callback(clients.close)
        identity = f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}"
        election = Election(clients.own, clock, name=options.lease, identity=identity, pace=options.pace)

        async def work() -> None:
            announce(f"  leads     as {identity}" if options.elect else "  works     without a lease")
            async with asyncio.TaskGroup() as group:
                for loop in loops(clients.of, metrics):
                    group.create_task(_endless(loop))

        server = ControlServer(DelegatedAccess(clients.own, clock), metrics)
        https = HttpsServer(server, _self_signed(options.address), clients=Trust(access.authorities or b""))
        closing.push_async_callback(https.close)
        port = await listen(https, (options.address,), options.port, f"podfit {options.name} --secure-port 0")
        announce(f"podfit {__version__}: {options.name}")
        announce(f"  api       {access.server}")
        announce(f"  serves    https://{options.address}:{port}")
        with on_signals(lambda number: None if stop.done() else stop.set_result(number)):
            working = asyncio.ensure_future(election.lead(work) if options.elect else work())
            try:
                await asyncio.wait((working, stop), return_when=asyncio.FIRST_COMPLETED)
            finally:
                ended = working.done()
                working.cancel()
                await asyncio.gather(working, return_exceptions=True)
        if ended:
            try:
                working.result()
            except LostLease as error:
                raise MachineError(f"no longer the leader: {error}", fix=("start it again",)) from error


async def _endless(loop: Coroutine[Any, Any, None]) -> None:
    await loop
    raise RuntimeError("a control loop ended by itself")


def _self_signed(address: str) -> ssl.SSLContext:
    """For a server that only its machine's own tools reach; the key is on no disk when this returns."""
    with tempfile.TemporaryDirectory() as directory:
        authority = Authority.load(Path(directory), clock=SystemClock(), name="podfit-self-signed")
        return server_context(authority.server("server", hosts=("localhost", address)))


def _text(status: int, text: str) -> Response:
    return Response(status, {"content-type": "text/plain; charset=utf-8"}, text.encode())
