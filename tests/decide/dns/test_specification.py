"""The examples of Kubernetes DNS-Based Service Discovery, each under its number: a question, and the answer as zone
files write it. TTL, priority and weight are not prescribed there.
"""

from typing import Any

import pytest

from podfit.api.core.v1.services.types import Service
from podfit.api.discovery.v1.types import EndpointSlice
from podfit.api.meta.codec import convert
from podfit.decide.dns.records import RecordType, service_records, slice_records
from podfit.decide.dns.zone import NAME_ERROR, NO_ERROR, Answer, Question, Zone


def service(name: str, namespace: str = "default", **spec: Any) -> Service:
    return convert({"metadata": {"name": name, "namespace": namespace}, "spec": spec}, Service)


def endpoint(*addresses: str, hostname: str | None = None, ready: bool | None = True) -> dict[str, Any]:
    return {"addresses": list(addresses), "conditions": {"ready": ready}, "hostname": hostname}


def part(
    *endpoints: dict[str, Any], kind: str = "IPv4", ports: tuple[tuple[str, int], ...] = (("https", 443),)
) -> EndpointSlice:
    return convert(
        {
            "addressType": kind,
            "endpoints": list(endpoints),
            "ports": [{"name": name, "port": port, "protocol": "TCP"} for name, port in ports],
        },
        EndpointSlice,
    )


def zone(*parts: tuple[Service, tuple[EndpointSlice, ...]], domain: str = "cluster.local") -> Zone:
    made = Zone(domain, "10.3.0.10")
    made.set_namespace("default", there=True)
    for owner, slices in parts:
        key = owner.metadata.namespace, owner.metadata.name
        made.put((*key, ""), service_records(owner, domain))
        for number, one in enumerate(slices):
            made.put((*key, str(number)), slice_records(owner, one, domain))
    return made


def asked(names: Zone, text: str) -> Answer:
    """`text` is NAME. IN TYPE."""
    name, _, kind = text.split()
    answer = names.answer(Question(name.rstrip(".").lower(), RecordType[kind]))
    assert answer is not None
    return answer


def lines(answer: Answer) -> list[str]:
    return [str(record) for record in answer.records]


SVC = "default.svc.cluster.local."
PORTS = [{"name": "https", "port": 443}, {"port": 80}]
WITH_ADDRESS = (service("kubernetes", clusterIP="10.3.0.1", ports=PORTS), ())
PETS = (
    service("headless", clusterIP="None", ports=PORTS),
    (
        part(
            endpoint("10.3.0.100", hostname="my-pet"),
            endpoint("10.3.0.101", hostname="my-pet-2"),
            endpoint("10.3.0.102"),
            endpoint("10.3.0.103", hostname="late", ready=False),
            ports=(("https", 443), ("", 80)),
        ),
    ),
)
ELSEWHERE = (service("foo", type="ExternalName", externalName="www.example.com"), ())
SIX = (
    service("six", clusterIP="fd00::1", clusterIPs=["fd00::1"], ports=[{"name": "dns", "port": 53, "protocol": "UDP"}]),
    (),
)


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        pytest.param(
            "dns-version.cluster.local. IN TXT", ['dns-version.cluster.local. 5 IN TXT "1.1.0"'], id="2.2 version"
        ),
        pytest.param(
            "kubernetes.default.svc.cluster.local. IN A",
            ["kubernetes.default.svc.cluster.local. 5 IN A 10.3.0.1"],
            id="2.3.1 A",
        ),
        pytest.param(
            "six.default.svc.cluster.local. IN AAAA",
            ["six.default.svc.cluster.local. 5 IN AAAA fd00::1"],
            id="2.3.1 AAAA",
        ),
        pytest.param(
            "_https._tcp.kubernetes.default.svc.cluster.local. IN SRV",
            [f"_https._tcp.kubernetes.{SVC} 5 IN SRV 0 100 443 kubernetes.{SVC}"],
            id="2.3.2 SRV",
        ),
        pytest.param(
            "_dns._udp.six.default.svc.cluster.local. IN SRV",
            ["_dns._udp.six.default.svc.cluster.local. 5 IN SRV 0 100 53 six.default.svc.cluster.local."],
            id="2.3.2 SRV of UDP",
        ),
        pytest.param(
            "1.0.3.10.in-addr.arpa. IN PTR",
            ["1.0.3.10.in-addr.arpa. 5 IN PTR kubernetes.default.svc.cluster.local."],
            id="2.3.3 PTR",
        ),
        pytest.param(
            f"1.{'0.' * 29}d.f.ip6.arpa. IN PTR",
            [f"1.{'0.' * 29}d.f.ip6.arpa. 5 IN PTR six.{SVC}"],
            id="2.3.3 PTR of IPv6",
        ),
        pytest.param(
            "headless.default.svc.cluster.local. IN A",
            [
                "headless.default.svc.cluster.local. 5 IN A 10.3.0.100",
                "headless.default.svc.cluster.local. 5 IN A 10.3.0.101",
                "headless.default.svc.cluster.local. 5 IN A 10.3.0.102",
            ],
            id="2.4.1 A of every ready endpoint",
        ),
        pytest.param(
            "my-pet.headless.default.svc.cluster.local. IN A",
            ["my-pet.headless.default.svc.cluster.local. 5 IN A 10.3.0.100"],
            id="2.4.1 A of a hostname",
        ),
        pytest.param(
            "_https._tcp.headless.default.svc.cluster.local. IN SRV",
            [
                f"_https._tcp.headless.{SVC} 5 IN SRV 0 100 443 {host}.headless.{SVC}"
                for host in ("10-3-0-102", "my-pet", "my-pet-2")
            ],
            id="2.4.2 SRV",
        ),
        pytest.param(
            "100.0.3.10.in-addr.arpa. IN PTR",
            ["100.0.3.10.in-addr.arpa. 5 IN PTR my-pet.headless.default.svc.cluster.local."],
            id="2.4.3 PTR",
        ),
        pytest.param(
            "foo.default.svc.cluster.local. IN A",
            ["foo.default.svc.cluster.local. 5 IN CNAME www.example.com."],
            id="2.5 ExternalName",
        ),
        pytest.param(
            "1-2-3-4.default.pod.cluster.local. IN A",
            ["1-2-3-4.default.pod.cluster.local. 5 IN A 1.2.3.4"],
            id="2.6 pods",
        ),
        pytest.param(
            "KUBERNETES.Default.SVC.cluster.LOCAL. IN A",
            ["kubernetes.default.svc.cluster.local. 5 IN A 10.3.0.1"],
            id="2.1 case-insensitive",
        ),
    ],
)
def test_example(question: str, answers: list[str]) -> None:
    assert sorted(lines(asked(zone(WITH_ADDRESS, PETS, ELSEWHERE, SIX), question))) == sorted(answers)


