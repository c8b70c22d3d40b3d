"""Packets: questions in, answers out. (What resolvers send is read by the DNS library, see library.py.)

A question is read strictly: one question of class IN, nothing else but an OPT record (EDNS). Anything else is answered
with its header and a code, or not at all when it has no header or is itself an answer.

An answer is kept packed: its records one after the other, as they follow the question; a name that was there before is
a reference to it (RFC 1035, 4.1.4). What does not fit is cut off at a record, and told (TC).
"""

import socket
import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from podfit.decide.dns.records import Record, RecordType
from podfit.decide.dns.resolvers import Believed, Given
from podfit.decide.dns.zone import Answer, Question

IN: Final = 1
OPT: Final = 41
FORMAT_ERROR, NOT_IMPLEMENTED, BAD_VERSION = 1, 4, 16
RESPONSE, AUTHORITATIVE, TRUNCATED, DESIRED, AVAILABLE, CHECKING = 0x8000, 0x0400, 0x0200, 0x0100, 0x0080, 0x0010
SMALLEST, LARGEST_UDP, LARGEST = 512, 1232, 65535
"""Of packets: what everybody takes, what no network cuts to pieces (the DNS flag day of 2020), what TCP carries."""
HEADER = struct.Struct(">HHHHHH")
_FIXED = struct.Struct(">HHIH")
_TYPE_CLASS = struct.Struct(">HH")
_OPT = struct.Struct(">BHHBBHH")
LONGEST_NAME, LONGEST_LABEL = 255, 63
SMALLEST_RECORD = 12
LARGEST_QUESTION = 4096
"""Bytes of a message that asks; more is of no use to anybody."""


class Malformed(Exception):
    """`response` is what the sender is told, empty for nothing."""

    def __init__(self, response: bytes = b"") -> None:
        super().__init__("not a question")
        self.response = response


class Query(msgspec.Struct, frozen=True):
    """`text` is the question as it was sent, which is sent back; `size` is what the sender takes by UDP."""

    id: int
    flags: int
    text: bytes
    question: Question
    edns: bool
    size: int


def parse(data: bytes) -> Query:
    """Raises Malformed."""
    if len(data) < HEADER.size:
        raise Malformed
    number, flags, questions, answers, authority, additional = HEADER.unpack_from(data)
    if flags & RESPONSE:
        raise Malformed
    if flags & 0x7800:  # another operation than a query
        raise Malformed(refusal(data, NOT_IMPLEMENTED))
    if questions != 1 or answers or authority or additional > 1 or len(data) > LARGEST_QUESTION:
        raise Malformed(refusal(data, FORMAT_ERROR))
    end = _end_of_name(data, HEADER.size)
    if not end or len(data) < end + 4:
        raise Malformed(refusal(data, FORMAT_ERROR))
    kind, group = _TYPE_CLASS.unpack_from(data, end)
    text = data[HEADER.size : end + 4]
    size = SMALLEST
    if additional:
        size = _edns(data, end + 4)
    elif len(data) != end + 4:
        raise Malformed(refusal(data, FORMAT_ERROR))
    if group != IN:
        raise Malformed(refusal(data, NOT_IMPLEMENTED))
    return Query(number, flags, text, Question(name_text(text), kind), bool(additional), size)


def _end_of_name(data: bytes, at: int) -> int:
    """Where it ends; 0 for what is no name. A question refers to nothing before it, so there are no references."""
    start, length = at, len(data)
    while at < length:
        size = data[at]
        at += size + 1
        if not size:
            return at if at - start <= LONGEST_NAME else 0
        if size > LONGEST_LABEL:
            return 0
    return 0


def _edns(data: bytes, at: int) -> int:
    """The size that the sender takes. Options are not looked at. Raises Malformed."""
    if len(data) < at + _OPT.size:
        raise Malformed(refusal(data, FORMAT_ERROR))
    name, kind, size, _, version, _, length = _OPT.unpack_from(data, at)
    if name or kind != OPT or len(data) != at + _OPT.size + length:
        raise Malformed(refusal(data, FORMAT_ERROR))
    if version:
        raise Malformed(refusal(data, BAD_VERSION))
    return min(max(int(size), SMALLEST), LARGEST_UDP)


def refusal(data: bytes, code: int) -> bytes:
    """The answer to a message that has a header and perhaps nothing else."""
    number, flags = struct.unpack_from(">HH", data)
    kept = flags & (0x7800 | DESIRED)
    if code < BAD_VERSION:
        return HEADER.pack(number, RESPONSE | kept | code, 0, 0, 0, 0)
    return HEADER.pack(number, RESPONSE | kept | (code & 15), 0, 0, 0, 1) + _opt(code)


def _opt(code: int = 0) -> bytes:
    return _OPT.pack(0, OPT, LARGEST_UDP, code >> 4, 0, 0, 0)


def name_text(wire: bytes) -> str:
    """The text of a name's labels, in small letters. A dot within a label is escaped: it is no dot between two."""
    labels, at = [], 0
    while size := wire[at]:
        label = wire[at + 1 : at + 1 + size].lower()
        if b"." in label or b"\\" in label:
            label = label.replace(b"\\", b"\\\\").replace(b".", b"\\.")
        labels.append(label)
        at += size + 1
    return b".".join(labels).decode("latin-1")


