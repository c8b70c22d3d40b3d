"""OpenAPI, derived from the Structs.

kubectl asks it three things: whether an endpoint checks fields itself (`fieldValidation`), how lists merge, and what
the fields of a kind are (`explain`, and `apply` of a `List`, which still asks for version 2). Documents are built when
first asked for; their hashes are part of their addresses or their etags, so a client can keep them.
"""

import msgspec

from podfit.api.registry import ResourceInfo
from podfit.apiserver.http.openapi import v2, v3
from podfit.core.errors import ApiError
from podfit.net.wire import Request, Response

_JSON = "application/json"


def openapi(path: str, request: Request, infos: tuple[ResourceInfo, ...]) -> Response | None:
    """A document of either version, or version 3's index; None for a path that is none of them."""
    if path == v3.ROOT:
        return Response(200, {"content-type": _JSON}, msgspec.json.encode(v3.index(infos)))
    if path == v2.ROOT:
        return _v2(request, infos)
    name = path.removeprefix(f"{v3.ROOT}/")
    if name == path or name not in v3.names(infos):
        return None
    body, digest = v3.document(infos, name)
    return _cached(request, body, digest, _JSON)


def _v2(request: Request, infos: tuple[ResourceInfo, ...]) -> Response:
    """In the first form that the client takes: kubectl takes nothing but protobuf."""
    for accepted in request.headers.get("accept", "").split(",") or [""]:
        wanted = accepted.partition(";")[0].strip()
        if wanted in v2.PROTOBUF:
            return _cached(request, *v2.protobuf(infos), v2.PROTOBUF[0])
        if wanted in ("", "*/*", "application/*", _JSON):
            return _cached(request, *v2.document(infos), _JSON)
    raise ApiError(406, "NotAcceptable", f"only the following media types are accepted: {_JSON}, {v2.PROTOBUF[0]}")


def _cached(request: Request, body: bytes, digest: str, kind: str) -> Response:
    headers = {"content-type": kind, "etag": f'"{digest}"'}
    if request.headers.get("if-none-match") == headers["etag"]:
        return Response(304, headers)
    return Response(200, headers, body)
