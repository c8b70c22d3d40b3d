"""Kubernetes protobuf bodies, read only: the typed commands of kubectl send them and take JSON back.

`kubectl create deployment`, `create token`, `auth can-i` and their like use Go's typed clients, which write protobuf
whatever the server offers. Every kind that is served can be read: `numbers` has the published field numbers, the
Structs say what the fields hold (`layouts`), and `wire` reads by both, so neither generated code nor a protobuf library
is needed.
"""

from collections.abc import Mapping
from typing import Any

from podfit.api.meta.base import Document
from podfit.apiserver.request.protobuf.layouts import layout_of
from podfit.apiserver.request.protobuf.wire import BYTES, TEXT, FieldType, Layout, Malformed, message, read
from podfit.core.errors import ApiError, bad_request

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\0"
WITHOUT_PREFIX = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"

_TYPE_META: Layout = {1: ("apiVersion", TEXT), 2: ("kind", TEXT)}
_ENVELOPE: Layout = {
    1: ("typeMeta", message(lambda: _TYPE_META)),
    2: ("raw", FieldType(BYTES, bytes)),
    3: ("contentEncoding", TEXT),
    4: ("contentType", TEXT),
}


def decode(body: bytes) -> Document:
    """The document in an enveloped body. Raises 400 when it is malformed, 415 when its kind is not read as protobuf."""
    if not body.startswith(MAGIC):
        raise bad_request(f"couldn't parse the body as protobuf: {WITHOUT_PREFIX}")
    try:
        envelope = read(_ENVELOPE, body[len(MAGIC) :])
        types = envelope.get("typeMeta", {})
        document = read(_layout(types, envelope), envelope.get("raw", b""))
    except Malformed as error:
        raise bad_request(f"couldn't parse the body as protobuf: {error}") from None
    except RecursionError:
        raise bad_request("couldn't parse the body as protobuf: it is nested too deeply") from None
    return {**types, **document}


def _layout(types: Mapping[str, str], envelope: Mapping[str, Any]) -> Layout:
    version, kind = types.get("apiVersion", ""), types.get("kind", "")
    if not version or not kind:
        raise Malformed("its envelope does not tell the apiVersion and kind")
    for name in ("contentEncoding", "contentType"):
        if given := envelope.get(name):
            raise _unsupported(f'{name} "{given}" within protobuf is not read by this server')
    found = layout_of(version, kind)
    if found is None:
        raise _unsupported(f"{kind} in version {version} is not read as protobuf by this server, send application/json")
    return found


def _unsupported(text: str) -> ApiError:
    return ApiError(415, "UnsupportedMediaType", text, {"causes": [{"message": MEDIA_TYPE}]})
