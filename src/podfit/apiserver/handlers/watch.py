"""Watches: a stream of changes since a revision.

`watch_lines` has the lines. Bookmarks tell a client that has seen nothing for a while from where to continue.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import islice

from podfit.apiserver.context import Context
from podfit.apiserver.handlers.answers import JSON
from podfit.apiserver.handlers.options import ListOptions
from podfit.apiserver.handlers.read import check_reached, too_large
from podfit.apiserver.handlers.selection import Selection
from podfit.apiserver.handlers.watch_lines import WatchLines, error_line
from podfit.apiserver.registry import stored
from podfit.apiserver.request.negotiation import YAML
from podfit.apiserver.request.representations import NO_STREAM, wanted_media, wanted_representation
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.clock import Clock, Timer
from podfit.core.errors import ApiError, gone
from podfit.net.wire import Request, Response, Sink
from podfit.store.protocol import Change, Compacted, FutureRevision, Page, SlowWatcher, StoreError, Watch

BOOKMARK_SECONDS = 60.0
LONGEST_SECONDS = 3600
SHORTEST_WITH_PARTING = 2  # seconds: a watch that lasts longer ends with a bookmark
PIECE = 256 * 1024  # bytes of changes joined, when they have had to wait
MOST_LINES = 100  # written in one turn of the loop


async def watch(context: Context, request_info: RequestInfo, request: Request) -> Response:
    """A stream of events, one a line."""
    info = request_info.info
    assert info is not None
    representation = wanted_representation(request, request_info)
    if wanted_media(request)[0] == YAML:
        raise ApiError(406, "NotAcceptable", NO_STREAM)
    options = ListOptions.of(request, watch=True, by_path=request_info.by_path)
    selection = Selection.of(info, request, request_info.name)
    writer = WatchLines(context, info, selection, representation, request)
    prefix = stored.prefix(info, request_info.namespace)
    first: Page | None = None
    if options.initial or (options.initial is None and not options.version):
        await check_reached(context, options.version)
        first = await context.store.list(prefix)
    try:
        changes = context.store.watch(prefix, after=first.revision if first else options.version, about=selection.about)
    except Compacted as error:
        old = f"too old resource version: {options.version} ({error.revision})"
        return Response(200, JSON, error_line(gone(old)))
    except FutureRevision as error:
        raise too_large(options.version, error.current) from None
    asked_outside = options.seconds and request.remote and context.clients_clock
    lasts_by = asked_outside or context.clock
    return Response(200, JSON, WatchBody(context, writer, changes, first, options, lasts_by=lasts_by))


def _is_much(changes: Sequence[Change]) -> bool:
    """Whether they are too many, or too large together, for one turn of the loop."""
    return len(changes) > MOST_LINES or sum(len(change.record.value) for change in changes) > PIECE


class WatchBody:
    """The stream of one watcher. A class, not a generator, so that it lets go of the store even if it is never read.

    It is read like any stream, or writes itself (`write_to`): then a change goes into the socket in the moment in which
    the store tells of it, without a task or a queue in between. When the client does not keep up, changes wait in the
    store's watch, which drops a watcher that is too far behind, and go on together when there is room.
    """

    def __init__(
        self,
        context: Context,
        writer: WatchLines,
        changes: Watch,
        first: Page | None,
        options: ListOptions,
        *,
        lasts_by: Clock,
    ) -> None:
        """`lasts_by` measures how long it lasts."""
        self._writer = writer
        self._changes = changes
        self._options = options
        end = bool(options.initial) and options.bookmarks
        self._pending = writer.initial(first, end=end) if first is not None else None
        """What is known to be written next: a part in each turn of the loop."""
        self._clock = context.clock
        self._woken = asyncio.Event()
        self._ended = self._expired = False
        self._reminder_due = False
        self._sink: Sink | None = None
        self._idle = False
        self._failure: Exception | None = None
        seconds = min(options.seconds or LONGEST_SECONDS, LONGEST_SECONDS)
        self._parting = options.bookmarks and seconds > SHORTEST_WITH_PARTING
        self._timers: list[Timer] = [lasts_by.call_later(seconds, self._expire)]
        if options.bookmarks:
            self._timers.append(context.clock.call_later(BOOKMARK_SECONDS, self._remind))
        changes.on_news(self._news)

    async def write_to(self, sink: Sink) -> None:
        self._sink = sink
        async for lines in self:
            sink.write(lines)
            if not sink.ready:
                await sink.drained()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._ended:
            if lines := await self._next():
                return lines
        await self.aclose()
        raise StopAsyncIteration

    async def _next(self) -> bytes:
        """The next lines, a bookmark when one is due, nothing after a wait."""
        if self._failure is not None:
            raise self._failure
        if self._unfinished():
            return await self._part()
        lines = await self._history() if self._changes.behind else self._lines()
        if self._unfinished():  # before any bookmark, which would say that it was written
            return lines
        if self._expired and not self._ended:
            self._ended = True
            return lines + self._writer.bookmark(self._changes.revision) if self._parting else lines
        if lines or self._ended:
            return lines
        if self._reminder_due:
            self._reminder_due = False
            return self._writer.bookmark(self._changes.revision)
        self._woken.clear()
        self._idle = True
        try:
            await self._woken.wait()
        finally:
            self._idle = False
        return b""

    def _unfinished(self) -> bool:
        return self._pending is not None

    def _news(self) -> None:
        """The store has something: on into the socket, if that is where it goes and the client keeps up."""
        if self._idle and self._pending is None and self._sink is not None and self._sink.ready:
            try:
                self._sink.write(self._lines())
            except Exception as error:  # noqa: BLE001  (it is this watcher's: raised in `write_to`)
                self._failure = error
            if not self._ended and self._failure is None and self._pending is None:
                return
        self._woken.set()

    def _lines(self) -> bytes:
        """What is there, in one piece; what is too much for that is pending afterwards."""
        found: list[bytes] = []
        size = count = 0
        try:
            while size < PIECE and count < MOST_LINES and (changes := self._changes.take()) is not None:
                if len(changes) > 1 and _is_much(changes):
                    self._pending = self._writer.changes(changes)
                    break
                lines = list(self._writer.changes(changes))
                found += lines
                size, count = size + sum(map(len, lines)), count + len(changes)
            if self._pending is None and (size >= PIECE or count >= MOST_LINES):
                self._pending = iter(())  # there may be more, which has its turn
        except (StopAsyncIteration, StoreError) as error:
            found.append(self._end(error))
        return found[0] if len(found) == 1 else b"".join(found)

    async def _history(self) -> bytes:
        try:
            self._pending = self._writer.changes(await anext(self._changes))
        except (StopAsyncIteration, StoreError) as error:
            return self._end(error)
        return b""

    async def _part(self) -> bytes:
        """Of what is pending."""
        assert self._pending is not None
        await asyncio.sleep(0)
        found: list[bytes] = []
        size = 0
        for line in islice(self._pending, MOST_LINES):
            found.append(line)
            size += len(line)
            if size >= PIECE:
                break
        if not found:
            self._pending = None
        return b"".join(found)

    def _end(self, reason: Exception) -> bytes:
        """The end of the store's watch is the end of this one; what the client is told of it."""
        self._ended = True
        match reason:
            case StopAsyncIteration() | SlowWatcher():
                return b""
            case Compacted():
                return error_line(gone(f"too old resource version ({reason.revision})"))
        return error_line(ApiError(500, "InternalError", str(reason)))

    def _expire(self) -> None:
        self._expired = True
        self._woken.set()

    def _remind(self) -> None:
        self._reminder_due = True
        self._woken.set()
        self._timers[1:] = [self._clock.call_later(BOOKMARK_SECONDS, self._remind)]

    async def aclose(self) -> None:
        self._ended = True
        self._idle = False
        for timer in self._timers:
            timer.cancel()
        self._changes.close()
