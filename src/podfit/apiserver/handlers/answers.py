"""Responses: objects, lists and Status objects as bytes, and warning headers."""

from collections.abc import Awaitable, Sequence

import msgspec
from msgspec.structs import replace

from podfit.api.meta import codec
from podfit.api.meta.base import Document, Object
from podfit.api.meta.resource_info import ResourceInfo
from podfit.apiserver.context import Context
from podfit.apiserver.handlers.tables import object_table
from podfit.apiserver.registry import stored
from podfit.apiserver.request.representations import WHOLE, Representation, Shape, partial
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core import go_json
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.net.wire import Request, Response
from podfit.store.protocol import Record

JSON = {"content-type": "application/json"}
LONGEST_WARNING, LONGEST_WARNINGS = 256, 4096  # characters, of one and of all: clients bound their headers


def warning_headers(warnings: Sequence[str]) -> dict[str, str]:
    """Each warning once. When they are too long together, each is cut, and those that do not fit then are left out."""
    if not warnings:
        return JSON
    told = list(dict.fromkeys(warnings))
    if sum(map(len, told)) <= LONGEST_WARNINGS:
        return JSON | {"warning": ", ".join(map(warning, told))}
    kept, room = [], LONGEST_WARNINGS
    for text in told:
        entry = warning(text[:LONGEST_WARNING])
        room -= len(entry)
        if room < 0:
            break
        kept.append(entry)
    return JSON | {"warning": ", ".join(kept)}


async def told(texts: Sequence[str], answer: Awaitable[Response]) -> Response:
    """The answer or the refusal with these warnings before its own."""
    try:
        found = await answer
    except ApiError as error:
        error.warnings = (*texts, *error.warnings)
        raise
    if not texts:
        return found
    said = ", ".join(filter(None, (*map(warning, texts), found.headers.get("warning", ""))))
    return replace(found, headers={**found.headers, "warning": said})


def warning(text: str) -> str:
    """One warning as headers have it. It quotes what the client wrote, so it is cleaned."""
    return f'299 - "{_quoted(text)}"'


def _quoted(text: str) -> str:
    printable = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
    return printable.replace("\\", "\\\\").replace('"', '\\"')


def record_response(info: ResourceInfo, record: Record, *, status: int = 200, warnings: Sequence[str] = ()) -> Response:
    return Response(status, warning_headers(warnings), stored.whole(info, record))


def object_response(obj: Object | Document, *, status: int = 200, warnings: Sequence[str] = ()) -> Response:
    """An object that is not in the store in this form: a dry run, a derived answer."""
    return Response(status, warning_headers(warnings), go_json.escaped(codec.encode(obj)) + b"\n")


def formed(
    context: Context, request_info: RequestInfo, request: Request, representation: Representation, answer: Response
) -> Response:
    """The answer to a write in the form that the client wants; a Status stays as it is."""
    info = request_info.info
    if representation == WHOLE or info is None or not isinstance(answer.body, bytes):
        return answer
    document = msgspec.json.decode(answer.body)
    if document.get("kind") != info.kind:
        return answer
    obj = codec.convert(document, info.type)
    now = format_time(context.clock.now())
    whole = representation.shape is Shape.PARTIAL
    shown = partial(obj.metadata, representation) if whole else object_table(info, obj, now, request, representation)
    return Response(answer.status, answer.headers, go_json.escaped(codec.encode(shown)))


def error_response(error: ApiError) -> Response:
    headers = dict(warning_headers(error.warnings))
    if "retryAfterSeconds" in error.details:
        headers["retry-after"] = str(error.details["retryAfterSeconds"])
    return Response(error.code, headers, go_json.escaped(codec.encode(error.status())) + b"\n")


def not_found_page() -> Response:
    """Of a path of which the API knows nothing."""
    return Response(404, {"content-type": "text/plain; charset=utf-8"}, b"404 page not found\n")


def success(details: Document, *, code: int | None = None) -> Response:
    """A Status that says it is done."""
    body: Document = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    if code is not None:
        body = {name: value for name, value in body.items() if name != "details"} | {"code": code}
    return Response(code or 200, JSON, codec.encode(body) + b"\n")
