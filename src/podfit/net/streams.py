"""Streamed response bodies: written to a sink, and closed."""

from collections.abc import AsyncIterator, Callable

from podfit.net.wire import SelfWriting, Sink


async def write_to(body: AsyncIterator[bytes], sink: Sink) -> None:
    """All of a stream into a sink: by itself when it can, else as it is read."""
    if isinstance(body, SelfWriting):
        await body.write_to(sink)
        return
    async for chunk in body:
        sink.write(chunk)
        if not sink.ready:
            await sink.drained()


async def close(body: AsyncIterator[bytes]) -> None:
    """Tell a stream that its receiver has left."""
    aclose = getattr(body, "aclose", None)
    if aclose is not None:
        await aclose()


class ClosingStream:
    """The same stream; `ended` is called once, when it is closed."""

    def __init__(self, body: AsyncIterator[bytes], ended: Callable[[], None]) -> None:
        self._body = body
        self._ended: Callable[[], None] | None = ended

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._body)

    async def write_to(self, sink: Sink) -> None:
        await write_to(self._body, sink)

    async def aclose(self) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended()
        await close(self._body)
