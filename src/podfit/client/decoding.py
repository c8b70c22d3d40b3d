"""Reading the API's answers: objects, pages, events of a watch, refusals."""

from collections.abc import AsyncGenerator, Callable
from typing import Any, TypeVar

import msgspec

from podfit.api.meta import codec
from podfit.api.meta.base import Struct
from podfit.api.meta.v1.types import ListMeta
from podfit.core.errors import ApiError
from podfit.net.wire import Response

T = TypeVar("T")


class Unreadable(ConnectionError):
    """An answer that is not what the API promises."""


class Listed(Struct):
    items: tuple[msgspec.Raw, ...] = ()
    metadata: ListMeta = ListMeta()


class Event(Struct):
    type: str
    object: msgspec.Raw


def object_of(data: bytes, kind: type[T]) -> T:
    """An answer and an event that tell the same are one object, however many are told."""
    return decoded(data.removesuffix(b"\n"), kind, codec.decode_shared)


def decoded(data: bytes | msgspec.Raw, kind: type[T], decode: Callable[[bytes, type[T]], T] = codec.decode) -> T:
    try:
        return decode(bytes(data), kind)
    except (msgspec.DecodeError, ValueError) as error:
        raise Unreadable(f"the server's answer is not a {getattr(kind, '__name__', kind)}: {error}") from error


def refusal(code: int, body: bytes) -> ApiError:
    try:
        status = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError:
        return ApiError(code, "", body[:500].decode(errors="replace").strip() or f"HTTP status {code}")
    return ApiError.from_status(status, code=code)


async def lines_of(response: Response) -> AsyncGenerator[bytes, None]:
    """The lines of a streamed answer, which may be cut anywhere."""
    if isinstance(response.body, bytes):
        for line in response.body.splitlines():
            yield line
        return
    rest = b""
    try:
        async for chunk in response.body:
            *lines, rest = (rest + chunk).split(b"\n") if rest else chunk.split(b"\n")
            for line in lines:
                if line:
                    yield line
    finally:
        close = getattr(response.body, "aclose", None)
        if close is not None:
            await close()
