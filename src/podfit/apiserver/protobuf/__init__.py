"""Kubernetes protobuf bodies, read only: the typed commands of kubectl send them and take JSON back.

`kubectl create namespace`, `create token`, `auth can-i` and their like use Go's typed clients, which write protobuf
whatever the server offers. Only the kinds that they send are known here, as tables of field numbers
(`kinds`, `workloads`; `wire` reads by them), so neither generated code nor a protobuf library is needed.
"""

from collections.abc import Mapping
from typing import Any

from podfit.apiserver.protobuf.kinds import DELETE_OPTIONS, KINDS
from podfit.apiserver.protobuf.wire import BYTES, TEXT, FieldType, Layout, Malformed, Unread, message, read
from podfit.apiserver.protobuf.workloads import WORKLOADS
from podfit.core.errors import ApiError, bad_request

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\0"

_ENVELOPE: Layout = {
    1: ("typeMeta", message({1: ("apiVersion", TEXT), 2: ("kind", TEXT)})),
    2: ("raw", FieldType(BYTES, bytes)), 3: ("contentEncoding", TEXT), 4: ("contentType", TEXT),
}  # fmt: skip


def decode(body: bytes) -> dict[str, Any]:
    """The document in an enveloped body. Raises 400 when it is malformed, 415 when its kind is not read as protobuf."""
    if not body.startswith(MAGIC):
        raise bad_request("couldn't parse the body as protobuf: it does not begin with the prefix of Kubernetes")
    types: dict[str, str] = {}
    try:
        envelope = read(_ENVELOPE, body[len(MAGIC) :])
        types = envelope.get("typeMeta", {})
        document = read(_layout(types, envelope), envelope.get("raw", b""))
    except Unread as error:
        text = f"{types.get('kind')} has what is not read as protobuf by this server, send application/json: {error}"
        raise _unsupported(text) from None
    except Malformed as error:
        raise bad_request(f"couldn't parse the body as protobuf: {error}") from None
    return {**types, **document}


def _layout(types: Mapping[str, str], envelope: Mapping[str, Any]) -> Layout:
    version, kind = types.get("apiVersion", ""), types.get("kind", "")
    if not version or not kind:
        raise Malformed("its envelope does not tell the apiVersion and kind")
    for name in ("contentEncoding", "contentType"):
        if given := envelope.get(name):
            raise _unsupported(f'{name} "{given}" within protobuf is not read by this server')
    found = DELETE_OPTIONS if kind == "DeleteOptions" else _known(version, kind)  # every group has its options
    if found is None:
        raise _unsupported(f"{kind} in version {version} is not read as protobuf by this server, send application/json")
    return found


def _known(version: str, kind: str) -> Layout | None:
    return KINDS.get((version, kind)) or WORKLOADS.get((version, kind))


def _unsupported(text: str) -> ApiError:
    return ApiError(415, "UnsupportedMediaType", text, {"causes": [{"message": MEDIA_TYPE}]})
