"""A name server in this process, a resolver to ask, and questions over real sockets of loopback."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import cast

import dns.message
import dns.rrset

from podfit.core.clock import Clock
from podfit.decide.dns.records import Record
from podfit.decide.dns.zone import Zone
from podfit.dns.forwarder import Forwarder, Resolver
from podfit.dns.metrics import DnsMetrics
from podfit.dns.server import DnsServer
from podfit.net.system import SeededRandom
from support.clock import FakeClock
from support.eventually import PATIENCE

LOCAL = "127.0.0.1"
Reply = Callable[[bytes, tuple[str, int]], Iterable[bytes]]


def record(name: str, kind: str, *values: str, ttl: int = 60) -> dns.rrset.RRset:
    return dns.rrset.from_text(f"{name}.", ttl, "IN", kind, *values)


def answers(asked: bytes, *records: dns.rrset.RRset, flags: int = 0) -> bytes:
    """The right answer to it."""
    response = dns.message.make_response(dns.message.from_wire(asked), recursion_available=True)
    response.answer.extend(records)
    response.flags |= flags
    return response.to_wire()


def question(name: str, kind: str = "A", *, size: int = 0) -> bytes:
    """With EDNS when a `size` is given."""
    return dns.message.make_query(name, kind, use_edns=0 if size else -1, payload=size or 1232).to_wire()


@dataclass
class FakeResolver(asyncio.DatagramProtocol):
    """What it says to each question is `reply`'s; over TCP `whole`'s, once."""

    reply: Reply
    whole: Reply = lambda asked, _: ()
    port: int = 0
    heard: list[tuple[bytes, tuple[str, int]]] = field(default_factory=list)
    over_tcp: int = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, peer: tuple[str, int]) -> None:
        self.heard.append((data, peer))
        for packet in self.reply(data, peer):
            self.transport.sendto(packet, peer)

    async def stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = int.from_bytes(await reader.readexactly(2), "big")
        self.over_tcp += 1
        for packet in self.whole(await reader.readexactly(size), (LOCAL, 0)):
            writer.write(len(packet).to_bytes(2, "big") + packet)
        writer.close()


@asynccontextmanager
async def resolving(reply: Reply, whole: Reply | None = None) -> AsyncIterator[FakeResolver]:
    made = FakeResolver(reply, whole or (lambda _asked, _peer: ()))
    server = await asyncio.start_server(made.stream, LOCAL, 0)
    made.port = server.sockets[0].getsockname()[1]
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: made, local_addr=(LOCAL, made.port)
    )
    try:
        yield made
    finally:
        transport.close()
        server.close()
        await server.wait_closed()


@dataclass
class Asker:
    """Asks the server from an address of loopback."""

    server: DnsServer
    port: int
    clock: Clock

    @property
    def counts(self) -> DnsMetrics:
        return self.server.metrics

    async def ask(self, name: str, kind: str = "A", *, size: int = 0, tcp: bool = False) -> dns.message.Message:
        asked = question(name, kind, size=size)
        found = await (self.stream(asked) if tcp else self.packet(asked))
        assert found[:2] == asked[:2]
        return dns.message.from_wire(found)

    async def packet(self, asked: bytes, *, source: str = LOCAL) -> bytes:
        """What is answered to any bytes. Raises TimeoutError when nothing is."""
        loop = asyncio.get_running_loop()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.bind((source, 0))
            await loop.sock_connect(sock, (LOCAL, self.port))
            await loop.sock_sendall(sock, asked)
            async with asyncio.timeout(5 * PATIENCE):
                return await loop.sock_recv(sock, 65535)

    async def stream(self, asked: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(LOCAL, self.port)
        try:
            writer.write(len(asked).to_bytes(2, "big") + asked)
            return await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
        finally:
            writer.close()


@asynccontextmanager
async def serving(
    *records: Record,
    resolvers: Iterable[int] = (),
    networks: Iterable[str] = ("127.0.0.1/32",),
    patience: float = 5.0,
    clock: FakeClock | None = None,
) -> AsyncIterator[Asker]:
    """`resolvers` are ports of loopback."""
    clock = clock or FakeClock()
    zone = Zone("cluster.local", "10.96.0.10")
    zone.set_namespace("shop", there=True)
    zone.put(("shop", "web", ""), records)
    asked = tuple(Resolver(LOCAL, port) for port in resolvers)

    async def known() -> tuple[Resolver, ...]:
        return asked

    counts = DnsMetrics()
    forwarder = Forwarder(known, clock, SeededRandom(7), counts, patience=patience)
    server = DnsServer(zone, forwarder, map(ip_network, networks), clock, counts)
    port = await server.listen(LOCAL, 0)
    try:
        yield Asker(server, port, clock)
    finally:
        await server.close()
