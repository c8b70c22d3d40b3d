"""OpenAPI, derived from the Structs.

kubectl asks it three things: whether an endpoint checks fields itself (`fieldValidation`), how lists merge, and what
the fields of a kind are (`explain`, and `apply` of a `List`, which still asks for version 2). Documents are built when
first asked for; their hashes are part of their addresses or their etags, so a client can keep them.
"""

import msgspec

from podfit.api.meta.resource_info import ResourceInfo
from podfit.apiserver.http.openapi import v2, v3
from podfit.apiserver.request.negotiation import negotiated
from podfit.core.errors import ApiError
from podfit.net.wire import Request, Response

_JSON, _TEXT = "application/json", "text/plain; charset=utf-8"


def openapi(path: str, request: Request, infos: tuple[ResourceInfo, ...]) -> Response | None:
    """A document of either version, or version 3's index; None for a path that is none of them."""
    if path == v3.ROOT:
        return Response(200, {"content-type": _TEXT}, msgspec.json.encode(v3.index(infos)))
    if path == v2.ROOT:
        return _v2(request, infos)
    name = path.removeprefix(f"{v3.ROOT}/")
    if name == path:
        return None
    if name not in v3.names(infos):
        return Response(404, {})
    if _chosen(request, (_JSON,)) is None:
        return Response(406, {"vary": "Accept"})
    body, digest = v3.document(infos, name)
    answer = _cached(request, body, digest, _JSON, vary="Accept")
    asked = request.param("hash")
    if asked == digest:
        return Response(answer.status, {**answer.headers, "cache-control": "public, immutable"}, answer.body)
    if asked:
        return Response(301, {**answer.headers, "location": f"{path}?hash={digest}"})
    return answer


def _v2(request: Request, infos: tuple[ResourceInfo, ...]) -> Response:
    """In the first form that the client takes: kubectl takes nothing but protobuf."""
    chosen = _chosen(request, (_JSON, *v2.PROTOBUF))
    if chosen is None:
        raise ApiError(406, "NotAcceptable", f"only the following media types are accepted: {_JSON}, {v2.PROTOBUF[0]}")
    if chosen == _JSON:
        return _cached(request, *v2.document(infos), _JSON, vary="Accept-Encoding")
    return _cached(request, *v2.protobuf(infos), v2.PROTOBUF[0], vary="Accept-Encoding")


def _chosen(request: Request, kinds: tuple[str, ...]) -> str | None:
    return negotiated(request.headers.get("accept", ""), kinds, lambda kind, _: kind)


def _cached(request: Request, body: bytes, digest: str, kind: str, *, vary: str) -> Response:
    headers = {"content-type": kind, "etag": f'"{digest}"', "vary": vary}
    if request.headers.get("if-none-match") == headers["etag"]:
        return Response(304, headers)
    return Response(200, headers, body)