def test_srv_answers_come_with_the_addresses_of_their_targets() -> None:
    answer = asked(zone(WITH_ADDRESS), "_https._tcp.kubernetes.default.svc.cluster.local. IN SRV")
    assert [str(record) for record in answer.additional] == ["kubernetes.default.svc.cluster.local. 5 IN A 10.3.0.1"]


def test_an_external_name_is_followed_by_who_asks_others() -> None:
    assert asked(zone(ELSEWHERE), "foo.default.svc.cluster.local. IN A").follow == "www.example.com"
    assert asked(zone(ELSEWHERE), "foo.default.svc.cluster.local. IN CNAME").follow == ""


def test_unnamed_ports_have_no_srv_record() -> None:
    names = zone(WITH_ADDRESS, PETS)
    for name in ("kubernetes", "headless"):
        assert asked(names, f"_._tcp.{name}.default.svc.cluster.local. IN SRV").code == NAME_ERROR


def test_a_headless_service_without_ready_endpoints_is_no_name() -> None:
    late = service("late", clusterIP="None", ports=[{"name": "https", "port": 443}])
    names = zone((late, (part(endpoint("10.3.0.1", ready=False)),)))
    for question in ("late.default.svc.cluster.local. IN A", "_https._tcp.late.default.svc.cluster.local. IN SRV"):
        answer = asked(names, question)
        assert (answer.code, answer.records) == (NAME_ERROR, ())
        assert [record.type for record in answer.authority] == [RecordType.SOA]


def test_unready_endpoints_count_where_the_service_says_so_and_unknown_ones_are_ready() -> None:
    early = service("early", clusterIP="None", publishNotReadyAddresses=True)
    unknown = service("unknown", clusterIP="None")
    slices = (part(endpoint("10.3.0.1", ready=False)), part(endpoint("10.3.0.2", ready=None)))
    names = zone((early, slices), (unknown, slices))
    assert len(lines(asked(names, "early.default.svc.cluster.local. IN A"))) == 2
    assert lines(asked(names, "unknown.default.svc.cluster.local. IN A")) == [
        "unknown.default.svc.cluster.local. 5 IN A 10.3.0.2"
    ]


def test_several_addresses_of_one_hostname_are_all_told() -> None:
    found = service("twins", clusterIP="None")
    names = zone((found, (part(endpoint("10.3.0.1", hostname="x"), endpoint("10.3.0.2", hostname="x")),)))
    assert len(lines(asked(names, "x.twins.default.svc.cluster.local. IN A"))) == 2


def test_what_the_name_has_nothing_of_is_answered_with_nothing() -> None:
    answer = asked(zone(WITH_ADDRESS), "kubernetes.default.svc.cluster.local. IN AAAA")
    assert (answer.code, answer.records) == (NO_ERROR, ())
    assert [record.type for record in answer.authority] == [RecordType.SOA]


@pytest.mark.parametrize("domain", ["cluster.local", "c.example", "one"])
def test_every_zone_is_told_alike(domain: str) -> None:
    names = zone(WITH_ADDRESS, domain=domain)
    assert lines(asked(names, f"kubernetes.default.svc.{domain}. IN A")) == [
        f"kubernetes.default.svc.{domain}. 5 IN A 10.3.0.1"
    ]


def test_a_slice_of_many_endpoints_and_ports_has_a_bounded_number_of_names() -> None:
    """A thousand endpoints with a hundred ports each are what the API takes."""
    ports = [{"name": f"p{number}", "port": number + 1} for number in range(100)]
    found = service("many", clusterIP="None", ports=ports)
    hosts = [endpoint(f"10.3.{number // 250}.{number % 250}") for number in range(1000)]
    whole = part(*hosts, ports=tuple((f"p{number}", number + 1) for number in range(100)))
    records = slice_records(found, whole, "cluster.local")
    assert sum(record.type is RecordType.SRV for record in records) == 10_000
    assert sum(record.type is RecordType.A for record in records) == 2000
