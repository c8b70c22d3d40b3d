"""The protobuf messages that kubectl was compiled with, read out of the program: what Go's clients really write.

Every file of messages is in the program as a compressed descriptor. Google's library builds messages from them, so they
are an encoder that shares nothing with what is tested.
"""

import re
import shutil
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

_GZIP = re.compile(rb"\x1f\x8b\x08\x00{5}\x02\xff")
_NOT_A_POINTER = b"\xc8\xde\x1f\x00"
"""gogoproto.nullable = false, with which Go writes a field even when it is empty."""
_API, _MACHINERY = "k8s.io.api.", "k8s.io.apimachinery.pkg."
_INLINE = (
    "EphemeralContainerCommon",
    "IngressRuleValue",
    "PersistentVolumeSource",
    "ProbeHandler",
    "Rule",
    "VolumeSource",
)
_RENAMED = {"aPIGroup": "apiGroup", "uID": "uid", "Webhooks": "webhooks"}


def _descriptors(program: bytes) -> Iterator[descriptor_pb2.FileDescriptorProto]:
    for match in _GZIP.finditer(program):
        try:
            data = zlib.decompressobj(31).decompress(program[match.start() : match.start() + 1_000_000])
            yield descriptor_pb2.FileDescriptorProto.FromString(data)
        except (zlib.error, ValueError):  # something else that is compressed
            continue


@cache
def pool() -> descriptor_pool.DescriptorPool:
    kubectl = shutil.which("kubectl")
    assert kubectl
    files = {
        descriptor.name: descriptor
        for descriptor in _descriptors(Path(kubectl).read_bytes())
        if descriptor.name.startswith("k8s.io/")
    }
    made = descriptor_pool.DescriptorPool()
    known: set[str] = set()

    def add(name: str) -> None:
        if name in known:
            return
        known.add(name)
        file = files.get(name) or descriptor_pb2.FileDescriptorProto(name=name)
        for imported in file.dependency:
            add(imported)
        made.Add(file)

    for name in files:
        add(name)
    return made


def descriptor(version: str, kind: str) -> Descriptor | None:
    """The message of a kind; None for one that this kubectl does not know."""
    group, _, number = version.rpartition("/")
    package = group.partition(".")[0] or "core"
    try:
        return pool().FindMessageTypeByName(f"{_API}{package}.{number}.{kind}")
    except KeyError:
        return None


def written(field: FieldDescriptor) -> bool:
    """Whether Go writes it even when it is empty."""
    return _NOT_A_POINTER in field.GetOptions().SerializeToString()


def is_inline(field: FieldDescriptor) -> bool:
    """Whether JSON has its members among those of the message around it."""
    kind = field.message_type.name if field.message_type else ""
    return kind in _INLINE or field.name == "localObjectReference"


def json_name(field: FieldDescriptor) -> str:
    return _RENAMED.get(field.name, field.name)


class _Values:
    """Fills fields with what is found nowhere twice, so that no two can be mistaken for each other."""

    def __init__(self) -> None:
        self._count = 0

    def next(self) -> int:
        self._count += 1
        return self._count


def full(kind: Descriptor) -> tuple[bytes, dict[str, Any]]:
    """A message with a value in every field, and what JSON has of it."""
    return _pair(kind, _Values(), empty=False)


def empty(kind: Descriptor) -> tuple[bytes, dict[str, Any]]:
    """A message as Go writes an object in which nothing is set, and what JSON has of it."""
    return _pair(kind, _Values(), empty=True)


def _pair(kind: Descriptor, values: _Values, *, empty: bool) -> tuple[bytes, dict[str, Any]]:
    made = message_factory.GetMessageClass(kind)()
    document = _fill(made, values, empty=empty)
    return made.SerializeToString(), document


def _fill(message: Message, values: _Values, *, empty: bool) -> dict[str, Any]:
    document: dict[str, Any] = {}
    fields: Any = message.DESCRIPTOR.fields
    for field in fields:
        if empty and (field.is_repeated or not written(field)):
            continue
        value = _field(message, field, values, empty=empty)
        if is_inline(field):
            document.update(value)
        elif value is not None:
            document[json_name(field)] = value
    return document


