"""The members of an etcd cluster, with failover of calls between them.

One member is asked for everything until it fails; then the next is. Reads are linearizable, so it does not matter who
answers, and one that got no answer is simply asked again. A write that was sent and not answered may have happened:
`Unanswered` leaves it to the store what to make of that. Every call has a deadline.

gRPC takes 80 ms to import, so this module is imported only where etcd is used.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import grpc
import grpc.aio

from podfit.store.etcd import etcd_v3_pb2 as pb
from podfit.store.etcd.options import EtcdOptions, EtcdUnusable
from podfit.store.protocol import StoreUnavailable

logger = logging.getLogger(__name__)

CALL_SECONDS = 3.0  # for one call to one member; a request that a dying leader took is never answered
ALL_SECONDS = 5.0  # during which another member is asked after one that failed
CONNECT_SECONDS = 1.0
PAUSE_SECONDS = 0.05  # between members that cannot be reached
# A member that has lost the others ends calls and watches that say this, instead of letting them hang.
WITH_LEADER = (("hasleader", "true"),)
UNSENT = ("no leader", "too many requests", "not capable")  # etcd's words for what it refused before it tried
GONE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)
HEALTH_KEY = b"health"  # what etcd itself reads for its /health
_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
    # A machine that vanished answers no more; etcd allows a ping every five seconds.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.use_local_subchannel_pool", 1),
]


class Unanswered(Exception):
    """A write was sent, and nobody said what became of it."""


class EtcdMember:
    def __init__(self, url: str, credentials: grpc.ChannelCredentials | None) -> None:
        self.url = url
        where = urlsplit(url).netloc
        self._channel = (
            grpc.aio.secure_channel(where, credentials, options=_OPTIONS)
            if credentials
            else grpc.aio.insecure_channel(where, options=_OPTIONS)
        )
        self._calls: dict[str, Any] = {}

    async def connect(self) -> str:
        """Why the member cannot be reached; empty when it can."""
        if self._channel.get_state(try_to_connect=True) is grpc.ChannelConnectivity.READY:
            return ""
        try:
            await self.call("Maintenance/Status", pb.StatusRequest(), pb.StatusResponse, seconds=CONNECT_SECONDS)
        except grpc.aio.AioRpcError as error:
            if error.code() in GONE:
                return f"{self.url}: {error.details()}"
        return ""

    async def health(self) -> str:
        """Why a linearizable read fails here; empty when it does not. A member without a leader fails."""
        try:
            request = pb.RangeRequest(key=HEALTH_KEY, count_only=True)
            await self.call("KV/Range", request, pb.RangeResponse)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.PERMISSION_DENIED:  # it has read what says so
                return f"{self.url}: {error.details()}"
        return ""

    def call(self, method: str, request: Any, answer: Any, *, seconds: float = CALL_SECONDS) -> Awaitable[Any]:
        if method not in self._calls:
            self._calls[method] = self._channel.unary_unary(
                f"/etcdserverpb.{method}",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=answer.FromString,
            )
        made: Awaitable[Any] = self._calls[method](request, timeout=seconds, metadata=WITH_LEADER)
        return made

    def watch(self) -> Any:
        """A stream of `pb.WatchResponse`, to which `pb.WatchRequest`s are written."""
        return self._channel.stream_stream(
            "/etcdserverpb.Watch/Watch",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=pb.WatchResponse.FromString,
        )(metadata=WITH_LEADER)

    async def close(self) -> None:
        await self._channel.close()


class EtcdMembers:
    def __init__(self, options: EtcdOptions) -> None:
        credentials = _credentials(options)
        self._all = [EtcdMember(url, credentials) for url in options.servers]
        self._current = 0
        self.answering = True  # when last asked, whoever it was

    @property
    def current(self) -> EtcdMember:
        return self._all[self._current]

    async def health(self) -> dict[str, str]:
        """The health of each member, in the order in which they were given."""
        problems = await asyncio.gather(*(member.health() for member in self._all))
        return {f"etcd-{number}": problem for number, problem in enumerate(problems)}

    def leave(self, member: EtcdMember, why: object) -> None:
        """The member failed: the next calls go to another."""
        if member is self.current and len(self._all) > 1:
            self._current = (self._current + 1) % len(self._all)
            logger.warning("etcd member left member=%s next=%s reason=%s", member.url, self.current.url, why)

    async def read(self, method: str, request: Any, answer: Any) -> Any:
        """Raises StoreUnavailable when no member answers; what etcd refuses stays an AioRpcError."""
        return await self._in_time(lambda member: self._asked(member, method, request, answer))

    async def write(self, method: str, request: Any, answer: Any) -> Any:
        """Asks as `read` does, but raises Unanswered as soon as the write may have happened."""
        return await self._in_time(lambda member: self._sent(member, method, request, answer))

    async def _in_time(self, attempt: Callable[[EtcdMember], Awaitable[Any]]) -> Any:
        loop = asyncio.get_running_loop()
        end = loop.time() + ALL_SECONDS
        while True:
            member = self.current
            try:
                answer = await attempt(member)
                self.answering = True
                return answer
            except _Failed as error:
                self.leave(member, error)
                if loop.time() >= end:  # looked at between attempts only: what was sent is waited for
                    self.answering = False
                    raise StoreUnavailable(f"etcd: {error}") from None
            except Unanswered as error:
                self.leave(member, error)
                raise
            await asyncio.sleep(PAUSE_SECONDS)

    @staticmethod
    async def _asked(member: EtcdMember, method: str, request: Any, answer: Any) -> Any:
        if unreachable := await member.connect():
            raise _Failed(unreachable)
        try:
            return await member.call(method, request, answer)
        except grpc.aio.AioRpcError as error:
            if error.code() in GONE:
                raise _Failed(f"{member.url}: {error.details()}") from error
            raise

    @staticmethod
    async def _sent(member: EtcdMember, method: str, request: Any, answer: Any) -> Any:
        if unreachable := await member.connect():
            raise _Failed(unreachable)
        try:
            return await member.call(method, request, answer)
        except grpc.aio.AioRpcError as error:
            text = error.details() or ""
            if error.code() not in GONE and "too many requests" not in text:
                raise
            if any(words in text for words in UNSENT):
                raise _Failed(f"{member.url}: {text}") from error
            raise Unanswered(f"{member.url}: {text}") from error

    async def close(self) -> None:
        await asyncio.gather(*(member.close() for member in self._all))


class _Failed(Exception):
    """This member did not answer, and nothing happened."""


def _credentials(options: EtcdOptions) -> grpc.ChannelCredentials | None:
    if not options.servers[0].startswith("https:"):
        return None
    try:
        files = [path.read_bytes() if path else None for path in (options.ca_file, options.key_file, options.cert_file)]
    except OSError as error:
        raise EtcdUnusable(f"etcd's certificates cannot be read: {error}") from error
    return grpc.ssl_channel_credentials(*files)
