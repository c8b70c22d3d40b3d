"""`Forwarder`: what the host's resolvers say of names that are not the cluster's.

    question ─▶ cache ─▶ the same question that is under way ─▶ each resolver of /etc/resolv.conf in turn, by UDP ─▶ TCP
                                                                 when it does not fit, or when somebody guesses

Against somebody who sends false answers: the id is random and so is the port (the kernel's choice, of a socket for each
question, which hears its resolver only); one question is under way once, however many ask it; what answers another
question is counted, and after a few of these the next try is over TCP.
"""

import asyncio
import logging
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import TypeAlias

import msgspec

from podfit.core.clock import Clock
from podfit.core.randomness import Random
from podfit.decide.dns.resolvers import FAILED, FALSE_ANSWERS, Believed, Reply, believed, is_answer
from podfit.decide.dns.zone import NAME_ERROR, NO_ERROR, Question
from podfit.dns.cache import AnswerCache, Kept, kind_of
from podfit.dns.library import LARGEST_REPLY, Unreadable, load, read_reply
from podfit.dns.metrics import DnsMetrics
from podfit.dns.wire import DESIRED, HEADER, LARGEST_UDP, OPT, pack_believed
from podfit.net.supervisor import Supervisor

log = logging.getLogger(__name__)

TRY_SECONDS = 2.0
MOST_TRIES = 3
BAD_SECONDS = 10.0
"""A resolver that did not answer is asked last for so long."""
MOST_WAITING, MOST_OF_CLIENT = 1000, 200
"""Questions that wait for resolvers, of everybody (CoreDNS' `max_concurrent`) and of one client."""
PORT = 53

Answered: TypeAlias = Callable[[Believed], None]


class Resolver(msgspec.Struct, frozen=True):
    address: str
    port: int = PORT

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"


class _Guessed(Exception):
    """Too many false answers."""


