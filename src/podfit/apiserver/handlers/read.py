"""GET of one object, and lists.

A list that is cut by `limit` names the revision it shows in its continue token, so the next part shows the same moment;
when that moment has been compacted away the client gets 410 and begins anew.
"""

import asyncio
import base64
import string
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import chain

import msgspec
from msgspec.structs import replace

from podfit.api.meta import codec
from podfit.api.meta.base import Document, Object
from podfit.api.meta.resource_info import ResourceInfo
from podfit.apiserver.context import Context
from podfit.apiserver.handlers.answers import JSON, object_response, record_response
from podfit.apiserver.handlers.options import ListOptions, revision_of
from podfit.apiserver.handlers.selection import Selection
from podfit.apiserver.handlers.tables import included, list_table, table, table_row
from podfit.apiserver.registry import stored
from podfit.apiserver.registry.list_cache import LONG, ListCache
from podfit.apiserver.registry.stored import Stored
from podfit.apiserver.request.representations import (
    WHOLE,
    Shape,
    check_representation,
    partial,
    partial_list,
    wanted_representation,
)
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.errors import ApiError, bad_request, gone
from podfit.core.fields import go_value
from podfit.core.go_json import syntax_error
from podfit.core.times import format_time
from podfit.net.wire import Pieces, Request, Response
from podfit.store.index import size_of
from podfit.store.protocol import Compacted, FutureRevision, Record
from podfit.store.protocol import Page as StorePage

EXPIRED = "The resourceVersion for the provided list is too old."
EXPIRED_TOKEN = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
TOKEN_VERSION = "meta.k8s.io/v1"
_LETTERS = frozenset(string.ascii_letters + string.digits + "-_\r\n")
_LAST = "~"  # behind what a name can go on with
COMPARED = 100_000  # labels or fields that are compared in one turn of the event loop
BYTES_OF_ONE = 128  # of an object, whose decoding takes as long as a comparison
TURN_BYTES, DECODED = 512 * 1024, 1024  # of objects decoded in one turn; what an object adds, however small
PIECE_BYTES = 16 * 1024  # of objects decoded for a piece of a long list, which is a turn of the event loop
MOST_KEPT = stored.MOST_SMALL // 4  # bytes of a list whose objects are kept as they are decoded for its rows
BATCH = 500  # records looked at at once when a selector thins them out


class _Token(msgspec.Struct, frozen=True):
    v: str = ""
    rv: int = 0
    start: str = ""


class Page(msgspec.Struct, frozen=True):
    """What a list found. `remaining` is None where a selector keeps it from being known."""

    info: ResourceInfo
    records: Sequence[Record]
    revision: int
    continue_: str = ""
    remaining: int | None = None
    place: str | None = None
    """What was asked for, when that is all there is from somewhere on; None where a selector thinned it out."""

    def metadata(self) -> Document:
        meta: Document = {"resourceVersion": str(self.revision)}
        if self.continue_:
            meta["continue"] = self.continue_
            if self.remaining:
                meta["remainingItemCount"] = self.remaining
        return meta

    def response(self, lists: ListCache) -> Response:
        info = self.info
        start = {"kind": info.list_kind, "apiVersion": info.group_version, "metadata": self.metadata()}
        opening = msgspec.json.encode(start)[:-1] + b',"items":['
        return Response(200, JSON, lists.body(info, self.place, self.records, opening))


async def get(context: Context, request_info: RequestInfo, request: Request) -> Response:
    info = request_info.info
    assert info is not None
    representation = wanted_representation(request, request_info)
    check_representation(representation, info, of_list=False)
    if version := revision_of(request.param("resourceVersion")):
        await check_reached(context, version)
    objects: Stored[Object] = Stored(context.store, info)
    record = await objects.record(request_info.namespace, request_info.name)
    if representation == WHOLE:
        return record_response(info, record)
    if representation.shape is Shape.PARTIAL:
        return object_response(partial(stored.decoded(info, record).metadata, representation))
    metadata = {"resourceVersion": str(record.mod_revision)}
    return object_response(list_table(info, [record], metadata, _now(context), request, representation))


async def list_(context: Context, request_info: RequestInfo, request: Request) -> Response:
    representation = wanted_representation(request, request_info)
    assert request_info.info is not None
    check_representation(representation, request_info.info, of_list=True)
    page = await matching(context, request_info, request)
    if representation == WHOLE:
        return page.response(context.lists)
    info, decode = page.info, stored.decoded_once if size_of(page.records) > MOST_KEPT else stored.decoded
    if representation.shape is Shape.PARTIAL_LIST:
        whole = partial_list([], page.metadata(), representation)
        return await _list_response(
            whole, "items", page, lambda record: partial(decode(info, record).metadata, representation)
        )
    now, include = _now(context), included(request)
    whole = table(info, [], page.metadata(), representation)
    return await _list_response(
        whole, "rows", page, lambda record: table_row(info, record, decode(info, record), now, include, representation)
    )


async def _list_response(whole: Document, name: str, page: Page, item: Callable[[Record], Document]) -> Response:
    """The document with an item for each record under `name`, its last member; a long one is made as it is sent."""
    size = size_of(page.records)
    if size <= LONG:
        whole[name] = [item(record) async for record in _in_turns(page.records)]
        return object_response(whole)
    opening = codec.encode(whole)
    assert opening.endswith(b"[]}"), f"{name} is not the last member"
    parts = chain((opening[:-2],), _encoded(page.records, item), (b"]}\n",))
    return Response(200, JSON, Pieces(parts, size=size, piece=PIECE_BYTES))


