"""Questions and answers as packets: beside what the DNS library reads, and what no question is."""

import random
import struct

import dns.flags
import dns.message
import pytest

from podfit.decide.dns.records import Record, RecordType, address_record
from podfit.decide.dns.resolvers import believed
from podfit.decide.dns.zone import NAME_ERROR, Answer, Question
from podfit.dns.library import LARGEST_REPLY, Unreadable, read_reply
from podfit.dns.wire import LARGEST, LARGEST_UDP, Malformed, name_text, name_wire, pack, pack_believed, parse, response
from support.dns import answers, question, record

WEB = "web.shop.svc.cluster.local"


@pytest.mark.parametrize("name", [WEB, "Web.SHOP.svc.cluster.local", "a", ".", "_http._tcp.web", "x" * 63 + ".y"])
@pytest.mark.parametrize("kind", ["A", "AAAA", "SRV", "HTTPS", "TYPE65280"])
@pytest.mark.parametrize("size", [0, 512, 1232, 4096])
def test_questions_are_read_as_the_library_writes_them(name: str, kind: str, size: int) -> None:
    asked = dns.message.make_query(name, kind, use_edns=0 if size else -1, payload=size or 1232)
    read = parse(asked.to_wire())
    assert read.id == asked.id
    assert read.question == Question(name.lower().rstrip("."), int(asked.question[0].rdtype))
    assert (read.edns, read.size) == (bool(size), min(max(size, 512), 1232))


def test_options_of_edns_are_passed_over() -> None:
    asked = dns.message.make_query(WEB, "A", options=[dns.edns.GenericOption("COOKIE", b"12345678")])
    assert parse(asked.to_wire()).question == Question(WEB, 1)


def code_of(data: bytes) -> int | None:
    """None when nothing is said."""
    with pytest.raises(Malformed) as refused:
        parse(data)
    if not refused.value.response:
        return None
    assert refused.value.response[:2] == data[:2]
    assert refused.value.response[2] & 0x80
    return int(dns.message.from_wire(refused.value.response).rcode())


ASKED = question(WEB)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", None),
        (ASKED[:11], None),
        (answers(ASKED), None),
        (ASKED[:12], 1),
        (ASKED[:20], 1),
        (ASKED[:-1], 1),
        (ASKED + b"\0", 1),
        (ASKED + b"\0" * 5000, 1),
        (ASKED[:4] + b"\0\2" + ASKED[6:], 1),
        (ASKED[:4] + b"\0\0" + ASKED[6:12], 1),
        (ASKED[:6] + b"\0\1" + ASKED[8:], 1),
        (ASKED[:12] + b"\xc0\x0c\0\1\0\1", 1),
        (ASKED[:12] + b"\x40" + b"x" * 64 + b"\0\0\1\0\1", 1),
        (ASKED[:12] + b"\x3fx" + b"x" * 62 + (b"\x3f" + b"x" * 63) * 3 + b"\0\0\1\0\1", 1),
        (ASKED[:-1] + b"\3", 4),
        (struct.pack(">HH", 7, 0x2000) + ASKED[4:], 4),
        (ASKED[:11] + b"\1" + ASKED[12:] + b"\0\0\x29\4\xd0\0\1\0\0\0\0", 16),
        (ASKED[:11] + b"\1" + ASKED[12:] + b"\0\0\x29\4\xd0\0\0\0\0\0\5", 1),
        (ASKED[:11] + b"\1" + ASKED[12:] + b"\0\0\x01\0\1\0\0\0\0\0\0", 1),
    ],
    ids=[
        "empty", "no header", "an answer", "no question", "a cut name", "a cut class", "more behind",
        "much more behind", "two questions", "none", "answers beside", "a reference to itself", "a long label",
        "a long name", "another class", "another operation", "EDNS 1", "a cut option", "another record",
    ],
)  # fmt: skip
def test_what_is_no_question(data: bytes, code: int | None) -> None:
    assert code_of(data) == code


def test_bytes_at_random_are_questions_or_refused() -> None:
    chance = random.Random(11)
    asked = question(WEB, size=1232)
    for _ in range(5000):
        data = bytearray(asked)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        cut = bytes(data[: chance.randrange(len(data) + 1)]) if chance.randrange(3) == 0 else bytes(data)
        said, text = refused_or_read(cut)
        assert len(said) <= max(len(cut), 23)
        assert cut[12:].startswith(text)


def refused_or_read(data: bytes) -> tuple[bytes, bytes]:
    """What the sender of no question is told, or the text of the question."""
    try:
        return b"", parse(data).text
    except Malformed as refused:
        return refused.response, b""


def test_a_dot_in_a_label_is_no_dot_between_labels() -> None:
    wire = b"\x0bweb.default\x03svc\x07cluster\x05local\x00"
    assert name_text(wire) == "web\\.default.svc.cluster.local"
    assert name_wire("a.bc") == b"\1a\2bc\0"


# ---------------------------------------------------------------- answers

EVERY = Answer(
    records=(
        address_record(WEB, "10.96.0.1"),
        address_record(WEB, "fd00::1"),
        Record(WEB, RecordType.CNAME, "a.example"),
        Record(WEB, RecordType.SRV, WEB, (0, 100, 80)),
        Record(WEB, RecordType.TXT, "1.1.0"),
        Record("1.0.96.10.in-addr.arpa", RecordType.PTR, WEB),
        Record("cluster.local", RecordType.NS, "ns.dns.cluster.local"),
    ),
    authority=(Record("cluster.local", RecordType.SOA, "ns.dns.cluster.local h.cluster.local", (7, 6, 5, 4, 3)),),
    additional=(address_record("x.y", "10.0.0.1"),),
)


