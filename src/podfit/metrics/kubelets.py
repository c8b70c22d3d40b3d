"""The HTTPS client for kubelets, at the address and port of their Node, with the metrics-server's credentials."""

import asyncio
import ssl
from collections.abc import Callable
from typing import Annotated

import msgspec

from podfit.api.core.v1.nodes.types import Node
from podfit.core.options import DURATION, PORT, Bound, Option
from podfit.net.http_client import HttpsClient
from podfit.net.reachability import Unreachable
from podfit.net.wire import Request, Response

PATH = "/metrics/resource"
LARGEST = 8 * 2**20
"""Bytes of one kubelet's answer; that of 500 pods is below 1 MiB."""
DEFAULT_TYPES = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")


class Reached(msgspec.Struct, frozen=True):
    """`types` of addresses in the order in which they are preferred. A node that tells a port is asked there when
    `told_port`, else at `port`. `timeout` in seconds.
    """

    types: Annotated[
        tuple[str, ...],
        Option(
            "Of a node's addresses the first of these is asked.",
            flag="kubelet-preferred-address-types",
            bound=Bound(f"of {', '.join(DEFAULT_TYPES)}", lambda types: types and not set(types) - set(DEFAULT_TYPES)),
        ),
    ] = DEFAULT_TYPES
    port: Annotated[int, Option("Of kubelets that tell none.", flag="kubelet-port", bound=PORT)] = 10250
    told_port: Annotated[bool, Option("Ask at the port that a node tells.", flag="kubelet-use-node-status-port")] = True
    timeout: Annotated[
        float,
        Option(
            "For the whole answer of a kubelet.",
            flag="kubelet-request-timeout",
            unit=DURATION,
            bound=Bound("at least 100ms", lambda seconds: seconds >= 0.1),
        ),
    ] = 10.0


class Kubelets:
    """`close` ends its connections; to a kubelet that does not answer there is none."""

    def __init__(self, tls: ssl.SSLContext, reached: Reached, token: Callable[[], str] | None) -> None:
        self._tls, self._reached, self._token = tls, reached, token
        self._clients: dict[str, HttpsClient] = {}

    async def ask(self, node: Node) -> str:
        """Its metrics. Raises ConnectionError, also when it takes too long."""
        server = server_of(node, self._reached)
        client = self._clients.get(server)
        if client is None:
            client = self._clients[server] = HttpsClient(server, self._tls, token=self._token, trusted=False)
        try:
            async with asyncio.timeout(self._reached.timeout):
                return await told(await client.send(Request("GET", PATH, headers={"accept-encoding": "identity"})))
        except TimeoutError:
            await self._drop(server)
            raise ConnectionError(f"{server} did not answer within {self._reached.timeout:g} s") from None
        except Unreachable:  # which names the server
            await self._drop(server)
            raise
        except OSError as error:
            await self._drop(server)
            raise ConnectionError(f"{server}: {error}") from error

    async def _drop(self, server: str) -> None:
        if (client := self._clients.pop(server, None)) is not None:
            await client.close()

    async def close(self) -> None:
        clients, self._clients = list(self._clients.values()), {}
        await asyncio.gather(*(client.close() for client in clients))


def server_of(node: Node, reached: Reached) -> str:
    """Its URL. Raises ConnectionError when it tells no address of these types."""
    addresses = {address.type: address.address for address in reversed(node.status.addresses)}
    host = next((addresses[kind] for kind in reached.types if addresses.get(kind)), "")
    if not host:
        raise ConnectionError(f"it tells no address of the types {', '.join(reached.types)}")
    port = (node.status.daemon_endpoints.kubelet_endpoint.port if reached.told_port else 0) or reached.port
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


async def told(response: Response) -> str:
    """The metrics in a kubelet's answer. Raises ConnectionError."""
    try:
        body = await response.read(LARGEST)
    except OSError as error:
        raise ConnectionError(str(error)) from error
    text = body.decode(errors="replace")
    if response.status != 200:
        raise ConnectionError(f"HTTP status {response.status}: {text[:200].strip()}")
    return text
