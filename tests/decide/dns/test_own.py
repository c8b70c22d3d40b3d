"""The Service kube-dns: made, kept, or left to somebody else."""

from msgspec.structs import replace

from podfit.api.core.v1.services.types import Service
from podfit.api.discovery.v1.types import EndpointSlice
from podfit.decide.dns.own import DnsPlace, Wanted, wanted

PLACE = DnsPlace(service="10.96.0.10", address="10.244.0.1", port=53, node="box")


def ours() -> tuple[Service, EndpointSlice]:
    service, part = wanted(None, None, PLACE).create
    assert isinstance(service, Service)
    assert isinstance(part, EndpointSlice)
    return service, part


def test_it_is_made_at_the_tenth_address_and_leads_to_the_server() -> None:
    service, part = ours()
    assert (service.spec.cluster_ip, service.spec.selector) == ("10.96.0.10", {})
    assert [(port.name, port.port, port.protocol) for port in service.spec.ports] == [
        ("dns", 53, "UDP"),
        ("dns-tcp", 53, "TCP"),
    ]
    assert [endpoint.addresses for endpoint in part.endpoints or ()] == [("10.244.0.1",)]
    assert [(port.name, port.port) for port in part.ports or ()] == [("dns", 53), ("dns-tcp", 53)]


def test_what_is_as_it_should_be_is_left() -> None:
    assert wanted(*ours(), PLACE) == Wanted()


def test_what_people_change_comes_back_and_another_place_is_told() -> None:
    service, part = ours()
    fewer = replace(service, spec=replace(service.spec, ports=service.spec.ports[:1]))
    assert wanted(fewer, part, PLACE).update == (service,)
    empty = replace(part, endpoints=())
    assert wanted(service, empty, PLACE).update == (part,)
    moved = replace(PLACE, address="10.245.0.1", port=1053)
    [led] = wanted(service, part, moved).update
    assert isinstance(led, EndpointSlice)
    assert [endpoint.addresses for endpoint in led.endpoints or ()] == [("10.245.0.1",)]
    assert {port.port for port in led.ports or ()} == {1053}


def test_a_service_with_a_selector_is_somebody_elses_and_nothing_leads_here_any_more() -> None:
    service, part = ours()
    coredns = replace(service, spec=replace(service.spec, selector={"k8s-app": "kube-dns"}))
    for own in (None, part):
        what = wanted(coredns, own, PLACE)
        assert (what.create, what.update, what.delete) == ((), (), own)
        assert what.others == "Service kube-system/kube-dns has a selector: its pods answer, not podfit"


def test_one_that_is_not_marked_is_somebody_elses() -> None:
    service, part = ours()
    strange = replace(service, metadata=replace(service.metadata, labels={"k8s-app": "kube-dns"}))
    assert wanted(strange, None, PLACE) == Wanted(
        others="Service kube-system/kube-dns is somebody else's: podfit leaves it alone"
    )
    foreign = replace(part, metadata=replace(part.metadata, labels={}))
    assert wanted(service, foreign, PLACE).update == ()
    assert "kube-dns-box" in wanted(service, foreign, PLACE).others
