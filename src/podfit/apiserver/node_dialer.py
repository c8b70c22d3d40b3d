"""Dials kubelets: HTTPS at the address of their Node, with the API server's client certificate.

The kubelet has to show a certificate for that address from the cluster's authority. One that it has asked for and not
got yet is why there is no connection, so the error says that. Loopback and link-local addresses are not dialled: a node
could have the API server's own neighbours asked in its name.
"""

import asyncio
import ssl
from functools import partial

import msgspec
from msgspec.structs import replace

from podfit.api.certificates.v1.types import CertificateSigningRequest
from podfit.api.core.v1.nodes.types import Node
from podfit.apiserver.context import Context
from podfit.apiserver.extensions.backends import Trusted, joined, network_text, tls_of
from podfit.apiserver.housekeeping.extension_authentication import ProxyCertificate
from podfit.core.errors import ApiError
from podfit.decide.certificates import NODE, NODE_SERVING, is_undecided
from podfit.decide.node.addresses import is_reachable
from podfit.net.http_client import HttpsClient
from podfit.net.raw_streams import dial, join
from podfit.net.reachability import READ_SECONDS
from podfit.net.supervisor import Supervisor
from podfit.net.websocket import is_websocket
from podfit.net.wire import Duplex, Handler, Request, Response

PREFERRED = ("InternalIP", "ExternalIP")
MOST_CLIENTS = 1024
DEAD_SECONDS = 10.0
"""A node that acknowledges nothing for so long is cut off: who waits for its logs hears of it."""
_TRUE = ("1", "true", "True", "t")


class _Connected(msgspec.Struct, frozen=True):
    server: str
    client: HttpsClient


class NodeDialer:
    """A `NodeConnection` for every node. `bundle` (PEM) is who signs the serving certificates of nodes."""

    def __init__(self, context: Context, proof: ProxyCertificate, bundle: bytes) -> None:
        self._context = context
        self._tls = tls_of(Trusted(bundle), proof)
        self._clients: dict[str, _Connected] = {}
        self._closing = Supervisor("connections to nodes")
        context.supervisor.watch(self._closing)

    def __call__(self, name: str) -> Handler:
        return partial(self._ask, name)

    async def close(self) -> None:
        clients, self._clients = list(self._clients.values()), {}
        await asyncio.gather(*(client.client.close() for client in clients), self._closing.finish())

    async def _ask(self, name: str, request: Request) -> Response:
        """Raises ApiError 503 with the reason when the node does not answer."""
        node = await self._context.find(Node, name)
        if node is None:
            raise _unreachable(f'node "{name}" cannot be reached: there is no such node')
        server = _server(node)
        headers = {"accept-encoding": "identity"}
        if is_websocket(request):
            return await self._upgraded(name, server, request)
        follows = request.param("follow") in _TRUE
        try:
            return await self._client(name, server).send(
                replace(request, headers=headers, identity=None), read_timeout=None if follows else READ_SECONDS
            )
        except OSError as error:
            raise await self._no_connection(name, server, error) from error

    async def _no_connection(self, name: str, server: str, error: OSError) -> ApiError:
        waiting = await self._waiting(name)
        return _unreachable(f'node "{name}" cannot be reached at {server}: {_why(error, server)}{waiting}')

    async def _upgraded(self, name: str, server: str, request: Request) -> Response:
        """A connection of its own, whose bytes are carried both ways once the kubelet agrees."""
        try:
            answered = await dial(server, replace(request, identity=None), tls=self._tls)
        except OSError as error:
            raise await self._no_connection(name, server, error) from error
        if isinstance(answered, Response):
            return answered
        answer, dialled = answered

        async def carry(duplex: Duplex) -> None:
            try:
                await join(duplex, dialled)
            finally:
                dialled.close()

        return replace(answer, upgrade=carry)

    def _client(self, name: str, server: str) -> HttpsClient:
        known = self._clients.pop(name, None)
        if known is None or known.server != server:
            if known is not None:
                self._let_go(known)
            while len(self._clients) >= MOST_CLIENTS:
                self._let_go(self._clients.pop(next(iter(self._clients))))
            known = _Connected(server, HttpsClient(server, self._tls, trusted=False, dead_after=DEAD_SECONDS))
        self._clients[name] = known
        return known.client

    def _let_go(self, connected: _Connected) -> None:
        self._closing.begin(connected.client.close(), name=f"close connections to {connected.server}")

    async def _waiting(self, name: str) -> str:
        """That the kubelet's serving certificate waits for approval, when it does."""
        for request in await self._context.all(CertificateSigningRequest):
            spec = request.spec
            if spec.signer_name == NODE_SERVING and spec.username == NODE + name and is_undecided(request):
                return (
                    f"; its serving certificate is not approved yet, see:  kubectl describe csr {request.metadata.name}"
                )
        return ""


def _why(error: OSError, server: str) -> str:
    cause = getattr(error.__cause__, "os_error", None)
    cut = isinstance(cause, ssl.SSLError | ConnectionResetError | ConnectionAbortedError)
    if cut and not isinstance(cause, ssl.SSLCertVerificationError):
        return "the TLS handshake failed"
    return network_text(error, server)


def _server(node: Node) -> str:
    """Its URL. Raises ApiError 503 when it tells none."""
    name, port = node.metadata.name, node.status.daemon_endpoints.kubelet_endpoint.port
    if not port:
        raise _unreachable(f'node "{name}" cannot be reached: its kubelet listens nowhere')
    for kind in PREFERRED:
        for address in node.status.addresses:
            if address.type == kind:
                if not is_reachable(address.address):
                    raise _unreachable(f'node "{name}" cannot be reached: the address {address.address} is not allowed')
                return f"https://{joined((address.address, port))}"
    known = " ".join(f"{{{address.type} {address.address}}}" for address in node.status.addresses)
    raise _unreachable(f'node "{name}" cannot be reached: no preferred addresses found; known addresses: [{known}]')


def _unreachable(text: str) -> ApiError:
    return ApiError(503, "ServiceUnavailable", text)