@pytest.mark.parametrize("size", [0, 1232])
def test_answers_are_what_the_library_reads(size: int) -> None:
    query = parse(question("WEB.shop.svc.Cluster.local", size=size))
    read = dns.message.from_wire(
        response(query, pack(query.text, EVERY, limit=LARGEST), LARGEST), one_rr_per_rrset=True
    )
    assert [f"{rrset}" for rrset in read.answer] == [
        str(record).replace("web.shop.svc.cluster.local. 5", f"{read.question[0].name} 5") for record in EVERY.records
    ]
    assert [f"{rrset}" for rrset in read.authority] == [str(record) for record in EVERY.authority]
    assert [f"{rrset}" for rrset in read.additional] == [str(record) for record in EVERY.additional]
    assert read.flags & (dns.flags.QR | dns.flags.AA | dns.flags.RD | dns.flags.RA) == read.flags
    assert read.edns == (0 if size else -1)


def hosts(count: int) -> Answer:
    return Answer(records=tuple(address_record(WEB, f"10.0.{number // 256}.{number % 256}") for number in range(count)))


@pytest.mark.parametrize(("size", "most"), [(0, 512), (512, 512), (1232, LARGEST_UDP), (65000, LARGEST_UDP)])
@pytest.mark.parametrize("count", [1, 28, 29, 74, 75, 76, 10000])
def test_what_does_not_fit_is_cut_and_said(size: int, most: int, count: int) -> None:
    query = parse(question(WEB, size=size))
    packet = response(query, pack(query.text, hosts(count), limit=query.size), query.size)
    read = dns.message.from_wire(packet, one_rr_per_rrset=True)
    assert len(packet) <= most
    assert bool(read.flags & dns.flags.TC) == (len(read.answer) < count)
    assert len(read.answer) == min(count, (most - 12 - len(query.text) - (11 if size else 0)) // 16)


def test_addresses_beside_are_left_out_without_a_word() -> None:
    target = Record(WEB, RecordType.SRV, WEB, (0, 100, 80))
    answer = Answer(records=(target,), additional=hosts(100).records)
    query = parse(question(WEB, "SRV"))
    read = dns.message.from_wire(response(query, pack(query.text, answer, limit=512), 512), one_rr_per_rrset=True)
    assert not read.flags & dns.flags.TC
    assert (len(read.answer), 0 < len(read.additional) < 100) == (1, True)


def test_each_turn_begins_with_another_record_and_tells_all() -> None:
    query = parse(question(WEB))
    seen = []
    for turn in range(3):
        packet = response(query, pack(query.text, hosts(3), limit=512, turn=turn), 512)
        seen.append([str(rrset[0]) for rrset in dns.message.from_wire(packet, one_rr_per_rrset=True).answer])
    assert [first for first, *_ in seen] == ["10.0.0.0", "10.0.0.1", "10.0.0.2"]
    assert {frozenset(told) for told in seen} == {frozenset({"10.0.0.0", "10.0.0.1", "10.0.0.2"})}


def test_what_a_resolver_said_is_told_on_and_grows_older() -> None:
    asked = question("www.example.com")
    said = answers(
        asked,
        record("www.example.com", "CNAME", "a.example.net."),
        record("a.example.net", "CNAME", "b.example.net.", ttl=7),
        record("b.example.net", "A", "192.0.2.1", "192.0.2.2"),
    )
    query = parse(asked)
    packed = pack_believed(query.text, believed(query.question, read_reply(said)))
    whole = response(query, packed, 512)
    assert [whole.count(label) for label in (b"\1a\7example", b"\1b\7example")] == [1, 1]  # then references
    assert dns.message.from_wire(whole).answer == dns.message.from_wire(said).answer
    later = dns.message.from_wire(response(query, packed, 512, packed.aged(10)))
    assert [rrset.ttl for rrset in later.answer] == [50, 0, 50]


def test_a_name_that_is_not_there() -> None:
    query = parse(question("nobody.example"))
    assert dns.message.from_wire(response(query, pack(query.text, Answer(NAME_ERROR), limit=512), 512)).rcode() == 3


# ---------------------------------------------------------------- what others send


def loop_at(target: int) -> bytes:
    """An answer whose record's name is a reference to a place of the message."""
    return (
        ASKED[:2]
        + b"\x81\x80\0\1\0\1\0\0\0\0"
        + ASKED[12:]
        + (0xC000 | target).to_bytes(2, "big")
        + b"\0\1\0\1\0\0\0\5\0\4abcd"
    )


@pytest.mark.parametrize(
    "data",
    [b"", ASKED[:11], loop_at(len(ASKED)), loop_at(len(ASKED) + 1), loop_at(0x3FFF), answers(ASKED)[:-3],
     b"\0" * (LARGEST_REPLY + 1)],
    ids=["empty", "no header", "a name that is itself", "forward", "beyond", "cut", "large"],
)  # fmt: skip
def test_what_is_no_message_is_unreadable(data: bytes) -> None:
    with pytest.raises(Unreadable):
        read_reply(data)


def test_bytes_at_random_are_read_or_unreadable() -> None:
    chance = random.Random(5)
    said = answers(
        question("www.example.com"),
        record("www.example.com", "CNAME", "a.example.net."),
        record("a.example.net", "TXT", '"x"'),
        record("a.example.net", "SRV", "1 2 3 b.example."),
    )
    for _ in range(500):
        data = bytearray(said)
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            read = read_reply(bytes(data))
        except Unreadable:
            continue
        found = believed(Question("www.example.com", 1), read)
        packed = pack_believed(parse(ASKED).text, found)
        assert len(response(parse(ASKED), packed, 512)) <= 512
