"""Watches: what changed since a version, for as long as the client stays.

An event is encoded once for each kind of watcher that wants the same bytes, not once for each watcher. With a selector
the client sees a collection of its own: an object that begins to match is ADDED to it, one that ceases to is DELETED.
Bookmarks tell a client that has seen nothing for a while from where to continue.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec

from podfit.api import codec
from podfit.api.registry import ResourceInfo
from podfit.apiserver import stored
from podfit.apiserver.context import Context
from podfit.apiserver.selection import Selection
from podfit.apiserver.tables import VERSION, Form, definitions, rows, wanted_form
from podfit.apiserver.target import Target
from podfit.apiserver.verbs.answers import JSON
from podfit.apiserver.verbs.options import number
from podfit.apiserver.verbs.read import too_large
from podfit.core.clock import Timer
from podfit.core.errors import ApiError, gone
from podfit.core.times import format_time
from podfit.net.wire import Request, Response
from podfit.store.protocol import Change, Compacted, FutureRevision, Record, SlowWatcher, StoreError, Watch

BOOKMARK_SECONDS = 60.0
LONGEST_SECONDS = 3600
_TRUE = ("true", "1")


async def watch(context: Context, target: Target, request: Request) -> Response:
    """A stream of events, one a line."""
    info = target.info
    assert info is not None
    selection, form = Selection.of(info, request), wanted_form(request)
    prefix = stored.prefix(info, target.namespace)
    version = number(request, "resourceVersion")
    first: list[Record] = []
    revision = version
    if not version:
        page = await context.store.list(prefix)
        first, revision = list(page.records), page.revision
    try:
        changes = context.store.watch(prefix, after=revision)
    except Compacted as error:
        return Response(200, JSON, _error_line(gone(f"too old resource version: {version} ({error.revision})")))
    except FutureRevision as error:
        raise too_large(version, error.current) from None
    writer = _Writer(context, info, selection, form, request)
    seconds = min(number(request, "timeoutSeconds") or LONGEST_SECONDS, LONGEST_SECONDS)
    bookmarks = request.param("allowWatchBookmarks") in _TRUE
    return Response(200, JSON, WatchBody(context, writer, changes, first, seconds=seconds, bookmarks=bookmarks))


def _error_line(error: ApiError) -> bytes:
    return codec.encode({"type": "ERROR", "object": error.status()}) + b"\n"


class _Writer:
    """Turns changes into lines for one kind of watcher."""

    def __init__(
        self, context: Context, info: ResourceInfo, selection: Selection, form: Form, request: Request
    ) -> None:
        self._context = context
        self._info = info
        self._selection = selection
        self._form = form
        self._include = request.param("includeObject") or "Metadata"
        self._columns_due = True

    def initial(self, records: Iterable[Record]) -> bytes:
        return b"".join(self._line("ADDED", record) for record in records if self._selected(record))

    def changes(self, batch: Iterable[Change]) -> bytes:
        lines = []
        for change in batch:
            kind = self._kind(change)
            if kind:
                lines.append(self._line(kind, change.record))
        return b"".join(lines)

    def bookmark(self, revision: int) -> bytes:
        meta = {"resourceVersion": str(revision), "creationTimestamp": None}
        obj: dict[str, Any] = {"kind": self._info.kind, "apiVersion": self._info.group_version, "metadata": meta}
        if self._form is Form.TABLE:
            obj = {"kind": "Table", "apiVersion": VERSION, "metadata": meta, "columnDefinitions": None, "rows": []}
        return msgspec.json.encode({"type": "BOOKMARK", "object": obj}) + b"\n"

    def _selected(self, record: Record) -> bool:
        return not self._selection or self._selection.matches(record)

    def _kind(self, change: Change) -> str:
        """What this change is in the watcher's collection; empty when it does not concern it."""
        before = change.previous is not None and self._selected(change.previous)
        after = not change.deleted and self._selected(change.record)
        if change.deleted:
            return "DELETED" if before else ""
        return {(False, True): "ADDED", (True, True): "MODIFIED", (True, False): "DELETED"}.get((before, after), "")

    def _line(self, kind: str, record: Record) -> bytes:
        if self._form is Form.OBJECT:
            return b"".join((b'{"type":"%s","object":' % kind.encode(), *stored.pieces(self._info, record), b"}\n"))
        now = format_time(self._context.clock.now())
        table = {
            "kind": "Table", "apiVersion": VERSION, "metadata": {"resourceVersion": str(record.mod_revision)},
            "columnDefinitions": definitions(self._info) if self._columns_due else None,
            "rows": list(rows(self._info, [record], now, self._include)),
        }  # fmt: skip
        self._columns_due = False
        return codec.encode({"type": kind, "object": table}) + b"\n"


class WatchBody:
    """The stream of one watcher. A class rather than a generator, so that it lets go of the store even if never read."""

    def __init__(
        self, context: Context, writer: _Writer, changes: Watch, first: list[Record], *, seconds: int, bookmarks: bool
    ) -> None:
        self._writer = writer
        self._changes = changes
        self._first = first
        self._bookmarks = bookmarks
        self._clock = context.clock
        self._tick = asyncio.Event()
        self._ended = False
        self._timers: list[Timer] = [context.clock.call_later(seconds, self._end)]
        if bookmarks:
            self._timers.append(context.clock.call_later(BOOKMARK_SECONDS, self._remind))
        self._reminder_due = False
        self._waiting: asyncio.Task[Any] | None = None

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._first:
            first, self._first = self._first, []
            if lines := self._writer.initial(first):
                return lines
        while not self._ended:
            lines = await self._next()
            if lines:
                return lines
        await self.aclose()
        raise StopAsyncIteration

    async def _next(self) -> bytes:
        """The next lines, a bookmark when one is due, nothing when the watcher need not know."""
        if self._waiting is None:
            self._waiting = asyncio.ensure_future(anext(self._changes))
        tick = asyncio.ensure_future(self._tick.wait())
        try:
            await asyncio.wait([self._waiting, tick], return_when=asyncio.FIRST_COMPLETED)
        finally:
            tick.cancel()
        if self._waiting.done():
            return self._received(self._waiting)
        self._tick.clear()
        if self._reminder_due and not self._ended:
            self._reminder_due = False
            return self._writer.bookmark(self._changes.revision)
        return self._writer.bookmark(self._changes.revision) if self._ended and self._bookmarks else b""

    def _received(self, done: "asyncio.Task[Any]") -> bytes:
        self._waiting = None
        try:
            return self._writer.changes(done.result())
        except (StopAsyncIteration, SlowWatcher):
            self._ended = True
            return b""
        except Compacted as error:
            self._ended = True
            return _error_line(gone(f"too old resource version ({error.revision})"))
        except StoreError as error:
            self._ended = True
            return _error_line(ApiError(500, "InternalError", str(error)))

    def _end(self) -> None:
        self._ended = True
        self._tick.set()

    def _remind(self) -> None:
        self._reminder_due = True
        self._tick.set()
        self._timers[1:] = [self._clock.call_later(BOOKMARK_SECONDS, self._remind)]

    async def aclose(self) -> None:
        self._ended = True
        for timer in self._timers:
            timer.cancel()
        if self._waiting is not None:
            self._waiting.cancel()
        self._changes.close()
