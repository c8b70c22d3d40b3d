"""HTTPS clients for the services and URLs that webhooks and APIServices name.

The certificate has to be `NAME.NS.svc`'s, and the registration says who may have signed it. Each new connection asks
where the service is (`backend_addresses`), so those that are open stay with whom they lead to, and a backend that moved
is found by the next. Of several addresses the next is tried when one does not take the connection.
"""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from podfit.api.admissionregistration.v1.types import ServiceReference
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.services.types import Endpoints, Service
from podfit.api.discovery.v1.types import SERVICE_NAME_LABEL, EndpointSlice
from podfit.api.meta.validation.names import dns_label
from podfit.apiserver.context import Context
from podfit.apiserver.extensions.backend_addresses import Address, Behind, Reached, Unreached, absent, backends
from podfit.apiserver.housekeeping.extension_authentication import ProxyCertificate
from podfit.core.errors import ApiError
from podfit.net.http_client import HttpsClient
from podfit.net.tls import client_context
from podfit.net.wire import Request, Response
from podfit.store.protocol import StoreError

if TYPE_CHECKING:
    from podfit.net.http_client import Dial

DEFAULT_PORT = 443
MOST_TRIED = 8  # addresses for one connection
UNKNOWN_ISSUER = (18, 19, 20, 21)  # OpenSSL's numbers for a chain that ends nowhere


class Trusted(msgspec.Struct, frozen=True):
    """Who may have signed a backend's certificate (PEM; empty for the machine's own bundle), if anybody is asked."""

    bundle: bytes = b""
    verify: bool = True


class NotReached(ConnectionError):
    """There is no backend that a connection could be opened to."""


class Backends:
    """One pool of connections for each service and whom it is trusted by; `close` ends them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._clients: dict[tuple[str, Trusted, ProxyCertificate | None], HttpsClient] = {}
        self._dialled: dict[str, Address] = {}
        self._turn = 0

    async def find(self, reference: ServiceReference) -> Reached | Unreached:
        """Where the service is now."""
        number = reference.port or DEFAULT_PORT
        service = await self._context.find(Service, reference.name, reference.namespace)
        if service is None:
            return absent(reference.namespace, reference.name)
        by_service = await self._context.derived(EndpointSlice, reference.namespace, _by_service)
        endpoints = await self._context.find(Endpoints, reference.name, reference.namespace)
        behind = Behind(by_service.get(reference.name, ()), endpoints)
        found = backends(service, number, behind)
        if isinstance(found, Reached) or not service.spec.selector:
            return found
        pods = await self._context.all(Pod, reference.namespace)
        return backends(service, number, Behind(behind.slices, endpoints, pods))

    async def send(
        self,
        reference: ServiceReference,
        request: Request,
        trusted: Trusted,
        *,
        proof: ProxyCertificate | None = None,
        more: Sequence[tuple[str, str]] = (),
    ) -> Response:
        """Raises OSError: `NotReached`, or out of the connection."""
        client = await self._client(reference, trusted, proof)
        return await client.send(request, read_timeout=None, more=more)

    async def _client(
        self, reference: ServiceReference, trusted: Trusted, proof: ProxyCertificate | None
    ) -> "HttpsClient":
        server = server_of(reference)
        key = server, trusted, proof
        if key not in self._clients:
            if dns_label(reference.name) or dns_label(reference.namespace):  # it would be some other part of a URL
                raise NotReached(absent(reference.namespace, reference.name).error)
            made = await asyncio.to_thread(https_client, server, trusted, proof, partial(self._dial, reference))
            self._clients.setdefault(key, made)  # another request may have been first; what was made is not connected
        return self._clients[key]

    async def _dial(self, reference: ServiceReference) -> Sequence[Address]:
        try:
            found = await self.find(reference)
        except (StoreError, ApiError) as error:
            raise NotReached(str(error)) from error
        if isinstance(found, Unreached):
            raise NotReached(found.error)
        self._turn += 1  # the load is for all of them
        start = self._turn % len(found.addresses)
        tried = await _numeric((*found.addresses[start:], *found.addresses[:start])[:MOST_TRIED])
        self._dialled[server_of(reference)] = tried[-1]
        return tried

    def dialled(self, reference: ServiceReference) -> str:
        """The address that was tried last; empty when none was."""
        address = self._dialled.get(server_of(reference))
        return joined(address) if address is not None else ""

    async def close(self) -> None:
        clients, self._clients = list(self._clients.values()), {}
        await asyncio.gather(*(client.close() for client in clients))


def https_client(
    server: str, trusted: Trusted, proof: ProxyCertificate | None = None, dial: "Dial | None" = None
) -> "HttpsClient":
    """Not connected yet. For a thread: what the first one imports, and the machine's authorities, take 0.1 s of CPU."""

    return HttpsClient(server, tls_of(trusted, proof), dial=dial, trusted=False)


def server_of(reference: ServiceReference) -> str:
    return f"https://{reference.name}.{reference.namespace}.svc:{reference.port or DEFAULT_PORT}"


def joined(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def tls_of(trusted: Trusted, proof: ProxyCertificate | None = None) -> ssl.SSLContext:
    """Raises OSError for what is no bundle."""
    try:
        return client_context(
            authorities=trusted.bundle or None,
            verify=trusted.verify,
            certificate=proof.certificate if proof else None,
            key=proof.key if proof else None,
        )
    except (ssl.SSLError, UnicodeDecodeError, ValueError):
        raise OSError("unable to load root certificates: unable to parse bytes as PEM block") from None


def network_text(error: Exception, server: str, dialled: str = "") -> str:
    """Why there was no answer, in the words of Go's net and tls where there are any. `dialled` is the address where it
    is not the server's own.
    """
    cause = error.__cause__
    refused = getattr(cause, "os_error", None)
    if isinstance(refused, NotReached):
        return str(refused)
    if isinstance(refused, ConnectionRefusedError):
        return f"dial tcp {dialled or server.removeprefix('https://')}: connect: connection refused"
    doubt = getattr(cause, "certificate_error", None)
    if isinstance(doubt, ssl.SSLCertVerificationError):
        unknown = doubt.verify_code in UNKNOWN_ISSUER
        why = "certificate signed by unknown authority" if unknown else doubt.verify_message
        return f"tls: failed to verify certificate: x509: {why}"
    return str(error).removeprefix(f"{server}: ")


def _by_service(slices: list[EndpointSlice]) -> dict[str, list[EndpointSlice]]:
    found: dict[str, list[EndpointSlice]] = {}
    for endpoint_slice in slices:
        found.setdefault(endpoint_slice.metadata.labels.get(SERVICE_NAME_LABEL, ""), []).append(endpoint_slice)
    return found


async def _numeric(addresses: Sequence[Address]) -> list[Address]:
    """The backends with the addresses that names stand for. Raises OSError for a name that stands for none."""
    loop, found = asyncio.get_running_loop(), list[Address]()
    for host, port in addresses:
        for answer in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            found.append((str(answer[4][0]), int(answer[4][1])))
    return found