@lru_cache(4096)
def name_wire(name: str) -> bytes:
    """The bytes of a name of the cluster or of a Service: such a name has no escapes."""
    if not name:
        return b"\0"
    parts = [label.encode("latin-1") for label in name.split(".")]
    return b"".join(bytes((len(part),)) + part for part in parts) + b"\0"


# ---------------------------------------------------------------- answers


class Packed(msgspec.Struct, frozen=True):
    """Records as they follow a question. `ends` is where each of them ends, `ttls` where its TTL is, and which; of
    `counts` are answers, authority and additional.
    """

    flags: int
    counts: tuple[int, int, int]
    body: bytes
    ends: tuple[int, ...]
    ttls: tuple[tuple[int, int], ...]

    def aged(self, seconds: int) -> bytes:
        """The records when they have been kept for so long."""
        aged = bytearray(self.body)
        for at, ttl in self.ttls:
            aged[at : at + 4] = max(ttl - seconds, 0).to_bytes(4, "big")
        return bytes(aged)


def response(query: Query, packed: Packed, limit: int, body: bytes | None = None) -> bytes:
    """At most `limit` bytes; `body` is another than the packed one of the same length."""
    body = packed.body if body is None else body
    text, (answers, authority, additional) = query.text, packed.counts
    opt = _opt() if query.edns else b""
    flags = RESPONSE | AVAILABLE | packed.flags | (query.flags & (DESIRED | CHECKING))
    room = limit - HEADER.size - len(text) - len(opt)
    if len(body) > room:
        kept = sum(end <= room for end in packed.ends)
        body = body[: packed.ends[kept - 1]] if kept else b""
        if kept < answers + authority:
            flags |= TRUNCATED
        answers, authority = min(kept, answers), min(max(kept - answers, 0), authority)
        additional = kept - answers - authority
    header = HEADER.pack(query.id, flags, 1, answers, authority, additional + query.edns)
    return b"".join((header, text, body, opt))


class _Packer:
    """Records after a question of that name."""

    def __init__(self, question: bytes) -> None:
        self._body = bytearray()
        self._start = HEADER.size + len(question)
        self._known: dict[bytes, int] = {question[:-4].lower(): HEADER.size}
        self.ends: list[int] = []
        self.ttls: list[tuple[int, int]] = []

    @property
    def size(self) -> int:
        return len(self._body)

    def add(self, owner: bytes, kind: int, ttl: int, data: bytes) -> None:
        self._body += self._name(owner)
        self.ttls.append((len(self._body) + 4, ttl))
        self._body += _FIXED.pack(kind, IN, ttl, len(data))
        if kind == RecordType.CNAME:
            self._know(data)
        self._body += data
        self.ends.append(len(self._body))

    def _name(self, owner: bytes) -> bytes:
        at = self._known.get(owner.lower())
        if at is not None:
            return (0xC000 | at).to_bytes(2, "big")
        self._know(owner)
        return owner

    def _know(self, name: bytes) -> None:
        at = self._start + len(self._body)
        if at < 0x4000:
            self._known.setdefault(name.lower(), at)

    def packed(self, flags: int, counts: tuple[int, int, int]) -> Packed:
        return Packed(flags, counts, bytes(self._body), tuple(self.ends), tuple(self.ttls))


def pack(question: bytes, answer: Answer, *, limit: int, turn: int = 0, given: Sequence[Given] = ()) -> Packed:
    """For packets of at most `limit` bytes; records beyond what could fit are left out. `turn` says which of the
    records is the first, for answers that may begin with any. `given` are those of the name that the answer leads to.
    """
    packer, most = _Packer(question), limit // SMALLEST_RECORD + 1
    records = _add(packer, _turned(answer.records, turn, most), limit)
    _add_given(packer, given)
    counts = (records + len(given), _add(packer, answer.authority, limit), _add(packer, answer.additional, limit))
    return packer.packed(AUTHORITATIVE | answer.code, counts)


def pack_believed(question: bytes, what: Believed) -> Packed:
    packer = _Packer(question)
    _add_given(packer, what.records)
    _add_given(packer, what.authority)
    return packer.packed(what.code, (len(what.records), len(what.authority), 0))


def _add_given(packer: _Packer, records: Iterable[Given]) -> None:
    for record in records:
        packer.add(record.owner, record.type, record.ttl, record.data)


def _add(packer: _Packer, records: Iterable[Record], limit: int) -> int:
    """How many: the last of them is beyond `limit` where there are more than fit."""
    count = 0
    for record in records:
        if packer.size > limit:
            break
        packer.add(name_wire(record.name), record.type, record.ttl, data_of(record))
        count += 1
    return count


def _turned(records: Sequence[Record], turn: int, most: int) -> Sequence[Record]:
    """A CNAME stays in front of what it leads to."""
    if len(records) < 2 or records[0].type is RecordType.CNAME:
        return records[:most]
    first = turn % len(records)
    return (*records[first : first + most], *records[: min(first, most)])[:most]


def data_of(record: Record) -> bytes:
    match record.type:
        case RecordType.A:
            return socket.inet_pton(socket.AF_INET, record.value)
        case RecordType.AAAA:
            return socket.inet_pton(socket.AF_INET6, record.value)
        case RecordType.SRV:
            return struct.pack(">HHH", *record.numbers) + name_wire(record.value)
        case RecordType.TXT:
            text = record.value.encode()
            return bytes((len(text),)) + text
        case RecordType.SOA:
            first, second = record.value.split()
            return name_wire(first) + name_wire(second) + struct.pack(">IIIII", *record.numbers)
        case _:
            return name_wire(record.value)
