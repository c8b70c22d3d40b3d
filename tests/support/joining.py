"""An API server with the controller of certificates, and nodes that join it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from podfit.api.core.v1.nodes.types import Node
from podfit.api.meta.codec import convert
from podfit.client.informers import Informers
from podfit.client.rest import STRATEGIC_PATCH, Client
from podfit.controllers.certificates import CertificateController, Signing
from podfit.net.authority import Authority
from podfit.net.reachability import Unreachable
from podfit.net.wire import Identity
from podfit.process.control.bootstrap import create_token
from podfit.process.identities import MANAGER, controller
from support.access import send
from support.background import beside
from support.clock import FakeClock
from support.server import Server, running_server


@asynccontextmanager
async def cluster(tmp_path: Path, clock: FakeClock, *, told: asyncio.Event | None = None) -> AsyncIterator[Server]:
    """An API server with the controller of certificates, each as itself. Its names are told once `told` is set."""
    async with running_server(tmp_path, clock=clock) as server:
        await server.api.publish("https://192.0.2.1:6443")
        authority = Authority.load(tmp_path / "pki", clock=clock)

        async def served() -> frozenset[str]:
            if told is not None and not told.is_set():
                raise Unreachable("https://api.example.com: nobody there")
            return authority.served()

        informers = Informers(server.as_identity(Identity(MANAGER)), clock)
        approver = CertificateController(
            server.as_identity(controller("certificate-controller")),
            informers=informers,
            clock=clock,
            signing=Signing(authority.ends, authority.sign, served),
        )
        async with beside(approver.run(), informers.run()):
            yield server


async def register(client: Client, name: str, address: str, port: int = 10250) -> None:
    await client.create(convert({"metadata": {"name": name}}, Node))
    status = {
        "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    await client.patch(Node, name, "", {"status": status}, content_type=STRATEGIC_PATCH, subresource="status")


async def bootstrapping(server: Server, clock: FakeClock, *, seconds: float = 3600) -> Identity:
    """Who the token's bearer is to the server."""
    token = await create_token(server.client, clock, seconds=seconds, description="a test")
    code, review = await send(server, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})
    assert code == 201
    user = review["status"]["user"]
    return Identity(user["username"], tuple(user["groups"]))