class Forwarder:
    """`resolvers` says whom to ask, the first first; each has `patience` seconds, by UDP and then by TCP."""

    def __init__(
        self,
        resolvers: Callable[[], Awaitable[tuple[Resolver, ...]]],
        clock: Clock,
        random: Random,
        metrics: DnsMetrics,
        *,
        patience: float = TRY_SECONDS,
    ) -> None:
        self._resolvers, self._clock, self._random, self.metrics = resolvers, clock, random, metrics
        self._patience, self._reads = patience, False
        self.cache = AnswerCache()
        self.waiting = 0
        self._waiting: dict[Question, list[Answered]] = {}
        self._of_client: Counter[str] = Counter()
        self._bad: dict[Resolver, float] = {}
        self.supervisor = Supervisor("forwarded questions")

    def known(self, asked: Question) -> tuple[Kept, int] | None:
        """From the cache, with the seconds that it has been there."""
        now = self._clock.monotonic()
        kept = self.cache.get(asked, now)
        if kept is None:
            self.metrics.misses += 1
            return None
        self.metrics.hits[kind_of(kept)] += 1
        return kept, int(now - kept.since)

    def ask(self, asked: Question, text: bytes, client: str, answered: Answered) -> bool:
        """`text` is the question as packets have it. `answered` is called once, later; False when too many wait."""
        if self._of_client[client] >= MOST_OF_CLIENT or self.waiting >= MOST_WAITING:
            return False
        self._of_client[client] += 1
        self.waiting += 1

        def done(what: Believed) -> None:
            self.waiting -= 1
            self._of_client[client] -= 1
            if not self._of_client[client]:
                del self._of_client[client]
            answered(what)

        under_way = self._waiting.get(asked)
        if under_way is not None:
            under_way.append(done)
        else:
            self._waiting[asked] = [done]
            self.supervisor.begin(self._find(asked, text), name="forwarded question")
        return True

    async def _find(self, asked: Question, text: bytes) -> None:
        what = FAILED
        try:
            what = await self._asked(asked, text[:-4].lower() + text[-4:])
            if what.seconds:
                now = self._clock.monotonic()
                self.cache.put(asked, Kept(what, pack_believed(text, what), now, now + what.seconds))
        finally:
            for done in self._waiting.pop(asked):
                done(what)

    async def _asked(self, asked: Question, text: bytes) -> Believed:
        last = FAILED
        if not self._reads:  # a cluster whose pods ask for its own names alone never needs it
            await asyncio.to_thread(load)
            self._reads = True
        for resolver in await self._in_order():
            self.metrics.forwarded[str(resolver)] += 1
            try:
                reply = await self._reply(resolver, asked, text)
            except (OSError, Unreadable, TimeoutError, asyncio.IncompleteReadError) as error:
                log.debug("no answer resolver=%s error=%r", resolver, error)
                self.metrics.failed[str(resolver)] += 1
                self._bad[resolver] = self._clock.monotonic() + BAD_SECONDS
                continue
            self._bad.pop(resolver, None)
            last = believed(asked, reply)
            if last.code in (NO_ERROR, NAME_ERROR):
                break
        return last

    async def _in_order(self) -> list[Resolver]:
        resolvers = list(await self._resolvers())[:MOST_TRIES]
        now = self._clock.monotonic()
        self._bad = {one: until for one, until in self._bad.items() if one in resolvers and until > now}
        return sorted(resolvers, key=lambda one: one in self._bad)

    async def _reply(self, resolver: Resolver, asked: Question, text: bytes) -> Reply:
        """Raises OSError, Unreadable, TimeoutError, IncompleteReadError."""
        number = self._random.below(1 << 16)
        message = HEADER.pack(number, DESIRED, 1, 0, 0, 1) + text + struct.pack(">BHHIH", 0, OPT, LARGEST_UDP, 0, 0)
        try:
            async with asyncio.timeout(self._patience):
                reply = await self._by_udp(resolver, message, asked)
        except _Guessed:
            log.warning("false answers, asking over TCP resolver=%s name=%s", resolver, asked.name)
        else:
            if not reply.truncated:
                return reply
        async with asyncio.timeout(self._patience):
            return await self._by_tcp(resolver, message, asked)

    async def _by_udp(self, resolver: Resolver, message: bytes, asked: Question) -> Reply:
        loop = asyncio.get_running_loop()
        version = ip_address(resolver.address.partition("%")[0]).version
        sock = socket.socket(socket.AF_INET if version == 4 else socket.AF_INET6, socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            sock.connect((resolver.address, resolver.port))
        except OSError:
            sock.close()
            raise
        exchange = _Exchange(message, asked, self.metrics, loop.create_future())
        transport, _ = await loop.create_datagram_endpoint(lambda: exchange, sock=sock)
        try:
            transport.sendto(message)
            return await exchange.reply
        finally:
            transport.close()

    async def _by_tcp(self, resolver: Resolver, message: bytes, asked: Question) -> Reply:
        reader, writer = await asyncio.open_connection(resolver.address, resolver.port)
        try:
            writer.write(len(message).to_bytes(2, "big") + message)
            size = int.from_bytes(await reader.readexactly(2), "big")
            if size > LARGEST_REPLY:
                raise Unreadable
            reply = read_reply(await reader.readexactly(size))
            if not is_answer(reply, int.from_bytes(message[:2], "big"), asked):
                self.metrics.false += 1
                raise Unreadable
            return reply
        finally:
            writer.close()


class _Exchange(asyncio.DatagramProtocol):
    """One question by UDP. What cannot be its answer is not read by the library at all."""

    def __init__(self, message: bytes, asked: Question, metrics: DnsMetrics, reply: "asyncio.Future[Reply]") -> None:
        self._id, self._asked, self._metrics, self.reply = message[:2], asked, metrics, reply
        self._false = 0

    def datagram_received(self, data: bytes, _: object) -> None:
        if self.reply.done():
            return
        if data[:2] == self._id and len(data) >= HEADER.size:
            try:
                reply = read_reply(data)
            except Unreadable:
                reply = None
            if reply is not None and is_answer(reply, int.from_bytes(self._id, "big"), self._asked):
                self.reply.set_result(reply)
                return
        self._metrics.false += 1
        self._false += 1
        if self._false >= FALSE_ANSWERS:
            self.reply.set_exception(_Guessed())

    def error_received(self, error: Exception) -> None:
        if not self.reply.done():
            self.reply.set_exception(error)
