"""GET of one object, and lists.

A list that is cut by `limit` names the revision it shows in its continue token, so the next part shows the same moment;
when that moment has been compacted away the client gets 410 and begins anew.
"""

import base64
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from podfit.api.registry import ResourceInfo
from podfit.apiserver import stored
from podfit.apiserver.context import Context
from podfit.apiserver.forms import WHOLE, Shape, check_form, partial, partial_list, wanted_form
from podfit.apiserver.listed import Lists
from podfit.apiserver.selection import Selection
from podfit.apiserver.stored import Stored
from podfit.apiserver.tables import list_table
from podfit.apiserver.target import Target
from podfit.apiserver.verbs.answers import JSON, object_response, record_response
from podfit.apiserver.verbs.options import ListOptions, revision_of
from podfit.core.errors import ApiError, bad_request, gone
from podfit.core.times import format_time
from podfit.net.wire import Request, Response
from podfit.store.protocol import Compacted, FutureRevision, Record
from podfit.store.protocol import Page as StorePage

EXPIRED = "The resourceVersion for the provided list is too old."
EXPIRED_TOKEN = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter."
)
TOKEN_VERSION = "meta.k8s.io/v1"
BATCH = 500  # records looked at at once when a selector thins them out


class _Token(msgspec.Struct, frozen=True):
    v: str
    rv: int
    start: str


class Page(msgspec.Struct, frozen=True):
    """What a list found. `remaining` is None where a selector keeps it from being known."""

    info: ResourceInfo
    records: Sequence[Record]
    revision: int
    continue_: str = ""
    remaining: int | None = None
    place: str | None = None
    """What was asked for, when that is all there is from somewhere on; None where a selector thinned it out."""

    def metadata(self) -> dict[str, Any]:
        meta: dict[str, Any] = {"resourceVersion": str(self.revision)}
        if self.continue_:
            meta["continue"] = self.continue_
            if self.remaining:
                meta["remainingItemCount"] = self.remaining
        return meta

    def response(self, lists: Lists) -> Response:
        info = self.info
        start = {"kind": info.list_kind, "apiVersion": info.group_version, "metadata": self.metadata()}
        opening = msgspec.json.encode(start)[:-1] + b',"items":['
        if self.place is not None:
            return Response(200, JSON, lists.body(info, self.place, self.records, opening))
        return Response(200, JSON, b"".join((opening, *stored.items(info, self.records), b"]}\n")))


async def get(context: Context, target: Target, request: Request) -> Response:
    info = target.info
    assert info is not None
    form = wanted_form(request, target.subresource)
    check_form(form, info, of_list=False)
    revision_of(request.param("resourceVersion"))
    record = await Stored[Any](context.store, info).record(target.namespace, target.name)
    if form == WHOLE:
        return record_response(info, record)
    if form.shape is Shape.PARTIAL:
        return object_response(partial(stored.decoded(info, record).metadata, form))
    metadata = {"resourceVersion": str(record.mod_revision)}
    return object_response(list_table(info, [record], metadata, _now(context), request, form))


async def list_(context: Context, target: Target, request: Request) -> Response:
    form = wanted_form(request)
    assert target.info is not None
    check_form(form, target.info, of_list=True)
    page = await matching(context, target, request)
    if form == WHOLE:
        return page.response(context.lists)
    if form.shape is Shape.PARTIAL_LIST:
        objects = [stored.decoded(page.info, each) for each in page.records]
        return object_response(partial_list(objects, page.metadata(), form))
    return object_response(list_table(page.info, page.records, page.metadata(), _now(context), request, form))


def _now(context: Context) -> str:
    return format_time(context.clock.now())


async def matching(context: Context, target: Target, request: Request) -> Page:
    """The records that the request's selectors, limit and continue token ask for."""
    info = target.info
    assert info is not None
    selection = Selection.of(info, request)
    options = ListOptions.of(request, watch=False)
    # The "present" of a client that has seen a later one is not the present yet.
    await check_reached(context, options.version)
    limit, prefix = options.limit, stored.prefix(info, target.namespace)
    revision, after = _start(options, prefix)
    if not selection:
        page = await _page(context, prefix, after=after, limit=limit, revision=revision)
        found_all = _finished(info, prefix, page.records, page.revision, page.remaining)
        return replace(found_all, place=f"{prefix} {after} {limit}")
    found: list[Record] = []
    while True:
        page = await _page(context, prefix, after=after, limit=BATCH if limit else 0, revision=revision)
        revision = page.revision
        for index, record in enumerate(page.records):
            if selection.matches(record):
                found.append(record)
                if selection.names_one(target.namespace):
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
    token = msgspec.json.encode(_Token(TOKEN_VERSION, revision, records[-1].key.removeprefix(prefix)))
    continue_ = base64.urlsafe_b64encode(token).decode().rstrip("=")
    return Page(info, records, revision, continue_, remaining if counted else None)


def _start(options: ListOptions, prefix: str) -> tuple[int, str]:
    """The revision to show (0 = now) and the key to begin behind."""
    if options.continue_:
        token = _read_token(options.continue_)
        return token.rv, prefix + token.start
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
    try:
        read = msgspec.json.decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)), type=_Token)
    except (ValueError, msgspec.DecodeError):
        raise bad_request("invalid continue token: continue key is not valid: it is not one of this server's") from None
    if read.v != TOKEN_VERSION or read.rv < 1:
        raise bad_request(f"invalid continue token: continue key is not valid: unknown version {read.v!r}")
    return read


async def _page(context: Context, prefix: str, *, after: str, limit: int, revision: int) -> StorePage:
    try:
        return await context.store.list(prefix, after=after, limit=limit, revision=revision)
    except Compacted:
        raise gone(EXPIRED_TOKEN if after else EXPIRED) from None
    except FutureRevision as error:
        raise too_large(revision, error.current) from None
