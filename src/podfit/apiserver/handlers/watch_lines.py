"""Encodes watch events as lines, once for each form that watchers take.

An event is encoded once for each kind of watcher that wants the same bytes, not once for each watcher. With a selector
the client sees a collection of its own: an object that begins to match is ADDED to it, one that ceases to is DELETED.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from podfit.api.meta import codec
from podfit.api.meta.base import Document
from podfit.api.meta.resource_info import ResourceInfo
from podfit.apiserver.context import Context
from podfit.apiserver.handlers.selection import Selection
from podfit.apiserver.handlers.tables import definitions, included, rows, table
from podfit.apiserver.registry import stored
from podfit.apiserver.request.representations import WHOLE, Representation, Shape, partial
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.net.wire import Request
from podfit.store.protocol import Change, Page, Record

MOST_SMALL = 1024  # lines of objects of up to 16 KiB that are kept for other watchers
INITIAL_END = {"k8s.io/initial-events-end": "true"}


def error_line(error: ApiError) -> bytes:
    return codec.encode({"type": "ERROR", "object": error.status()}) + b"\n"


class WatchLines:
    """Turns changes into lines for one watcher."""

    def __init__(
        self,
        context: Context,
        info: ResourceInfo,
        selection: Selection,
        representation: Representation,
        request: Request,
    ) -> None:
        self._context = context
        self._info = info
        self._selection = selection
        self._representation = representation
        self._include = included(request)
        self._columns_due = True

    def initial(self, page: Page, *, end: bool) -> Iterator[bytes]:
        """What is there already; `end` says in a bookmark that this was all of it."""
        for record in page.records:
            yield self._line("ADDED", record) if self._selected(record) else b""
        if end:
            yield self.bookmark(page.revision, INITIAL_END)

    def changes(self, batch: Iterable[Change]) -> Iterator[bytes]:
        """A line for each, empty where it does not concern the watcher."""
        return map(self.line, batch)

    def line(self, change: Change) -> bytes:
        """Empty where it does not concern the watcher."""
        kind = self._kind(change)
        return self._line(kind, change.record) if kind else b""

    def bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> bytes:
        meta: Document = {"resourceVersion": str(revision)}
        if annotations:
            meta["annotations"] = annotations
        obj: Document = {"kind": self._info.kind, "apiVersion": self._info.group_version, "metadata": meta}
        if self._representation.shape is Shape.TABLE:
            now = format_time(self._context.clock.now())
            blank = [None] * len(definitions(self._info))
            cells = self._info.row(self._info.type(), now) if self._info.row else blank
            row = {"cells": cells, "object": partial(meta, self._representation)}
            obj = table(self._info, [row], {"resourceVersion": str(revision)}, self._representation, columns=False)
        elif self._representation != WHOLE:
            obj = partial(meta, self._representation)
        return msgspec.json.encode({"type": "BOOKMARK", "object": obj}) + b"\n"

    def _selected(self, record: Record) -> bool:
        return not self._selection or self._selection.matches(record)

    def _kind(self, change: Change) -> str:
        """What this change is in the watcher's collection; empty when it does not concern it."""
        if not self._selection:
            return "DELETED" if change.deleted else "MODIFIED" if change.previous else "ADDED"
        before = change.previous is not None and self._selected(change.previous)
        after = not change.deleted and self._selected(change.record)
        if change.deleted:
            return "DELETED" if before else ""
        return {(False, True): "ADDED", (True, True): "MODIFIED", (True, False): "DELETED"}.get((before, after), "")

    def _line(self, kind: str, record: Record) -> bytes:
        if self._representation == WHOLE:
            event = _event if len(record.value) <= stored.SMALL else _large_event
            return event(self._info, kind, record.value, record.mod_revision)
        return codec.encode({"type": kind, "object": self._formed(record)}) + b"\n"

    def _formed(self, record: Record) -> Document:
        if self._representation.shape is not Shape.TABLE:
            return partial(stored.decoded(self._info, record).metadata, self._representation)
        now = format_time(self._context.clock.now())
        found = list(rows(self._info, [record], now, self._include, self._representation))
        due, self._columns_due = self._columns_due, False
        metadata = {"resourceVersion": str(record.mod_revision)}
        return table(self._info, found, metadata, self._representation, columns=due)


def _encode_event(info: ResourceInfo, kind: str, value: bytes, revision: int) -> bytes:
    """The line that every watcher of plain objects gets for a change."""
    record = Record("", value, 0, revision)
    return b"".join((b'{"type":"%s","object":' % kind.encode(), *stored.pieces(info, record), b"}\n"))


_event, _large_event = lru_cache(MOST_SMALL)(_encode_event), lru_cache(stored.MOST_LARGE)(_encode_event)
