"""The name server over real sockets of loopback: who is answered, what, and how much at once."""

import asyncio
import struct
from collections.abc import Callable
from itertools import pairwise

import dns.flags
import dns.message
import pytest

from podfit.decide.dns.records import Record, RecordType, address_record
from podfit.dns.server import IDLE_SECONDS, MOST_ASKED, MOST_CONNECTIONS_OF_CLIENT
from podfit.net.metrics import Metrics
from support.clock import FakeClock, at_rest
from support.dns import LOCAL, answers, question, record, resolving, serving

WEB = "web.shop.svc.cluster.local"


def values(message: dns.message.Message) -> set[str]:
    return {str(rdata) for rrset in message.answer for rdata in rrset}


@pytest.mark.parametrize("tcp", [False, True])
async def test_a_name_of_the_cluster_one_that_is_not_there_and_another_kind(tcp: bool) -> None:
    async with serving(address_record(WEB, "10.96.0.1")) as asker:
        found = await asker.ask(WEB.upper(), tcp=tcp)
        assert (values(found), found.rcode(), found.question[0].name.to_text()) == ({"10.96.0.1"}, 0, f"{WEB.upper()}.")
        missing = await asker.ask(f"x.{WEB}", tcp=tcp)
        assert (int(missing.rcode()), [int(rrset.rdtype) for rrset in missing.authority]) == (3, [RecordType.SOA])
        nothing = await asker.ask(WEB, "AAAA", tcp=tcp)
        assert (nothing.rcode(), nothing.answer) == (0, [])


async def test_what_changes_is_answered_at_once() -> None:
    async with serving(address_record(WEB, "10.96.0.1")) as asker:
        assert values(await asker.ask(WEB)) == {"10.96.0.1"}
        asker.server.zone.put(("shop", "web", ""), (address_record(WEB, "10.96.0.2"),))
        assert values(await asker.ask(WEB)) == {"10.96.0.2"}
        asker.server.zone.put(("shop", "web", ""), ())
        assert (await asker.ask(WEB)).rcode() == 3


async def test_many_addresses_are_cut_by_udp_whole_by_tcp_and_begin_with_any() -> None:
    hosts = [address_record(WEB, f"10.0.{number}.1") for number in range(200)]
    async with serving(*hosts) as asker:
        assert (await asker.ask(WEB)).flags & dns.flags.TC
        sizes = [len(await asker.packet(question(WEB, size=size))) for size in (0, 1232, 65000)]
        assert [size <= most for size, most in zip(sizes, (512, 1232, 1232), strict=True)] == [True] * 3
        assert values(await asker.ask(WEB, tcp=True)) == {host.value for host in hosts}
        firsts = {str((await asker.ask(WEB)).answer[0][0]) for _ in range(8)}
        assert len(firsts) > 1


async def test_ten_thousand_endpoints_fit_into_no_message_and_what_fits_is_told() -> None:
    hosts = [
        address_record(WEB, f"10.{number // 65536}.{number // 256 % 256}.{number % 256}") for number in range(10000)
    ]
    async with serving(*hosts) as asker:
        whole = await asker.ask(WEB, tcp=True)
        assert whole.flags & dns.flags.TC
        assert 4000 < len(values(whole)) < 4100


