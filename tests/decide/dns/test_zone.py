"""The zone: which names there are, what changes, and that nothing stays of what is gone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.decide.dns.records import Record, RecordType, address_record
from podfit.decide.dns.zone import (
    AXFR,
    MOST_ADDITIONAL,
    NAME_ERROR,
    NO_ERROR,
    REFUSED,
    Answer,
    Question,
    Zone,
    undashed,
)

WEB = "web.shop.svc.cluster.local"


def zone(*records: Record, server: str = "10.96.0.10") -> Zone:
    made = Zone("cluster.local", server, serial=100)
    made.set_namespace("shop", there=True)
    made.put(("shop", "web", ""), records)
    return made


def ask(names: Zone, name: str, kind: int = RecordType.A) -> Answer:
    answer = names.answer(Question(name, kind))
    assert answer is not None
    return answer


@pytest.mark.parametrize(
    "name",
    ["cluster.local", "svc.cluster.local", "shop.svc.cluster.local", "pod.cluster.local", "shop.pod.cluster.local",
     "dns.cluster.local", "_tcp.web.shop.svc.cluster.local", "dns-version.cluster.local"],
)  # fmt: skip
def test_names_above_others_exist_without_records(name: str) -> None:
    names = zone(address_record(WEB, "10.96.0.1"), Record(f"_http._tcp.{WEB}", RecordType.SRV, WEB, (0, 100, 80)))
    answer = ask(names, name)
    assert (answer.code, answer.records) == (NO_ERROR, ())
    assert [record.type for record in answer.authority] == [RecordType.SOA]


@pytest.mark.parametrize(
    "name",
    ["nobody.shop.svc.cluster.local", "web.other.svc.cluster.local", "other.svc.cluster.local", "x.cluster.local",
     "other.pod.cluster.local", "1-2-3-4.other.pod.cluster.local", "1-2-3.shop.pod.cluster.local",
     "1-2-3-400.shop.pod.cluster.local", "a.1-2-3-4.shop.pod.cluster.local", "x.web.shop.svc.cluster.local",
     "web.shop.cluster.local", "web\\.shop.svc.cluster.local"],
)  # fmt: skip
def test_no_other_name_of_the_zone_exists(name: str) -> None:
    answer = ask(zone(address_record(WEB, "10.96.0.1")), name)
    assert (answer.code, answer.records) == (NAME_ERROR, ())
    assert [record.type for record in answer.authority] == [RecordType.SOA]


@pytest.mark.parametrize(
    "name", ["example.com", "acluster.local", "local", "", "8.8.8.8.in-addr.arpa", "x.cluster.local.example"]
)
def test_other_names_are_somebody_elses(name: str) -> None:
    assert zone(address_record(WEB, "10.96.0.1")).answer(Question(name, RecordType.A)) is None


def test_the_zone_says_who_answers_for_it() -> None:
    names = zone()
    assert [str(record) for record in ask(names, "cluster.local", RecordType.SOA).records] == [
        "cluster.local. 5 IN SOA ns.dns.cluster.local. hostmaster.cluster.local. 101 7200 1800 86400 5"
    ]
    assert [record.value for record in ask(names, "cluster.local", RecordType.NS).records] == ["ns.dns.cluster.local"]
    assert [record.value for record in ask(names, "ns.dns.cluster.local").records] == ["10.96.0.10"]
    assert ask(zone(server=""), "ns.dns.cluster.local").records == ()


def test_every_change_has_another_serial_and_what_is_as_it_was_is_none() -> None:
    names = zone(address_record(WEB, "10.96.0.1"))
    before = names.changes
    names.put(("shop", "web", ""), (address_record(WEB, "10.96.0.1"),))
    names.set_namespace("shop", there=True)
    names.set_server("10.96.0.10")
    assert names.changes == before
    names.put(("shop", "web", ""), (address_record(WEB, "10.96.0.2"),))
    names.set_namespace("other", there=True)
    names.set_server("10.96.0.11")
    assert names.changes == before + 3
    assert names.soa().numbers[0] == 100 + before + 3


def test_nobody_gets_the_whole_zone() -> None:
    assert ask(zone(), "cluster.local", AXFR).code == REFUSED


def test_asked_for_everything_one_kind_is_enough() -> None:
    names = zone(address_record(WEB, "10.96.0.1"), address_record(WEB, "fd00::1"))
    assert [record.value for record in ask(names, WEB, 255).records] == ["10.96.0.1"]


def test_external_names_within_the_cluster_are_followed_and_circles_end() -> None:
    names = zone(
        Record("a.shop.svc.cluster.local", RecordType.CNAME, "b.shop.svc.cluster.local"),
        Record("b.shop.svc.cluster.local", RecordType.CNAME, WEB),
        address_record(WEB, "10.96.0.1"),
        Record("c.shop.svc.cluster.local", RecordType.CNAME, "d.shop.svc.cluster.local"),
        Record("d.shop.svc.cluster.local", RecordType.CNAME, "c.shop.svc.cluster.local"),
        Record("e.shop.svc.cluster.local", RecordType.CNAME, "nobody.shop.svc.cluster.local"),
    )
    assert [record.value for record in ask(names, "a.shop.svc.cluster.local").records] == [
        "b.shop.svc.cluster.local",
        WEB,
        "10.96.0.1",
    ]
    assert len(ask(names, "c.shop.svc.cluster.local").records) == 2
    assert [record.value for record in ask(names, "e.shop.svc.cluster.local").records] == [
        "nobody.shop.svc.cluster.local"
    ]


def test_a_chain_of_external_names_is_bounded() -> None:
    chain = [
        Record(f"n{n}.shop.svc.cluster.local", RecordType.CNAME, f"n{n + 1}.shop.svc.cluster.local") for n in range(50)
    ]
    assert len(ask(zone(*chain), "n0.shop.svc.cluster.local").records) == 8


def test_addresses_beside_srv_records_are_bounded() -> None:
    hosts = [f"h{number}.{WEB}" for number in range(1000)]
    names = zone(
        *(Record(f"_http._tcp.{WEB}", RecordType.SRV, host, (0, 100, 80)) for host in hosts),
        *(address_record(host, "10.0.0.1") for host in hosts),
    )
    answer = ask(names, f"_http._tcp.{WEB}", RecordType.SRV)
    assert (len(answer.records), len(answer.additional)) == (1000, MOST_ADDITIONAL)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10-0-0-1", "10.0.0.1"),
        ("fd00--1", "fd00::1"),
        ("fd00-0000-0000-0000-0000-0000-0000-0001", "fd00::1"),
        ("10-0-0", ""),
        ("10-0-0-256", ""),
        ("010-0-0-1", ""),
        ("x", ""),
        ("", ""),
    ],
)
def test_addresses_with_dashes(text: str, address: str) -> None:
    assert undashed(text) == address


_RECORDS = st.lists(
    st.builds(
        lambda name, last: address_record(f"{name}.shop.svc.cluster.local", f"10.0.0.{last}"),
        st.sampled_from(["a", "b", "x.a", "y.x.a", "_http._tcp.b"]),
        st.integers(1, 3),
    ),
    unique=True,
    max_size=6,
).map(tuple)


@given(st.lists(st.tuples(st.sampled_from(["one", "two", "three"]), _RECORDS), max_size=12))
def test_after_any_changes_there_is_what_the_last_ones_say_and_nothing_else(
    changes: list[tuple[str, tuple[Record, ...]]],
) -> None:
    names, last = Zone("cluster.local"), dict[str, tuple[Record, ...]]()
    for source, records in changes:
        names.put(("shop", source), records)
        last[source] = records
    now = {record for records in last.values() for record in records}
    for name in ("a", "b", "x.a", "y.x.a", "_http._tcp.b"):
        full = f"{name}.shop.svc.cluster.local"
        own = {record for record in now if record.name == full}
        below = any(record.name.endswith(f".{full}") for record in now)
        found = names.records(full)
        assert (set(found) if found is not None else None) == (own if own or below else None)
    for source in last:
        names.put(("shop", source), ())
    assert names.names == 0
    assert names.records("shop.svc.cluster.local") is None
