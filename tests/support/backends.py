"""Services with somebody behind them: small HTTPS servers of this process, and the objects that lead to them."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from podfit.net.addresses import outward
from podfit.net.authority import Authority
from podfit.net.http_server import HttpsServer
from podfit.net.system import SystemClock
from podfit.net.tls import server_context
from podfit.net.wire import Handler


def own_address() -> str:
    """Endpoints may not be on the loopback device."""
    address = outward(version=4)
    if not address:
        pytest.skip("this machine has no address but its loopback's")
    return address


@dataclass
class Listening:
    """A server at `host` and `port`; `bundle` (base64) signed its certificate."""

    host: str
    port: int
    bundle: str


@asynccontextmanager
async def listening(
    handler: Handler, directory: Path, *names: str, clients: bytes = b"", host: str = ""
) -> AsyncIterator[Listening]:
    """With a certificate for these names."""
    host = host or own_address()
    authority = Authority.load(directory, clock=SystemClock())
    context = server_context(authority.server("backend", hosts=names))
    server = HttpsServer(handler, context, clients=clients)
    port = await server.listen(host, 0)
    try:
        yield Listening(host, port, base64.b64encode(authority.certificate).decode())
    finally:
        await server.close(deadline=1.0)


def service(name: str, namespace: str = "default", **spec: Any) -> dict[str, Any]:
    wanted = {"ports": [{"name": "https", "port": 443, "targetPort": "https"}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace}, "spec": wanted}


def endpoint_slice(of: str, *addresses: str, port: int, namespace: str = "default") -> dict[str, Any]:
    """One that says who is behind the service."""
    labels = {"kubernetes.io/service-name": of}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "addressType": "IPv4",
        "metadata": {"name": f"{of}-1", "namespace": namespace, "labels": labels},
        "endpoints": [{"addresses": list(addresses)}],
        "ports": [{"name": "https", "port": port}],
    }


def endpoints(of: str, *addresses: str, port: int, namespace: str = "default") -> dict[str, Any]:
    subset = {"addresses": [{"ip": address} for address in addresses], "ports": [{"name": "https", "port": port}]}
    meta = {"name": of, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": [subset]}