async def test_packets_are_kept_up_to_a_bound_and_the_oldest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that are asked once each neither fill memory nor empty it at one stroke."""
    monkeypatch.setattr("podfit.dns.server.MOST_PACKED", 4)
    async with serving(address_record(WEB, "10.96.0.1")) as asker:
        seen = []
        for number in range(10):
            await asker.ask(f"n{number}.{WEB}")
            seen.append(asker.server.kept)
        assert [count for count, _ in seen] == [1, 2, 3, 4, 4, 4, 4, 4, 4, 4]
        assert len({size for _, size in seen[3:]}) == 1
        monkeypatch.setattr("podfit.dns.server.LARGEST_PACKED", 1)
        await asker.ask(f"other.{WEB}")
        assert asker.server.kept[0] == 1


# ---------------------------------------------------------------- names of others


async def test_other_names_are_asked_of_the_hosts_resolvers_once() -> None:
    async with (
        resolving(lambda asked, _: [answers(asked, record("www.example.com", "A", "192.0.2.1"))]) as resolver,
        serving(resolvers=[resolver.port]) as asker,
    ):
        found = [await asker.ask("www.example.com", tcp=tcp) for tcp in (False, True, False)]
        assert [values(message) for message in found] == [{"192.0.2.1"}] * 3
        assert [bool(message.flags & dns.flags.AA) for message in found] == [False] * 3
        assert len(resolver.heard) == 1
        assert (asker.counts.misses, dict(asker.counts.hits)) == (1, {"success": 2})


async def test_a_kept_answer_grows_older_and_is_asked_for_again() -> None:
    clock = FakeClock()
    async with (
        resolving(lambda asked, _: [answers(asked, record("www.example.com", "A", "192.0.2.1", ttl=20))]) as resolver,
        serving(resolvers=[resolver.port], clock=clock) as asker,
    ):
        await asker.ask("www.example.com")
        await clock.advance(12)
        assert (await asker.ask("www.example.com")).answer[0].ttl == 8
        await clock.advance(8)
        assert (await asker.ask("www.example.com")).answer[0].ttl == 20
        assert len(resolver.heard) == 2


async def test_an_external_name_is_answered_with_what_it_leads_to() -> None:
    alias = Record("out.shop.svc.cluster.local", RecordType.CNAME, "www.example.com")

    def reply(asked: bytes, _: object) -> list[bytes]:
        return [answers(asked, record("www.example.com", "A", "192.0.2.1"))]

    async with resolving(reply) as resolver, serving(alias, resolvers=[resolver.port]) as asker:
        for _ in range(2):
            assert values(await asker.ask(alias.name)) == {"www.example.com.", "192.0.2.1"}
        assert len(resolver.heard) == 1
        assert values(await asker.ask(alias.name, "CNAME")) == {"www.example.com."}
    async with serving(alias) as asker:
        alone = await asker.ask(alias.name)
        assert (alone.rcode(), values(alone)) == (0, {"www.example.com."})


async def test_without_resolvers_other_names_fail() -> None:
    async with serving() as asker:
        assert (await asker.ask("www.example.com")).rcode() == 2


async def test_the_second_resolver_is_asked_when_the_first_does_not_answer() -> None:
    async with (
        resolving(lambda asked, _: []) as silent,
        resolving(lambda asked, _: [answers(asked, record("a.example", "A", "192.0.2.1"))]) as speaking,
        serving(resolvers=[silent.port, speaking.port], patience=0.05) as asker,
    ):
        assert values(await asker.ask("a.example")) == {"192.0.2.1"}
        assert values(await asker.ask("A.example", "A")) == {"192.0.2.1"}
        await asker.ask("b.example")
        assert len(silent.heard) == 1  # for a while it is the last one
        assert asker.counts.failed == {f"{LOCAL}:{silent.port}": 1}


async def test_what_does_not_fit_is_asked_for_over_tcp() -> None:
    async with (
        resolving(
            lambda asked, _: [answers(asked, flags=dns.flags.TC)],
            lambda asked, _: [answers(asked, record("a.example", "A", "192.0.2.1"))],
        ) as resolver,
        serving(resolvers=[resolver.port]) as asker,
    ):
        assert values(await asker.ask("a.example")) == {"192.0.2.1"}
        assert resolver.over_tcp == 1


# ---------------------------------------------------------------- attacks: somebody answers instead of the resolver


def forged(asked: bytes, change: Callable[[bytearray], None]) -> bytes:
    made = bytearray(answers(asked, record("a.example", "A", "203.0.113.66")))
    change(made)
    return bytes(made)


def other_id(made: bytearray) -> None:
    made[1] ^= 1


def other_name(made: bytearray) -> None:
    made[13] = ord("z")


def other_kind(made: bytearray) -> None:
    made[12 + 11 + 1] = 28


def a_question(made: bytearray) -> None:
    made[2] &= 0x7F


def garbage(made: bytearray) -> None:
    del made[20:]


@pytest.mark.parametrize("change", [other_id, other_name, other_kind, a_question, garbage])
async def test_false_answers_are_passed_over(change: Callable[[bytearray], None]) -> None:
    def reply(asked: bytes, _: object) -> list[bytes]:
        return [forged(asked, change)] * 2 + [answers(asked, record("a.example", "A", "192.0.2.1"))]

    async with resolving(reply) as resolver, serving(resolvers=[resolver.port]) as asker:
        assert values(await asker.ask("a.example")) == {"192.0.2.1"}
        assert asker.counts.false == 2


async def test_after_some_false_answers_the_resolver_is_asked_over_tcp() -> None:
    def guesses(asked: bytes, _: object) -> list[bytes]:
        return [struct.pack(">H", number) + forged(asked, other_id)[2:] for number in range(300)]

    async with (
        resolving(guesses, lambda asked, _: [answers(asked, record("a.example", "A", "192.0.2.1"))]) as resolver,
        serving(resolvers=[resolver.port]) as asker,
    ):
        assert values(await asker.ask("a.example")) == {"192.0.2.1"}
        assert resolver.over_tcp == 1


async def test_nobody_but_the_resolver_is_heard_however_right_the_answer() -> None:
    """From another port of the same address: the socket is the resolver's alone."""

    async def whispered(asked: bytes, peer: tuple[str, int]) -> None:
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            asyncio.DatagramProtocol, local_addr=(LOCAL, 0)
        )
        transport.sendto(answers(asked, record("a.example", "A", "203.0.113.66")), peer)
        transport.close()

    async with resolving(lambda _asked, _peer: []) as resolver, serving(resolvers=[resolver.port]) as asker:
        waiting = asyncio.create_task(asker.ask("a.example"))
        await at_rest()
        asked, peer = resolver.heard[0]
        await whispered(asked, peer)
        await at_rest()
        assert not waiting.done()
        resolver.transport.sendto(answers(asked, record("a.example", "A", "192.0.2.1")), peer)
        assert values(await waiting) == {"192.0.2.1"}


