"""`DnsServer`: answers pods and this machine, by UDP and TCP, at one address or several.

Whoever is not of the networks that may ask is not answered at all, so nobody can have answers sent to somebody else. A
connection of TCP has a bounded time and a bounded number of questions under way, and there are so many of them.
"""

import asyncio
import logging
import socket
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import TypeAlias, cast

from podfit.core.clock import Clock, Timer
from podfit.decide.dns.resolvers import Believed
from podfit.decide.dns.zone import SERVER_FAILURE, Answer, Question, Zone
from podfit.dns.forwarder import Forwarder
from podfit.dns.metrics import CLUSTER, ELSEWHERE, DnsMetrics
from podfit.dns.wire import (
    LARGEST,
    LARGEST_QUESTION,
    LARGEST_UDP,
    Malformed,
    Packed,
    Query,
    name_wire,
    pack,
    pack_believed,
    parse,
    refusal,
    response,
)

log = logging.getLogger(__name__)

Network: TypeAlias = IPv4Network | IPv6Network
Send: TypeAlias = Callable[[bytes], None]
MOST_PACKED, LARGEST_PACKED = 4096, 16 << 20
"""Answers of the cluster's own names that are kept as packets, and their bytes."""
MOST_TURNS = 16
MOST_CLIENTS = 4096
IDLE_SECONDS = 10.0
MOST_CONNECTIONS, MOST_CONNECTIONS_OF_CLIENT, MOST_ASKED = 512, 64, 64
"""Connections of TCP in all, of one client; questions under way on one of them."""
RECEIVE_BUFFER = 1 << 20


class DnsServer:
    """`networks` may ask. It is ready when the zone is: before that nothing listens."""

    def __init__(
        self, zone: Zone, forwarder: Forwarder, networks: Iterable[Network], clock: Clock, metrics: DnsMetrics
    ) -> None:
        self.zone, self.forwarder, self.networks = zone, forwarder, tuple(networks)
        self.clock, self.metrics = clock, metrics
        self.connections: Counter[str] = Counter()
        self._may: dict[str, bool] = {}
        self._packets: OrderedDict[tuple[Question, int], _Turning] = OrderedDict()
        self._turn = self._changes = self._size = 0
        self._open: list[asyncio.BaseTransport | asyncio.Server] = []
        self._living: set[_Connection] = set()

    # ---------------------------------------------------------------- sockets

    async def listen(self, address: str, port: int) -> int:
        """Listens by UDP and TCP on one port; 0 takes a free one. Returns the port. Raises OSError."""
        loop = asyncio.get_running_loop()
        stream, packets = bound(address, port)
        transport, _ = await loop.create_datagram_endpoint(lambda: _Packets(self), sock=packets)
        self._open.append(transport)
        port = int(stream.getsockname()[1])
        self._open.append(await loop.create_server(lambda: _Connection(self), sock=stream))
        return port

    async def close(self) -> None:
        for listener in self._open:
            listener.close()
        self._open.clear()
        for connection in tuple(self._living):
            connection.end()
        await self.forwarder.supervisor.stop()

    def opened(self, connection: "_Connection") -> bool:
        """Whether it may stay."""
        client = connection.client
        if not self.may_ask(client):
            self.metrics.dropped["client"] += 1
            return False
        if len(self._living) >= MOST_CONNECTIONS or self.connections[client] >= MOST_CONNECTIONS_OF_CLIENT:
            self.metrics.dropped["connections"] += 1
            return False
        self._living.add(connection)
        self.connections[client] += 1
        return True

    def closed(self, connection: "_Connection") -> None:
        if connection in self._living:
            self._living.discard(connection)
            self.connections[connection.client] -= 1
            if not self.connections[connection.client]:
                del self.connections[connection.client]

    def may_ask(self, client: str) -> bool:
        known = self._may.get(client)
        if known is None:
            if len(self._may) >= MOST_CLIENTS:
                self._may.clear()
            address = ip_address(client.partition("%")[0])
            known = self._may[client] = any(address in network for network in self.networks)
        return known

    # ---------------------------------------------------------------- questions

    def asked(self, data: bytes, client: str, protocol: str, send: Send) -> bool:
        """`send` is called once, now or later; False when there is nothing to say."""
        began = self.clock.monotonic()
        try:
            query = parse(data)
        except Malformed as error:
            self.metrics.dropped["malformed"] += 1
            if error.response:
                self._send(send, error.response)
            return bool(error.response)
        limit = query.size if protocol == "udp" else LARGEST
        answer = self._local(query, limit)
        zone = CLUSTER if answer is not None else ELSEWHERE
        self.metrics.requests[protocol, zone] += 1

        def finish(packet: bytes) -> None:
            self._send(send, packet)
            self.metrics.took(zone, self.clock.monotonic() - began)

        if isinstance(answer, Packed):
            finish(response(query, answer, limit))
        elif answer is not None:
            self._follow(query, answer, client, limit, finish)
        else:
            self._forward(query, client, limit, finish)
        return True

    def _send(self, send: Send, packet: bytes) -> None:
        self.metrics.responses[packet[3] & 15] += 1
        send(packet)

    def _local(self, query: Query, limit: int) -> Packed | Answer | None:
        """An Answer is one that somebody else has a part in."""
        if self.zone.changes != self._changes:
            self._forget()
            self._changes = self.zone.changes
        key = query.question, limit
        kept = self._packets.get(key)
        if kept is None:
            answer = self.zone.answer(query.question)
            if answer is None or answer.follow:
                return answer
            while len(self._packets) >= MOST_PACKED or self._size > LARGEST_PACKED:
                self._size -= self._packets.popitem(last=False)[1].size  # the oldest, one at a time
            kept = self._packets[key] = _Turning(answer, 1 if limit > LARGEST_UDP else len(answer.records))
        self._turn += 1
        packed, added = kept.next(self._turn, query.text, limit)
        self._size += added
        return packed

    @property
    def kept(self) -> tuple[int, int]:
        """How many answers are kept as packets, and their bytes."""
        return len(self._packets), self._size

    def _forget(self) -> None:
        self._packets.clear()
        self._size = 0

    def _forward(self, query: Query, client: str, limit: int, send: Send) -> None:
        known = self.forwarder.known(query.question)
        if known is not None:
            kept, age = known
            send(response(query, kept.packed, limit, kept.packed.aged(age)))
            return

        def answered(what: Believed) -> None:
            send(response(query, pack_believed(query.text, what), limit))

        self._ask(query, query.question, query.text, client, answered, send)

    def _follow(self, query: Query, answer: Answer, client: str, limit: int, send: Send) -> None:
        """What the name says that a Service of type ExternalName leads to, behind the CNAME; without it if it is not to
        be had."""

        def answered(what: Believed) -> None:
            send(response(query, pack(query.text, answer, limit=limit, given=what.records), limit))

        asked = Question(answer.follow, query.question.type)
        known = self.forwarder.known(asked)
        if known is not None:
            answered(known[0].what)
        else:
            self._ask(query, asked, name_wire(answer.follow) + query.text[-4:], client, answered, send)

    def _ask(
        self, query: Query, asked: Question, text: bytes, client: str, answered: Callable[[Believed], None], send: Send
    ) -> None:
        if not self.forwarder.ask(asked, text, client, answered):
            self.metrics.dropped["waiting"] += 1
            send(refusal(query.id.to_bytes(2, "big") + query.flags.to_bytes(2, "big"), SERVER_FAILURE))


