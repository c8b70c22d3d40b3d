"""The API server asks kubelets over HTTPS: at the address that the Node tells, verified, as who it is."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podfit.apiserver import node_dialer
from podfit.apiserver.context import Context, unreached
from podfit.core.errors import ApiError
from podfit.core.features import FeatureGates
from podfit.net.authority import Authority
from podfit.net.http_server import HttpsServer
from podfit.net.system import SystemClock
from podfit.net.tls import KeyPair, server_context
from podfit.net.websocket import WebSocket, shake_hands
from podfit.net.wire import Duplex, Request, Response
from podfit.net.x509 import certificate_identity
from podfit.process.control.apiserver import NodeConnections
from support.access import send
from support.eventually import PATIENCE
from support.requests import REQUESTS, body, request
from support.server import Server, running_server
from support.websocket import HANDSHAKE, Pipe, frame, received

HOST = "127.0.0.1"  # every machine has it; the one rule that forbids it is set aside where it is not the subject


@pytest.fixture
def loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_dialer, "is_reachable", lambda _: True)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with running_server(tmp_path, clock=SystemClock()) as made:
        yield made


@asynccontextmanager
async def connections(server: Server, authority: Authority) -> AsyncIterator[NodeConnections]:
    found = NodeConnections(Context(server.context.store, SystemClock(), FeatureGates(), unreached), authority)
    try:
        yield found
    finally:
        await found.close()


@asynccontextmanager
async def kubelet(pair: KeyPair | None, authority: Authority, seen: list[Request]) -> AsyncIterator[int]:
    async def handler(request: Request) -> Response:
        seen.append(request)
        return Response(200, {"content-type": "text/plain"}, b"hello")

    listening = HttpsServer(handler, server_context(pair), clients=authority.certificate)
    try:
        yield await listening.listen(HOST, 0)
    finally:
        await listening.close(deadline=1.0)


async def node(server: Server, port: int, *addresses: tuple[str, str]) -> None:
    told = [{"type": kind, "address": address} for kind, address in addresses or (("InternalIP", HOST),)]
    status = {"addresses": told, "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}
    code, found = await send(server, "POST", "/api/v1/nodes", {"metadata": {"name": "n1"}, "status": status})
    assert code == 201, found
    code, found = await send(server, "PUT", "/api/v1/nodes/n1/status", found | {"status": status})
    assert code == 200, found


async def ask(connections: NodeConnections, path: str = "/pods") -> Response:
    return await connections("n1")(Request("GET", path, {"a": ("b",)}))


async def problem(connections: NodeConnections) -> str:
    with pytest.raises(ApiError) as error:
        await ask(connections)
    assert error.value.code == 503
    return error.value.message


@pytest.mark.usefixtures("loopback")
async def test_a_kubelet_is_asked_as_the_api_servers_own_client(server: Server, tmp_path: Path) -> None:
    authority, seen = Authority.load(tmp_path / "pki", clock=SystemClock()), list[Request]()
    pair = authority.server("n1", hosts=(HOST,))
    async with kubelet(pair, authority, seen) as port, connections(server, authority) as found:
        await node(server, port, ("Hostname", "n1"), ("InternalIP", HOST))
        assert await (await ask(found)).read() == b"hello"
    identity = certificate_identity(seen[0].peer_certificate or b"")
    assert identity is not None
    assert (identity.user, identity.groups) == ("kube-apiserver-kubelet-client", ()), "it is no administrator"
    assert (seen[0].path, seen[0].query) == ("/pods", {"a": ("b",)})


@pytest.mark.usefixtures("loopback")
@pytest.mark.parametrize(
    ("hosts", "own", "why"),
    [
        (("192.0.2.7",), True, "tls: failed to verify certificate: x509: "),
        ((HOST,), False, "tls: failed to verify certificate: x509: certificate signed by unknown authority"),
    ],
)
async def test_who_is_not_the_node_is_told_nothing(
    server: Server, tmp_path: Path, hosts: tuple[str, ...], own: bool, why: str
) -> None:
    authority = Authority.load(tmp_path / "pki", clock=SystemClock())
    signer = authority if own else Authority.load(tmp_path / "other", clock=SystemClock())
    seen: list[Request] = []
    async with (
        kubelet(signer.server("n1", hosts=hosts), authority, seen) as port,
        connections(server, authority) as found,
    ):
        await node(server, port)
        assert (await problem(found)).startswith(f'node "n1" cannot be reached at https://{HOST}:{port}: {why}')
    assert seen == []


@pytest.mark.usefixtures("loopback")
async def test_a_kubelet_without_a_certificate_is_not_asked_and_the_error_says_why(
    server: Server, tmp_path: Path
) -> None:
    authority, seen = Authority.load(tmp_path / "pki", clock=SystemClock()), list[Request]()
    async with kubelet(None, authority, seen) as port, connections(server, authority) as found:
        await node(server, port)
        failed = f'node "n1" cannot be reached at https://{HOST}:{port}: the TLS handshake failed'
        assert await problem(found) == failed
        who = server.as_user("system:node:n1", "system:nodes")
        pem = request("system:node:n1", "system:nodes", dns=("n1",))
        waiting = body("csr-1", pem, "kubernetes.io/kubelet-serving", ("digital signature", "server auth"))
        await who.request("POST", REQUESTS, json.dumps(waiting).encode())
        assert await problem(found) == (
            f"{failed}; its serving certificate is not approved yet, see:  kubectl describe csr csr-1"
        )
    assert seen == []


@pytest.mark.parametrize(
    ("port", "addresses", "why"),
    [
        (0, (("InternalIP", "192.0.2.7"),), "its kubelet listens nowhere"),
        (10250, (("Hostname", "n1"),), "no preferred addresses found; known addresses: [{Hostname n1}]"),
        (10250, (("InternalIP", "127.0.0.1"),), "the address 127.0.0.1 is not allowed"),
        (10250, (("InternalIP", "169.254.169.254"),), "the address 169.254.169.254 is not allowed"),
        (10250, (("InternalIP", "::ffff:127.0.0.1"),), "the address ::ffff:127.0.0.1 is not allowed"),
        (10250, (("InternalIP", "evil.example.com/"),), "the address evil.example.com/ is not allowed"),
    ],
)
async def test_where_nobody_is_asked(server: Server, tmp_path: Path, port: int, addresses: Any, why: str) -> None:
    authority = Authority.load(tmp_path / "pki", clock=SystemClock())
    async with connections(server, authority) as found:
        assert await problem(found) == 'node "n1" cannot be reached: there is no such node'
        await node(server, port, *addresses)
        assert await problem(found) == f'node "n1" cannot be reached: {why}'


@pytest.mark.usefixtures("loopback")
async def test_a_node_that_moves_is_found_again(server: Server, tmp_path: Path) -> None:
    authority, seen = Authority.load(tmp_path / "pki", clock=SystemClock()), list[Request]()
    pair = authority.server("n1", hosts=(HOST,))
    async with connections(server, authority) as found, kubelet(pair, authority, seen) as second:
        async with kubelet(pair, authority, seen) as first:
            await node(server, first)
            assert (await ask(found)).status == 200
        status = {
            "addresses": [{"type": "InternalIP", "address": HOST}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": second}},
        }
        code, _ = await send(
            server, "PATCH", "/api/v1/nodes/n1/status", {"status": status}, kind="application/merge-patch+json"
        )
        assert code == 200
        assert (await ask(found)).status == 200
        assert len(found._dialer._clients) == 1


@pytest.mark.usefixtures("loopback")
async def test_a_connection_that_changes_its_protocol_is_carried_both_ways(server: Server, tmp_path: Path) -> None:
    authority = Authority.load(tmp_path / "pki", clock=SystemClock())
    who: list[bytes | None] = []

    async def shouts(asked: Request) -> Response:
        who.append(asked.peer_certificate)
        hands = shake_hands(asked, ("shout",))

        async def serve(duplex: Duplex) -> None:
            socket = WebSocket(duplex)
            while message := await received(socket):
                await socket.send(message.upper())

        return Response(101, hands.headers, upgrade=serve)

    listening = HttpsServer(
        shouts, server_context(authority.server("n1", hosts=(HOST,))), clients=authority.certificate
    )
    port = await listening.listen(HOST, 0)
    try:
        async with connections(server, authority) as found:
            await node(server, port)
            headers = {**HANDSHAKE, "sec-websocket-protocol": "shout"}
            answer = await found("n1")(Request("GET", "/exec/d/p/c", {"command": ("a b", "c")}, headers))
            assert (answer.status, answer.headers["sec-websocket-protocol"]) == (101, "shout")
            assert answer.upgrade is not None
            pipe = Pipe()
            carrying = asyncio.ensure_future(answer.upgrade(pipe))
            pipe.give(frame(b"hello" * 20_000))
            await pipe.until(b"HELLO" * 20_000)
            pipe.give(frame(b"\x03\xe8", code=8))
            await asyncio.wait_for(carrying, 10 * PATIENCE)
            assert pipe.frames[-1] == (8, b"\x03\xe8")
            assert certificate_identity(who[0] or b"") is not None
            refused = await found("n1")(Request("GET", "/exec/d/p/c", {}, {**headers, "sec-websocket-protocol": "x"}))
            assert (refused.status, refused.upgrade) == (400, None)
    finally:
        await listening.close(deadline=1.0)
    with pytest.raises(ApiError, match="cannot be reached"):
        async with connections(server, authority) as found:
            await found("n1")(Request("GET", "/exec/d/p/c", {}, headers))