async def test_ids_and_ports_are_others_each_time() -> None:
    async with resolving(lambda asked, _: [answers(asked)]) as resolver, serving(resolvers=[resolver.port]) as asker:
        for number in range(60):
            await asker.ask(f"n{number}.example")
        ids = [int.from_bytes(asked[:2], "big") for asked, _ in resolver.heard]
        ports = [peer[1] for _, peer in resolver.heard]
    assert len(set(ids)) > 55
    assert len(set(ports)) > 50
    for numbers in (ids, ports):  # none follows from the one before
        steps = [after - before for before, after in pairwise(numbers)]
        assert len(set(steps)) > 50


async def test_one_question_is_under_way_once_however_many_ask_it() -> None:
    """Else somebody who asks a thousand times has a thousand ids to guess one of."""
    kept: list[tuple[bytes, tuple[str, int]]] = []

    def later(asked: bytes, peer: tuple[str, int]) -> list[bytes]:
        kept.append((asked, peer))
        return []

    async with resolving(later) as resolver, serving(resolvers=[resolver.port]) as asker:
        asking = [asyncio.create_task(asker.ask("a.example")) for _ in range(50)]
        await at_rest()
        assert len(resolver.heard) <= 1
        await at_rest()
        [(asked, peer)] = kept
        resolver.transport.sendto(answers(asked, record("a.example", "A", "192.0.2.1")), peer)
        assert [values(message) for message in await asyncio.gather(*asking)] == [{"192.0.2.1"}] * 50
        assert len(resolver.heard) == 1
        assert asker.server.forwarder.waiting == 0


async def test_an_answer_cannot_put_other_names_into_the_cache() -> None:
    def poisoned(asked: bytes, _: object) -> list[bytes]:
        extra = record("bank.example", "A", "203.0.113.66")
        return [answers(asked, record("a.example", "A", "192.0.2.1"), extra)]

    async with resolving(poisoned) as resolver, serving(resolvers=[resolver.port]) as asker:
        assert values(await asker.ask("a.example")) == {"192.0.2.1"}
        await asker.ask("bank.example")
        assert len(resolver.heard) == 2


async def test_an_answer_of_another_server_says_nothing_of_the_cluster() -> None:
    async with (
        resolving(lambda asked, _: [answers(asked, record(WEB, "A", "203.0.113.66"))]) as resolver,
        serving(address_record(WEB, "10.96.0.1"), resolvers=[resolver.port]) as asker,
    ):
        for name in (WEB, f"x.{WEB}", "1.0.96.10.in-addr.arpa.cluster.local"):
            await asker.ask(name)
        assert resolver.heard == []


