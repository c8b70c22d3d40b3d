"""What is believed of what resolvers answer."""

from typing import Any

import pytest
from msgspec.structs import replace

from podfit.decide.dns.records import RecordType
from podfit.decide.dns.resolvers import MOST_SECONDS, Believed, Given, Reply, believed, is_answer
from podfit.decide.dns.zone import NAME_ERROR, NO_ERROR, SERVER_FAILURE, Question

ASKED = Question("www.example.com", RecordType.A)


def record(name: str, kind: int = RecordType.A, ttl: int = 60, target: str = "") -> Given:
    return Given(name, kind, ttl, name.encode(), b"\1\2\3\4", target)


def reply(*answer: Given, authority: tuple[Given, ...] = (), **more: Any) -> Reply:
    return replace(Reply(7, response=True, question=ASKED, answer=answer, authority=authority), **more)


@pytest.mark.parametrize(
    ("other", "right"),
    [
        ({}, True),
        ({"id": 8}, False),
        ({"response": False}, False),
        ({"question": None}, False),
        ({"question": Question("www.example.com", RecordType.AAAA)}, False),
        ({"question": Question("www.example.org", RecordType.A)}, False),
    ],
)
def test_what_is_the_answer(other: dict[str, Any], right: bool) -> None:
    assert is_answer(reply(**other), 7, ASKED) is right


def test_only_what_was_asked_for_and_where_it_leads_is_believed() -> None:
    alias = record("www.example.com", RecordType.CNAME, target="cdn.example.net")
    wanted, poison = record("cdn.example.net"), record("bank.example")
    said = reply(
        poison, wanted, alias, record("www.example.com", RecordType.TXT), authority=(record("com", RecordType.NS),)
    )
    assert believed(ASKED, said) == Believed(NO_ERROR, (alias, wanted), (), 30)


def test_a_circle_of_aliases_ends() -> None:
    here, there = (
        record(a, RecordType.CNAME, target=b)
        for a, b in (("www.example.com", "x.example"), ("x.example", "www.example.com"))
    )
    assert believed(ASKED, reply(here, there)).records == (here, there)


def test_an_answer_of_thousands_is_cut() -> None:
    assert len(believed(ASKED, reply(*(record("www.example.com") for _ in range(5000)))).records) == 500


@pytest.mark.parametrize(
    ("ttls", "seconds"),
    [([60], MOST_SECONDS), ([60, 12], 12), ([0], 5), ([3600 * 24 * 365], MOST_SECONDS), ([1 << 31], 5), ([], 5)],
)
def test_how_long_an_answer_is_kept(ttls: list[int], seconds: int) -> None:
    assert believed(ASKED, reply(*(record("www.example.com", ttl=ttl) for ttl in ttls))).seconds == seconds


def test_a_ttl_of_years_is_told_on_as_a_week() -> None:
    [told] = believed(ASKED, reply(record("www.example.com", ttl=(1 << 31) - 1))).records
    assert told.ttl == 7 * 86400


@pytest.mark.parametrize(
    ("owner", "kept"),
    [("example.com", True), ("com", True), ("", True), ("www.example.com", True), ("example.org", False)],
)
def test_a_negative_answer_comes_with_the_zone_above(owner: str, kept: bool) -> None:
    soa = record(owner, RecordType.SOA, ttl=9)
    found = believed(ASKED, reply(code=NAME_ERROR, authority=(soa, soa, record(owner, RecordType.NS))))
    assert (found.code, found.authority, found.seconds) == (NAME_ERROR, (soa,) if kept else (), 9 if kept else 5)


def test_a_failure_is_told_and_not_kept() -> None:
    assert believed(ASKED, reply(record("www.example.com"), code=SERVER_FAILURE)) == Believed(SERVER_FAILURE)
