"""HTTP syntax: request targets, parser errors as responses, dates. Pure but for the date."""

import time
from collections.abc import Iterable
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote, urlsplit

from aiohttp.http_exceptions import HttpProcessingError, LineTooLong

from podfit.core.errors import ApiError, bad_request

TARGET_LIMIT = 64 * 1024
HEADER_LIMIT = 32 * 1024  # of one header; differs from TARGET_LIMIT, which tells the two apart in aiohttp's error
HEADERS_LIMIT = 128
HEAD_LIMIT = 256 * 1024  # of all headers together
PARAMETERS_LIMIT = 10_000  # of a query, as in Go


class BadRequest(Exception):
    """A request that cannot be read to its end; the connection closes after the answer."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(error.message)
        self.error = error


class NoRoom(BadRequest):
    """The rest of the request is not even waited for, because there is no room for it."""


def split_target(target: str) -> tuple[str, dict[str, tuple[str, ...]]]:
    """Path and query of a request target.

    The path is decoded, except that a slash inside a segment stays `%2F`, because it separates nothing, and a percent
    sign `%25`, so that the two cannot be confused.
    """
    if not target.startswith("/"):
        parts = urlsplit(target)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise BadRequest(bad_request(f"the request target {target[:100]!r} is not a path"))
        target = f"{parts.path or '/'}?{parts.query}"
    path, _, text = target.partition("?")
    if "%" in path:
        path = "/".join(unquote(part).replace("%", "%25").replace("/", "%2F") for part in path.split("/"))
    return path, split_query(text) if text else {}


def split_query(text: str) -> dict[str, tuple[str, ...]]:
    """The values of each parameter, in their order. Raises Refused for too many of them."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=PARAMETERS_LIMIT)
    except ValueError:
        raise BadRequest(bad_request(f"the request has more than {PARAMETERS_LIMIT} query parameters")) from None
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return {name: tuple(given) for name, given in values.items()}


def join_headers(lines: Iterable[tuple[str, str]]) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Headers by name in lower case, what came several times joined by commas; and these with their values as they
    came. Raises BadRequest when all are too large together."""
    headers: dict[str, str] = {}
    repeated: dict[str, list[str]] = {}
    size = 0
    for name, value in lines:
        name = name.lower()
        size += len(name) + len(value)
        if name in headers:
            repeated.setdefault(name, [headers[name]]).append(value)
        else:
            headers[name] = value
    if size > HEAD_LIMIT:
        raise BadRequest(ApiError(431, "BadRequest", f"the request's headers are larger than {HEAD_LIMIT} bytes"))
    for name, values in repeated.items():
        headers[name] = ", ".join(values)
    return headers, {name: tuple(values) for name, values in repeated.items()} if repeated else {}


def parse_error(error: HttpProcessingError) -> ApiError:
    """What aiohttp's parser refused, as the HTTP status that says so."""
    if isinstance(error, LineTooLong):
        if error.args[1] == TARGET_LIMIT:
            return ApiError(414, "BadRequest", f"the request target is longer than {TARGET_LIMIT} bytes")
        return ApiError(431, "BadRequest", f"a request header is longer than {HEADER_LIMIT} bytes")
    if error.message == "Too many headers received":
        return ApiError(431, "BadRequest", f"the request has more than {HEADERS_LIMIT} headers")
    return bad_request("the request is not valid HTTP")


def phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def http_date() -> str:
    return _date_of(int(time.time()))


@lru_cache(maxsize=1)
def _date_of(second: int) -> str:
    return formatdate(second, usegmt=True)
