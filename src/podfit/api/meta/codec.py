"""Encoding and decoding of API objects, in one place, so that quantities and times are known everywhere.

Decoding is typed and strict. JSON `null` means "not given" in Kubernetes, whatever the field's type, so a document that
does not fit at once is tried again without its nulls. Objects are immutable, so those that are told of the same bytes
may share one: a write is heard by everybody who watches, and costs one decoding in a process. In custom resources a
null is a value that their schema judges.
"""

from functools import lru_cache
from typing import Any, TypeVar, cast

import msgspec

from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.structural.custom import OWN, Custom, is_custom
from podfit.core.bounded_cache import cached_within
from podfit.core.quantity import Quantity, canonical

T = TypeVar("T")
NO_QUANTITY = "a quantity must be a string or a number"
LARGE = 16_384  # bytes of an object that is not shared for long
SHARED = 4 * 2**20  # bytes of objects that are: what a busy cluster writes in a second or two


def _encode_scalar(value: Any) -> Any:
    if isinstance(value, Quantity):
        return canonical(value.nano, value.format)
    raise TypeError(f"cannot put {type(value).__name__} on the wire")


def _decode_scalar(kind: type, value: Any) -> Any:
    if kind is Quantity:
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            return Quantity.parse(str(value))
        raise ValueError(NO_QUANTITY)
    raise TypeError(f"no decoder for {kind.__name__}")


_encoder = msgspec.json.Encoder(enc_hook=_encode_scalar)


@lru_cache(maxsize=1024)  # kinds that are declared at run time come and go
def _decoder(kind: Any) -> Any:
    return _CustomDecoder(kind) if is_custom(kind) else msgspec.json.Decoder(kind, dec_hook=_decode_scalar)


class _CustomDecoder:
    def __init__(self, kind: type[Custom]) -> None:
        self._kind = kind

    def decode(self, data: bytes) -> Custom:
        return _custom(msgspec.json.decode(data), self._kind)


def _custom(document: Any, kind: type[Custom]) -> Custom:
    if not isinstance(document, dict):
        raise msgspec.ValidationError(f"Expected `object`, got `{type(document).__name__}`")
    own = {name: document[name] for name in OWN if document.get(name) is not None}
    head = msgspec.convert(without_nulls(own), _Head, dec_hook=_decode_scalar)
    kept = {name: value for name, value in document.items() if name not in OWN}
    return kind(kind=head.kind, api_version=head.api_version, metadata=head.metadata, rest=kept)


class _Head(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = ObjectMeta()


def encode(value: Any) -> bytes:
    """JSON of a Struct, or of plain containers that may hold Structs and quantities."""
    return _encoder.encode(value.document() if isinstance(value, Custom) else value)


def decode(data: bytes, kind: type[T]) -> T:
    """Typed object from JSON. ValidationError says what does not fit and where, DecodeError that it is not JSON."""
    asked: Any = kind
    try:
        decoded: T = _decoder(asked).decode(data)
    except msgspec.ValidationError:
        return convert(msgspec.json.decode(data), kind)
    return decoded


def _decode_once(data: bytes, kind: Any) -> Any:
    return decode(data, kind)


_shared, _shared_large = cached_within(SHARED)(_decode_once), lru_cache(maxsize=2)(_decode_once)


def decode_shared(data: bytes, kind: type[T]) -> T:
    """As `decode`; whoever decodes the same bytes soon after gets the same object, unless it is made of plain dicts. Of
    large objects the last two are shared: all informers of a process hold one copy instead of one each.
    """
    if not issubclass(kind, msgspec.Struct):
        return decode(data, kind)
    share = _shared if len(data) <= LARGE else _shared_large
    asked: Any = kind
    decoded: T = share(data, asked)
    return decoded


def share(data: bytes, obj: Any) -> None:
    """Have `decode_shared` answer with this object, of which the bytes are the encoding."""
    if len(data) <= LARGE:
        _shared.remember(obj, data, type(obj))


def convert(document: Any, kind: type[T]) -> T:
    """Typed object from decoded JSON."""
    if is_custom(kind):
        return cast(T, _custom(document, kind))
    try:
        return msgspec.convert(document, kind, dec_hook=_decode_scalar)
    except msgspec.ValidationError:
        return msgspec.convert(without_nulls(document), kind, dec_hook=_decode_scalar)


def to_dict(value: Any) -> Any:
    """Plain dicts, lists and strings, exactly what `encode` would write."""
    return msgspec.json.decode(encode(value))


_DEEP = frozenset((dict, tuple, list))


def document_of(value: Any) -> Any:
    """The same by way of no text: quicker for small parts of an object, slower for a whole one."""
    return _listed(msgspec.to_builtins(value, enc_hook=_encode_scalar))


def plain(value: Any) -> Any:
    """The same with tuples for lists: what is only compared and encoded need not be gone through again."""
    return msgspec.to_builtins(value, enc_hook=_encode_scalar)


def _listed(value: Any) -> Any:
    kind = type(value)
    if kind is dict:
        return {name: _listed(inner) if type(inner) in _DEEP else inner for name, inner in value.items()}
    return [_listed(inner) for inner in value] if kind in _DEEP else value


def without_nulls(document: Any) -> Any:
    """The document with null members of maps left out, at every depth; shared where nothing changes."""
    if isinstance(document, dict):
        return {key: without_nulls(value) for key, value in document.items() if value is not None}
    if isinstance(document, list):
        return [without_nulls(item) for item in document]
    return document
