"""Responses: whole objects by slicing, Status objects, warnings."""

from collections.abc import Sequence
from typing import Any

from podfit.api import codec
from podfit.api.registry import ResourceInfo
from podfit.apiserver import stored
from podfit.core.errors import ApiError
from podfit.net.wire import Response
from podfit.store.protocol import Record

JSON = {"content-type": "application/json"}


def _headers(warnings: Sequence[str]) -> dict[str, str]:
    if not warnings:
        return JSON
    texts = (text.replace("\\", "\\\\").replace('"', '\\"') for text in warnings)
    return JSON | {"warning": ", ".join(f'299 - "{text}"' for text in texts)}


def record_response(info: ResourceInfo, record: Record, *, status: int = 200, warnings: Sequence[str] = ()) -> Response:
    return Response(status, _headers(warnings), stored.whole(info, record))


def object_response(obj: Any, *, status: int = 200, warnings: Sequence[str] = ()) -> Response:
    """An object that is not in the store in this form: a dry run, a derived answer."""
    return Response(status, _headers(warnings), codec.encode(obj))


def error_response(error: ApiError) -> Response:
    headers = dict(JSON)
    if "retryAfterSeconds" in error.details:
        headers["retry-after"] = str(error.details["retryAfterSeconds"])
    return Response(error.code, headers, codec.encode(error.status()))


def success(details: dict[str, Any], *, code: int | None = None) -> Response:
    """A Status that says it is done."""
    body: dict[str, Any] = {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
    }  # fmt: skip
    if code is not None:
        body = {name: value for name, value in body.items() if name != "details"} | {"code": code}
    return Response(code or 200, JSON, codec.encode(body))
