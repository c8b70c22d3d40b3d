"""Protobuf bodies by hand, field by field."""

from podfit.apiserver.request import protobuf


def varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def part(number: int, payload: bytes | int) -> bytes:
    """One field of a message."""
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def enveloped(version: str, kind: str, raw: bytes, *more: bytes) -> bytes:
    types = part(1, version.encode()) + part(2, kind.encode())
    return protobuf.MAGIC + part(1, types) + part(2, raw) + b"".join(more)