# ---------------------------------------------------------------- attacks: who asks, and how much


async def test_who_is_not_of_the_networks_is_not_answered_by_udp_nor_tcp() -> None:
    async with serving(address_record(WEB, "10.96.0.1"), networks=["127.0.0.2/32", "::1/128"]) as asker:
        assert await asker.packet(question(WEB), source="127.0.0.2")
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asker.stream(question(WEB))
        asked = asyncio.create_task(asker.packet(question(WEB)))
        await at_rest()
        assert not asked.done()
        asked.cancel()
        assert not asker.counts.requests["tcp", "cluster"]


async def test_no_answer_is_much_longer_than_its_question_unless_it_was_asked_for() -> None:
    """A question by UDP without EDNS has an answer of 512 bytes at most, whatever there is to say."""
    async with serving(*(Record(WEB, RecordType.TXT, "x" * 200 + str(number)) for number in range(20))) as asker:
        for kind in ("TXT", "ANY"):
            assert len(await asker.packet(question(WEB, kind))) <= 512


async def test_malformed_messages_leave_it_answering() -> None:
    junk = [b"", b"\0" * 11, b"\xff" * 512, question(WEB)[:-3], question(WEB) + b"x" * 60000]
    async with serving(address_record(WEB, "10.96.0.1")) as asker:
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            asyncio.DatagramProtocol, remote_addr=(LOCAL, asker.port)
        )
        for data in junk * 20:
            transport.sendto(data)
        transport.close()
        assert values(await asker.ask(WEB)) == {"10.96.0.1"}


async def test_questions_for_resolvers_are_bounded_for_one_client_and_for_all() -> None:
    async with resolving(lambda _asked, _peer: []) as resolver, serving(resolvers=[resolver.port]) as asker:
        forwarder, told = asker.server.forwarder, list[bytes]()
        for number in range(260):
            asker.server.asked(question(f"n{number}.example"), "10.0.0.1", "udp", told.append)
        assert (forwarder.waiting, len(told)) == (200, 60)
        assert {dns.message.from_wire(packet).rcode() for packet in told} == {2}
        for number in range(1500):
            asker.server.asked(question(f"m{number}.example"), f"10.0.1.{number % 250}", "udp", told.append)
        assert forwarder.waiting == 1000
        assert len(told) == 60 + 700
        assert asker.counts.dropped["waiting"] == 760


async def test_a_flood_of_names_keeps_the_memory_bounded_and_others_answered() -> None:
    """Of the cluster's own and of others: neither cache grows without end, and what is there stays there."""

    def reply(asked: bytes, _: object) -> list[bytes]:
        if b"kept" in asked:
            return [answers(asked, record("kept.example", "A", "192.0.2.1"))]
        made = dns.message.make_response(dns.message.from_wire(asked))
        made.set_rcode(dns.rcode.NXDOMAIN)
        return [made.to_wire()]

    async with (
        resolving(reply) as resolver,
        serving(address_record(WEB, "10.96.0.1"), resolvers=[resolver.port]) as asker,
    ):
        asker.server.forwarder.cache = type(asker.server.forwarder.cache)(50)
        await asker.ask("kept.example")
        for number in range(120):
            await asker.ask(f"n{number}.example")
        assert asker.server.forwarder.cache.entries == {"success": 1, "denial": 50}
        heard = len(resolver.heard)
        assert values(await asker.ask("kept.example")) == {"192.0.2.1"}
        assert len(resolver.heard) == heard
        told = list[bytes]()
        asked = question("n0000.shop.svc.cluster.local")
        for number in range(10000):
            name = asked[:13] + b"n%04d" % number + asked[18:]
            asker.server.asked(name, LOCAL, "udp", told.append)
        assert len(told) == 10000
        assert len(asker.server._packets) <= 4096
        assert values(await asker.ask(WEB)) == {"10.96.0.1"}


async def test_the_packets_that_are_kept_are_bounded_by_their_size() -> None:
    hosts = [address_record(WEB, f"10.0.{number // 256}.{number % 256}") for number in range(4000)]
    aliases = [Record(f"n{number}.shop.svc.cluster.local", RecordType.CNAME, WEB) for number in range(300)]
    async with serving(*hosts, *aliases) as asker:
        told = list[bytes]()
        for alias in aliases:
            asker.server.asked(question(alias.name), LOCAL, "tcp", told.append)
        assert min(map(len, told)) > 60000
        assert asker.server._size < 17 << 20


