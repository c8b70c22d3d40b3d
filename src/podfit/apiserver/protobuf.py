"""Kubernetes protobuf bodies, read only: the typed commands of kubectl send them and take JSON back.

`kubectl create namespace`, `create token`, `drain` and their like use Go's typed clients, which write protobuf whatever
the server offers. Only the kinds that they send are known here, as tables of field numbers, so neither generated code
nor a protobuf library is needed. What comes out is what JSON decoding would have given: binary values in base64,
quantities and times as strings, and what Go's JSON omits as empty is left out. A field number that a table does not
have is skipped, as Go skips it; of a field that occurs twice the last counts.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Any, TypeAlias

import msgspec

from podfit.core.errors import ApiError, bad_request
from podfit.core.times import format_time

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\0"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Malformed(ValueError):
    """The bytes are not the message that they should be."""


class _Holds(Enum):
    ONE = auto()
    MANY = auto()
    ENTRIES = auto()


@dataclass(frozen=True, slots=True)
class _Type:
    """How a field travels: its wire type, what its payload means, and the value that stands for "not given"."""

    wire: int
    read: Callable[[Any], Any]
    empty: Any = None
    holds: _Holds = _Holds.ONE


_Message: TypeAlias = Mapping[int, tuple[str, _Type]]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The unsigned number that starts at an offset, and the offset after it."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise _Malformed("unexpected end of the message")
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
    raise _Malformed("a number is longer than 10 bytes")


def _fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Number, wire type and payload of each field of a message, in its order."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if not number:
            raise _Malformed("field number 0")
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, wire, value
            continue
        if wire == _BYTES:
            size, at = _varint(data, at)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise _Malformed(f"field {number} has the unknown wire type {wire}")
        if size > len(data) - at:
            raise _Malformed("unexpected end of the message")
        yield number, wire, data[at : at + size]
        at += size


def _read(message: _Message, data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, wire, payload in _fields(data):
        if number not in message:
            continue
        name, kind = message[number]
        if wire != kind.wire:
            raise _Malformed(f"{name} has wire type {wire} instead of {kind.wire}")
        value = kind.read(payload)
        if kind.holds is _Holds.MANY:
            found.setdefault(name, []).append(value)
        elif kind.holds is _Holds.ENTRIES:
            found.setdefault(name, {}).update(value)
        elif value != kind.empty:
            found[name] = value
        else:
            found.pop(name, None)
    return found


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _Malformed(f"a string is not UTF-8: {error}") from None


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _Malformed(f"fieldsV1 is not JSON: {error}") from None


def _time(data: bytes) -> str | None:
    """RFC 3339; Go writes a time that is not set as an empty message."""
    if not data:
        return None
    parts = _read({1: ("seconds", _NUMBER)}, data)
    try:
        return format_time(_EPOCH + timedelta(seconds=parts.get("seconds", 0)))
    except OverflowError:
        raise _Malformed("a time is out of range") from None


def _int_or_string(data: bytes) -> int | str:
    """Which of the two a value is stands in its first field."""
    found = _read({1: ("text", _FLAG), 2: ("number", _NUMBER), 3: ("words", _TEXT)}, data)
    chosen: int | str = found.get("words", "") if found.get("text") else found.get("number", 0)
    return chosen


def _message(fields: _Message) -> _Type:
    return _Type(_BYTES, lambda data: _read(fields, data))


def _only(kind: _Type, missing: Any) -> _Type:
    """A message around one value, which stands for it in JSON."""
    return _Type(_BYTES, lambda data: _read({1: ("value", kind)}, data).get("value", missing))


def _many(kind: _Type) -> _Type:
    return replace(kind, holds=_Holds.MANY)


def _map(kind: _Type, missing: Any = "") -> _Type:
    """Entries are messages of a key and a value, either of which is left out when empty."""
    entry: _Message = {1: ("key", _TEXT), 2: ("value", kind)}

    def read(data: bytes) -> dict[str, Any]:
        pair = _read(entry, data)
        return {pair.get("key", ""): pair.get("value", missing)}

    return _Type(_BYTES, read, holds=_Holds.ENTRIES)


def _pointer(kind: _Type) -> _Type:
    """A scalar whose zero differs from its absence."""
    return replace(kind, empty=None)


_TEXT = _Type(_BYTES, _text, empty="")
_NUMBER = _Type(_VARINT, _signed, empty=0)
_FLAG = _Type(_VARINT, bool, empty=False)
_BINARY = _Type(_BYTES, _base64, empty="")
_TIME = _Type(_BYTES, _time)
_TEXTS = _many(_TEXT)
_INT_OR_STRING = _Type(_BYTES, _int_or_string)
_QUANTITIES = _map(_only(_TEXT, "0"), "0")

_MANAGED: _Message = {
    1: ("manager", _TEXT), 2: ("operation", _TEXT), 3: ("apiVersion", _TEXT), 4: ("time", _TIME),
    6: ("fieldsType", _TEXT), 7: ("fieldsV1", _only(_Type(_BYTES, _json), None)), 8: ("subresource", _TEXT),
}  # fmt: skip
_OWNER: _Message = {
    1: ("kind", _TEXT), 3: ("name", _TEXT), 4: ("uid", _TEXT), 5: ("apiVersion", _TEXT),
    6: ("controller", _pointer(_FLAG)), 7: ("blockOwnerDeletion", _pointer(_FLAG)),
}  # fmt: skip
_META = _message({
    1: ("name", _TEXT), 2: ("generateName", _TEXT), 3: ("namespace", _TEXT), 4: ("selfLink", _TEXT), 5: ("uid", _TEXT),
    6: ("resourceVersion", _TEXT), 7: ("generation", _NUMBER), 8: ("creationTimestamp", _TIME),
    9: ("deletionTimestamp", _TIME), 10: ("deletionGracePeriodSeconds", _pointer(_NUMBER)), 11: ("labels", _map(_TEXT)),
    12: ("annotations", _map(_TEXT)), 13: ("ownerReferences", _many(_message(_OWNER))), 14: ("finalizers", _TEXTS),
    17: ("managedFields", _many(_message(_MANAGED))),
})  # fmt: skip
_REFERENCE = _message({
    1: ("kind", _TEXT), 2: ("namespace", _TEXT), 3: ("name", _TEXT), 4: ("uid", _TEXT), 5: ("apiVersion", _TEXT),
    6: ("resourceVersion", _TEXT), 7: ("fieldPath", _TEXT),
})  # fmt: skip
_CONDITION = _message({
    1: ("type", _TEXT), 2: ("status", _TEXT), 4: ("lastTransitionTime", _TIME), 5: ("reason", _TEXT),
    6: ("message", _TEXT),
})  # fmt: skip
_SCOPE = _message({1: ("scopeName", _TEXT), 2: ("operator", _TEXT), 3: ("values", _TEXTS)})
_QUOTA = _message({
    1: ("hard", _QUANTITIES), 2: ("scopes", _TEXTS),
    3: ("scopeSelector", _message({1: ("matchExpressions", _many(_SCOPE))})),
})  # fmt: skip
_REQUIREMENT = _message({1: ("key", _TEXT), 2: ("operator", _TEXT), 3: ("values", _TEXTS)})
_SELECTOR = _message({1: ("matchLabels", _map(_TEXT)), 2: ("matchExpressions", _many(_REQUIREMENT))})
_RULE = _message({
    1: ("verbs", _TEXTS), 2: ("apiGroups", _TEXTS), 3: ("resources", _TEXTS), 4: ("resourceNames", _TEXTS),
    5: ("nonResourceURLs", _TEXTS),
})  # fmt: skip
_SUBJECT = _message({1: ("kind", _TEXT), 2: ("apiGroup", _TEXT), 3: ("name", _TEXT), 4: ("namespace", _TEXT)})
_ROLE_REF = _message({1: ("apiGroup", _TEXT), 2: ("kind", _TEXT), 3: ("name", _TEXT)})
_BINDING: _Message = {1: ("metadata", _META), 2: ("subjects", _many(_SUBJECT)), 3: ("roleRef", _ROLE_REF)}
_BOUND_OBJECT = _message({1: ("kind", _TEXT), 2: ("apiVersion", _TEXT), 3: ("name", _TEXT), 4: ("uid", _TEXT)})
_SERVICE_PORT = _message({
    1: ("name", _TEXT), 2: ("protocol", _TEXT), 3: ("port", _NUMBER), 4: ("targetPort", _INT_OR_STRING),
    5: ("nodePort", _NUMBER), 6: ("appProtocol", _pointer(_TEXT)),
})  # fmt: skip
_AFFINITY = _message({1: ("clientIP", _message({1: ("timeoutSeconds", _pointer(_NUMBER))}))})
_SERVICE = _message({
    1: ("ports", _many(_SERVICE_PORT)), 2: ("selector", _map(_TEXT)), 3: ("clusterIP", _TEXT), 4: ("type", _TEXT),
    5: ("externalIPs", _TEXTS), 7: ("sessionAffinity", _TEXT), 8: ("loadBalancerIP", _TEXT),
    9: ("loadBalancerSourceRanges", _TEXTS), 10: ("externalName", _TEXT), 11: ("externalTrafficPolicy", _TEXT),
    12: ("healthCheckNodePort", _NUMBER), 13: ("publishNotReadyAddresses", _FLAG),
    14: ("sessionAffinityConfig", _AFFINITY), 17: ("ipFamilyPolicy", _pointer(_TEXT)), 18: ("clusterIPs", _TEXTS),
    19: ("ipFamilies", _TEXTS), 20: ("allocateLoadBalancerNodePorts", _pointer(_FLAG)),
    21: ("loadBalancerClass", _pointer(_TEXT)), 22: ("internalTrafficPolicy", _pointer(_TEXT)),
    23: ("trafficDistribution", _pointer(_TEXT)),
})  # fmt: skip

_RBAC = "rbac.authorization.k8s.io/v1"
_KINDS: Mapping[tuple[str, str], _Message] = {
    ("v1", "Namespace"): {
        1: ("metadata", _META), 2: ("spec", _message({1: ("finalizers", _TEXTS)})),
        3: ("status", _message({1: ("phase", _TEXT), 2: ("conditions", _many(_CONDITION))})),
    },
    ("v1", "ConfigMap"): {
        1: ("metadata", _META), 2: ("data", _map(_TEXT)), 3: ("binaryData", _map(_BINARY)),
        4: ("immutable", _pointer(_FLAG)),
    },
    ("v1", "Secret"): {
        1: ("metadata", _META), 2: ("data", _map(_BINARY)), 3: ("type", _TEXT), 4: ("stringData", _map(_TEXT)),
        5: ("immutable", _pointer(_FLAG)),
    },
    ("v1", "ServiceAccount"): {
        1: ("metadata", _META), 2: ("secrets", _many(_REFERENCE)),
        3: ("imagePullSecrets", _many(_message({1: ("name", _TEXT)}))),
        4: ("automountServiceAccountToken", _pointer(_FLAG)),
    },
    ("v1", "ResourceQuota"): {
        1: ("metadata", _META), 2: ("spec", _QUOTA),
        3: ("status", _message({1: ("hard", _QUANTITIES), 2: ("used", _QUANTITIES)})),
    },
    ("v1", "Service"): {1: ("metadata", _META), 2: ("spec", _SERVICE)},
    (_RBAC, "Role"): {1: ("metadata", _META), 2: ("rules", _many(_RULE))},
    (_RBAC, "RoleBinding"): _BINDING,
    (_RBAC, "ClusterRole"): {
        1: ("metadata", _META), 2: ("rules", _many(_RULE)),
        3: ("aggregationRule", _message({1: ("clusterRoleSelectors", _many(_SELECTOR))})),
    },
    (_RBAC, "ClusterRoleBinding"): _BINDING,
    ("scheduling.k8s.io/v1", "PriorityClass"): {
        1: ("metadata", _META), 2: ("value", _NUMBER), 3: ("globalDefault", _FLAG), 4: ("description", _TEXT),
        5: ("preemptionPolicy", _pointer(_TEXT)),
    },
    ("authentication.k8s.io/v1", "TokenRequest"): {
        1: ("metadata", _META),
        2: ("spec", _message({1: ("audiences", _TEXTS), 3: ("boundObjectRef", _BOUND_OBJECT),
                              4: ("expirationSeconds", _pointer(_NUMBER))})),
    },
}  # fmt: skip
_DELETE_OPTIONS: _Message = {
    1: ("gracePeriodSeconds", _pointer(_NUMBER)),
    2: ("preconditions", _message({1: ("uid", _pointer(_TEXT)), 2: ("resourceVersion", _pointer(_TEXT))})),
    3: ("orphanDependents", _pointer(_FLAG)), 4: ("propagationPolicy", _pointer(_TEXT)), 5: ("dryRun", _TEXTS),
    6: ("ignoreStoreReadErrorWithClusterBreakingPotential", _pointer(_FLAG)),
}  # fmt: skip
_ENVELOPE: _Message = {
    1: ("typeMeta", _message({1: ("apiVersion", _TEXT), 2: ("kind", _TEXT)})),
    2: ("raw", _Type(_BYTES, bytes)), 3: ("contentEncoding", _TEXT), 4: ("contentType", _TEXT),
}  # fmt: skip


def decode(body: bytes) -> dict[str, Any]:
    """The document in an enveloped body. Raises 400 when it is malformed, 415 when its kind is not read as protobuf."""
    if not body.startswith(MAGIC):
        raise bad_request("couldn't parse the body as protobuf: it does not begin with the prefix of Kubernetes")
    try:
        envelope = _read(_ENVELOPE, body[len(MAGIC) :])
        types = envelope.get("typeMeta", {})
        document = _read(_layout(types, envelope), envelope.get("raw", b""))
    except _Malformed as error:
        raise bad_request(f"couldn't parse the body as protobuf: {error}") from None
    return {**types, **document}


def _layout(types: Mapping[str, str], envelope: Mapping[str, Any]) -> _Message:
    version, kind = types.get("apiVersion", ""), types.get("kind", "")
    if not version or not kind:
        raise _Malformed("its envelope does not tell the apiVersion and kind")
    for name in ("contentEncoding", "contentType"):
        if given := envelope.get(name):
            raise _unsupported(f'{name} "{given}" within protobuf is not read by this server')
    found = _DELETE_OPTIONS if kind == "DeleteOptions" else _KINDS.get((version, kind))  # every group has its options
    if found is None:
        raise _unsupported(f"{kind} in version {version} is not read as protobuf by this server, send application/json")
    return found


def _unsupported(text: str) -> ApiError:
    return ApiError(415, "UnsupportedMediaType", text, {"causes": [{"message": MEDIA_TYPE}]})