def _encoded(records: Sequence[Record], item: Callable[[Record], Document]) -> Iterator[bytes]:
    """The items of a list without its brackets, a few together."""
    comma = b""
    some, size = list[Document](), 0
    for index, record in enumerate(records, 1):
        some.append(item(record))
        size += len(record.value) + DECODED
        if size > PIECE_BYTES or index == len(records):
            part = comma + codec.encode(some)[1:-1]
            some, size, comma = [], 0, b","  # before it waits for a client: they are as large as the part
            yield part
            del part


async def _in_turns(records: Sequence[Record]) -> AsyncIterator[Record]:
    """The records, with turns for others in between."""
    size = 0
    for record in records:
        yield record
        size += len(record.value) + DECODED
        if size > TURN_BYTES:
            size = 0
            await asyncio.sleep(0)


def _now(context: Context) -> str:
    return format_time(context.clock.now())


async def matching(context: Context, request_info: RequestInfo, request: Request) -> Page:
    """The records that the request's selectors, limit and continue token ask for."""
    info = request_info.info
    assert info is not None
    selection = Selection.of(info, request)
    options = ListOptions.of(request, watch=False)
    # The "present" of a client that has seen a later one is not the present yet.
    await check_reached(context, options.version)
    prefix = stored.prefix(info, request_info.namespace)
    # Upstream answers for "0" from its cache, which holds no parts of lists; events are not cached.
    limit = 0 if options.present and info.kind != "Event" else options.limit
    revision, after = _start(options, prefix)
    if not selection:
        page = await _page(context, prefix, after=after, limit=limit, revision=revision)
        found_all = _finished(info, prefix, page.records, page.revision, page.remaining)
        return replace(found_all, place=f"{prefix} {after} {limit}")
    found: list[Record] = []
    spent = 0
    while True:
        page = await _page(context, prefix, after=after, limit=BATCH if limit else 0, revision=revision)
        revision = page.revision
        for index, record in enumerate(page.records):
            spent += selection.comparisons + len(record.value) // BYTES_OF_ONE
            if spent > COMPARED:
                spent = 0
                await asyncio.sleep(0)
            if selection.matches(record):
                found.append(record)
                if selection.names_one(request_info.namespace):
                    return Page(info, found, revision)
                if len(found) == limit:
                    more = page.remaining + len(page.records) - index - 1
                    return _finished(info, prefix, found, revision, more, counted=False)
        if not page.remaining:
            return Page(info, found, revision)
        after = page.records[-1].key


def _finished(
    info: ResourceInfo, prefix: str, records: Sequence[Record], revision: int, remaining: int, *, counted: bool = True
) -> Page:
    if not remaining:
        return Page(info, records, revision)
    continue_ = _written(_Token(TOKEN_VERSION, revision, f"{records[-1].key.removeprefix(prefix)}\0"))
    return Page(info, records, revision, continue_, remaining if counted else None)


def _written(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _start(options: ListOptions, prefix: str) -> tuple[int, str]:
    """The revision to show (0 = now) and the key to begin behind. A token of revision -1 goes on in the present."""
    if options.continue_:
        token = _read_token(options.continue_)
        return max(token.rv, 0), prefix + _before(token.start)
    return (options.version if options.exact else 0), ""


async def check_reached(context: Context, version: int) -> None:
    """Raises when the version is none yet, whichever server of this store would have written it."""
    if version > context.store.revision and version > (newest := await context.store.newest()):
        raise too_large(version, newest)


def too_large(wanted: int, current: int) -> ApiError:
    """The client has seen a future that this server has not."""
    text = f"Timeout: Too large resource version: {wanted}, current: {current}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return ApiError(504, "Timeout", text, {"causes": causes, "retryAfterSeconds": 1})


def _read_token(token: str) -> _Token:
    """Raises 400 for what no server wrote."""
    text = _unencoded(token)
    try:
        read = msgspec.json.decode(text, type=_Token)
    except (ValueError, msgspec.DecodeError) as error:
        raise _bad_token(syntax_error(text) or str(error)) from None
    if read.v != TOKEN_VERSION:
        raise _bad_token(f"server does not recognize this encoded version {go_value(read.v)}")
    if read.rv == 0:
        raise _bad_token(f"incorrect encoded start resourceVersion (version {TOKEN_VERSION})")
    if not read.start:
        raise _bad_token(f"encoded start key empty (version {TOKEN_VERSION})")
    if any(part in ("", ".", "..") for part in read.start.removeprefix("/").split("/")):
        raise _bad_token(f"{read.start}")
    return read


def _unencoded(token: str) -> bytes:
    """Base64 for URLs without padding, in which line ends do not count."""
    odd = next((index for index, letter in enumerate(token) if letter not in _LETTERS), None)
    plain = token.replace("\r", "").replace("\n", "")
    if odd is None and len(plain) % 4 == 1:
        odd = len(token) - 1
    if odd is not None:
        raise _bad_token(f"illegal base64 data at input byte {odd}")
    return base64.urlsafe_b64decode(plain + "=" * (-len(plain) % 4))


def _bad_token(why: str) -> ApiError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")


def _before(start: str) -> str:
    """The key behind which a list goes on that begins with this one."""
    key = start.removeprefix("/")
    return key[:-1] if key.endswith("\0") else key[:-1] + chr(max(ord(key[-1]) - 1, 0)) + _LAST


async def _page(context: Context, prefix: str, *, after: str, limit: int, revision: int) -> StorePage:
    try:
        return await context.store.list(prefix, after=after, limit=limit, revision=revision)
    except Compacted:
        raise (
            gone(EXPIRED_TOKEN, continue_=_written(_Token(TOKEN_VERSION, -1, f"{after.removeprefix(prefix)}\0")))
            if after
            else gone(EXPIRED)
        ) from None
    except FutureRevision as error:
        raise too_large(revision, error.current) from None
