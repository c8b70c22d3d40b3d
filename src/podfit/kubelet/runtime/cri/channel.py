"""Calls over a CRI socket: a request message, a deadline, and our own errors.

The stubs are made from method names at run time. Optional calls that a runtime lacks answer `Unimplemented` once and
are not sent again.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from podfit.kubelet.runtime.errors import CRIError, NotFound, Unavailable, Unimplemented

RUNTIME, IMAGES = "runtime.v1.RuntimeService", "runtime.v1.ImageService"
QUICK_SECONDS = 10.0  # for what a runtime answers from its memory
_OPTIONS = [
    ("grpc.max_receive_message_length", 64 * 2**20),
    # A runtime that was killed is back within a second; gRPC's own first pause is a second, its longest two minutes.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.use_local_subchannel_pool", 1),
]
M = TypeVar("M", bound=Message)
_GONE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)


class DeadlineExceeded(Unavailable):
    """No answer came in time."""


class Channel:
    """`endpoint` is the absolute path of a Unix socket."""

    def __init__(self, endpoint: Path) -> None:
        self._channel = grpc.aio.insecure_channel(f"unix://{endpoint}", options=_OPTIONS)
        self._calls: dict[str, Callable[..., Awaitable[Any]]] = {}
        self._lacking: set[str] = set()

    async def close(self) -> None:
        await self._channel.close()

    async def call(
        self, name: str, request: Message, answer: type[M], *, seconds: float | None = None, service: str = RUNTIME
    ) -> M:
        """A runtime that was killed under a call may leave it without an answer for good, so no call waits longer than
        it has to. Raises CRIError.
        """
        seconds = QUICK_SECONDS if seconds is None else seconds
        if name in self._lacking:
            raise Unimplemented(f"the runtime has no {name}")
        try:
            return await self.send(service, name, request, answer, seconds=seconds)
        except DeadlineExceeded as error:
            raise Unavailable(f"{name}: the runtime did not answer within {seconds:g} s") from error
        except Unimplemented:
            self._lacking.add(name)
            raise

    async def send(self, service: str, name: str, request: Message, answer: type[M], *, seconds: float | None) -> M:
        """Without a limit where `seconds` is None. Raises DeadlineExceeded, CRIError."""
        try:
            return await self._stub(service, name, request, answer)(request, timeout=seconds)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                raise DeadlineExceeded(error.details() or "") from error
            raise _translated(error) from error

    async def stream(self, name: str, request: Message, answer: type[M]) -> AsyncIterator[M] | None:
        """Waits for the stream's first sign of life or refusal; None when the runtime has no such call."""
        if name in self._lacking:
            return None
        stream = self._channel.unary_stream(
            f"/{RUNTIME}/{name}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )(request)
        try:
            await stream.wait_for_connection()
        except grpc.aio.AioRpcError as error:
            if isinstance(_translated(error), Unimplemented):
                self._lacking.add(name)
                return None
            raise _translated(error) from error
        return _messages(stream)

    def _stub(self, service: str, name: str, request: Message, answer: type[M]) -> Callable[..., Awaitable[M]]:
        stub = self._calls.get(name)
        if stub is None:
            stub = self._calls[name] = self._channel.unary_unary(
                f"/{service}/{name}",
                request_serializer=type(request).SerializeToString,
                response_deserializer=answer.FromString,
            )
        return stub


async def _messages(stream: Any) -> AsyncIterator[Any]:
    try:
        async for message in stream:
            yield message
    except grpc.aio.AioRpcError as error:
        raise _translated(error) from error
    finally:
        stream.cancel()


def _translated(error: grpc.aio.AioRpcError) -> CRIError:
    text = error.details() or error.code().name
    match error.code():
        case grpc.StatusCode.NOT_FOUND:
            return NotFound(text)
        case grpc.StatusCode.UNIMPLEMENTED:
            return Unimplemented(text)
        case grpc.StatusCode.UNKNOWN if "not implemented" in text:
            return Unimplemented(text)
        case grpc.StatusCode.UNKNOWN if "not initialized" in text:  # containerd has just started
            return Unavailable(text)
        case code if code in _GONE:
            return Unavailable(text)
        case _:
            return CRIError(text)