# ---------------------------------------------------------------- attacks: connections


async def connections(port: int, count: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    return [await asyncio.open_connection(LOCAL, port) for _ in range(count)]


async def test_connections_of_one_client_are_bounded_and_idle_ones_end() -> None:
    clock = FakeClock()
    async with serving(address_record(WEB, "10.96.0.1"), clock=clock) as asker:
        opened = await connections(asker.port, MOST_CONNECTIONS_OF_CLIENT)
        await at_rest()
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asker.stream(question(WEB))
        opened[0][1].write(b"\0\x20half")  # neither does it stay for a part of a question
        await clock.advance(IDLE_SECONDS)
        for reader, writer in opened:
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
            writer.close()
        assert values(await asker.ask(WEB, tcp=True)) == {"10.96.0.1"}


async def test_questions_on_one_connection_are_answered_together_up_to_a_bound() -> None:
    async with (
        resolving(lambda _asked, _peer: []) as resolver,
        serving(address_record(WEB, "10.96.0.1"), resolvers=[resolver.port]) as asker,
    ):
        [(reader, writer)] = await connections(asker.port, 1)
        for _ in range(200):
            asked = question(WEB)
            writer.write(len(asked).to_bytes(2, "big") + asked)
        for _ in range(200):
            await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
        for number in range(MOST_ASKED + 1):
            asked = question(f"n{number}.example")
            writer.write(len(asked).to_bytes(2, "big") + asked)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()


@pytest.mark.parametrize("sent", [b"\xff\xff" + b"x" * 100, b"\0\0", b"\0\5hello"])
async def test_a_connection_that_sends_no_questions_is_closed(sent: bytes) -> None:
    async with serving() as asker:
        [(reader, writer)] = await connections(asker.port, 1)
        writer.write(sent)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()


async def test_who_asks_and_does_not_read_is_closed() -> None:
    hosts = [address_record(WEB, f"10.0.{number // 256}.{number % 256}") for number in range(4000)]
    async with serving(*hosts) as asker:
        [(_, writer)] = await connections(asker.port, 1)
        asked = question(WEB)
        message = len(asked).to_bytes(2, "big") + asked
        await at_rest()
        for _ in range(2000):
            if not asker.server.connections[LOCAL]:
                break
            writer.write(message)
            await asyncio.sleep(0)
        assert asker.server.connections[LOCAL] == 0
        writer.close()


# ---------------------------------------------------------------- metrics


async def test_what_was_asked_is_counted_under_coredns_names() -> None:
    metrics = Metrics()
    async with (
        resolving(lambda asked, _: [answers(asked, record("a.example", "A", "192.0.2.1"))]) as resolver,
        serving(address_record(WEB, "10.96.0.1"), resolvers=[resolver.port]) as asker,
    ):
        asker.counts.declare(
            metrics,
            entries=lambda: asker.server.forwarder.cache.entries,
            names=lambda: asker.server.zone.names,
            waiting=lambda: asker.server.forwarder.waiting,
        )
        for name, tcp in ((WEB, False), (WEB, True), (f"x.{WEB}", False), ("a.example", False), ("a.example", False)):
            await asker.ask(name, tcp=tcp)
        text = metrics.exposition().decode()
    for line in (
        'coredns_dns_requests_total{proto="udp",zone="cluster"} 2.0',
        'coredns_dns_requests_total{proto="tcp",zone="cluster"} 1.0',
        'coredns_dns_requests_total{proto="udp",zone="."} 2.0',
        'coredns_dns_responses_total{rcode="NOERROR"} 4.0',
        'coredns_dns_responses_total{rcode="NXDOMAIN"} 1.0',
        'coredns_dns_request_duration_seconds_count{zone="cluster"} 3.0',
        'coredns_cache_hits_total{type="success"} 1.0',
        "coredns_cache_misses_total 1.0",
        'coredns_cache_entries{type="success"} 1.0',
        f'coredns_forward_requests_total{{to="{LOCAL}:{resolver.port}"}} 1.0',
        "coredns_kubernetes_names 1.0",
    ):
        assert line in text.splitlines()