def _field(message: Message, field: FieldDescriptor, values: _Values, *, empty: bool) -> Any:
    """Fill one field; the value of it in JSON, None where there is none."""
    if field.message_type is None:
        raw, shown = _scalar(field, values, empty=empty)
        if field.is_repeated:
            getattr(message, field.name).append(raw)
            return [shown]
        setattr(message, field.name, raw)
        return None if empty else shown
    if field.message_type.GetOptions().map_entry:
        return _entry(getattr(message, field.name), field.message_type, values)
    if field.is_repeated:
        return [_message(getattr(message, field.name).add(), values, empty=empty)]
    part = getattr(message, field.name)
    part.SetInParent()
    return _message(part, values, empty=empty)


def _entry(entries: Any, kind: Descriptor, values: _Values) -> dict[str, Any]:
    key, value = f"key{values.next()}", kind.fields_by_name["value"]
    if value.message_type is not None:
        return {key: _message(entries[key], values, empty=False)}
    entries[key], shown = _scalar(value, values, empty=False)
    return {key: shown}


def _scalar(field: FieldDescriptor, values: _Values, *, empty: bool) -> tuple[Any, Any]:
    """What the message holds, and what JSON has of it."""
    number = 0 if empty else values.next()
    match field.type:
        case FieldDescriptor.TYPE_STRING:
            text = f"text {number}" if number else ""
            return text, text
        case FieldDescriptor.TYPE_BYTES:
            return b"\xff\xef" * bool(number), "/+8="
        case FieldDescriptor.TYPE_BOOL:
            return bool(number), bool(number)
        case FieldDescriptor.TYPE_INT32 | FieldDescriptor.TYPE_INT64:
            return -number, -number
        case _:
            raise AssertionError(f"{field.full_name} has a type of its own: {field.type}")


def _message(message: Message, values: _Values, *, empty: bool) -> Any:
    special = _SPECIAL.get(message.DESCRIPTOR.full_name)
    return special(message, values, empty) if special else _fill(message, values, empty=empty)


def _quantity(message: Any, values: _Values, empty: bool) -> str:
    message.string = "0" if empty else f"{values.next()}Mi"
    return str(message.string)


def _int_or_string(message: Any, values: _Values, empty: bool) -> int | str:
    message.type, message.intVal, message.strVal = (0, 0, "") if empty else (1, 0, f"port{values.next()}")
    return str(message.strVal) or int(message.intVal)


def _time(message: Any, _: _Values, empty: bool) -> str | None:
    if empty:
        return None
    message.seconds, message.nanos = 1_795_330_000, 123_456_789
    return "2026-11-22T06:46:40Z"


def _micro_time(message: Any, _: _Values, empty: bool) -> str | None:
    return _time(message, _, empty) and "2026-11-22T06:46:40.123456Z"


def _fields(message: Any, _: _Values, __: bool) -> dict[str, Any]:
    message.Raw = b'{"f:spec":{}}'
    return {"f:spec": {}}


def _raw(message: Any, _: _Values, empty: bool) -> Any:
    if empty:
        return None
    message.raw = b'{"some":["thing",1.5]}'
    return {"some": ["thing", 1.5]}


def _items(message: Any, values: _Values, _: bool) -> list[str]:
    message.items.append(f"item{values.next()}")
    return list(message.items)


_SPECIAL = {
    f"{_MACHINERY}api.resource.Quantity": _quantity,
    f"{_MACHINERY}util.intstr.IntOrString": _int_or_string,
    f"{_MACHINERY}apis.meta.v1.Time": _time,
    f"{_MACHINERY}apis.meta.v1.MicroTime": _micro_time,
    f"{_MACHINERY}apis.meta.v1.FieldsV1": _fields,
    f"{_MACHINERY}runtime.RawExtension": _raw,
    f"{_API}authentication.v1.ExtraValue": _items,
    f"{_API}authorization.v1.ExtraValue": _items,
    f"{_API}certificates.v1.ExtraValue": _items,
}