def bound(address: str, port: int) -> tuple[socket.socket, socket.socket]:
    """For TCP and UDP, on one port. Raises OSError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    stream = socket.create_server((address, port), family=family, backlog=MOST_CONNECTIONS)
    packets = socket.socket(family, socket.SOCK_DGRAM)
    try:
        packets.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        packets.bind((address, stream.getsockname()[1]))
    except OSError:
        packets.close()
        stream.close()
        raise
    stream.setblocking(False)
    packets.setblocking(False)
    return stream, packets


class _Turning:
    """An answer as packets, made when they are wanted: each begins with another record, `count` in all."""

    def __init__(self, answer: Answer, count: int) -> None:
        self._answer = answer
        self._packed: list[Packed | None] = [None] * max(1, min(count, MOST_TURNS))
        self.size = 0

    def next(self, turn: int, text: bytes, limit: int) -> tuple[Packed, int]:
        """With the bytes that are kept from now on."""
        number = turn % len(self._packed)
        packed = self._packed[number]
        if packed is not None:
            return packed, 0
        packed = self._packed[number] = pack(text, self._answer, limit=limit, turn=number)
        self.size += len(packed.body)
        return packed, len(packed.body)


class _Packets(asyncio.DatagramProtocol):
    def __init__(self, server: DnsServer) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        server = self._server
        if not server.may_ask(address[0]):
            server.metrics.dropped["client"] += 1
            return

        def send(packet: bytes) -> None:
            if not self._transport.is_closing():
                self._transport.sendto(packet, address)

        server.asked(data, address[0], "udp", send)

    def error_received(self, error: Exception) -> None:
        """Somebody who asked does not listen any more."""
        log.debug("not sent error=%s", error)


class _Connection(asyncio.Protocol):
    """A connection of TCP: each message behind its size in two bytes (RFC 7766)."""

    client = ""

    def __init__(self, server: DnsServer) -> None:
        self._server, self._buffer, self._under_way = server, bytearray(), 0
        self._timer: Timer | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.client = peer[0] if peer else ""
        if not self.client or not self._server.opened(self):
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(high=4 * LARGEST)
        self._wait()

    def connection_lost(self, _: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._server.closed(self)

    def pause_writing(self) -> None:
        """It asks and does not read."""
        self.end()

    def end(self) -> None:
        self._transport.abort()

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._server.clock.call_later(IDLE_SECONDS, self.end)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        while len(buffer) >= 2 and not self._transport.is_closing():
            size = int.from_bytes(buffer[:2], "big")
            if size > LARGEST_QUESTION or self._under_way >= MOST_ASKED:
                self._server.metrics.dropped["malformed" if size > LARGEST_QUESTION else "asked"] += 1
                self.end()
                return
            if len(buffer) < 2 + size:
                return
            message = bytes(buffer[2 : 2 + size])
            del buffer[: 2 + size]
            self._wait()
            self._under_way += 1
            if not self._server.asked(message, self.client, "tcp", self._send):
                self.end()

    def _send(self, packet: bytes) -> None:
        self._under_way -= 1
        if not self._transport.is_closing():
            self._transport.write(len(packet).to_bytes(2, "big") + packet)
