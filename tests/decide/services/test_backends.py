"""Which endpoints answer for a Service: by their conditions, by policies, and by where they may lead."""

from typing import Any

import pytest

from podfit.api.core.v1.services.types import Service
from podfit.api.discovery.v1.types import EndpointSlice
from podfit.api.meta.codec import convert
from podfit.decide.services.backends import (
    Backend,
    PortBackends,
    ProxyPlace,
    Reached,
    ServiceBackends,
    StaleFlow,
    may_answer,
    service_backends,
    stale_flows,
)

PLACE = ProxyPlace("n1", "192.0.2.2", "10.244.0.0/16", "10.244.0.0/24")


def service(**spec: Any) -> Service:
    whole = {"clusterIP": "10.96.0.5", "ports": [{"name": "http", "port": 80, "protocol": "TCP"}], **spec}
    return convert({"metadata": {"name": "web", "namespace": "shop"}, "spec": whole}, Service)


def endpoints(*given: tuple[str, dict[str, Any]], port: int = 8080, name: str = "http") -> EndpointSlice:
    """Addresses with what else is said of them."""
    found = [{"addresses": [address], **more} for address, more in given]
    ports = [{"name": name, "port": port, "protocol": "TCP"}]
    return convert({"addressType": "IPv4", "endpoints": found, "ports": ports}, EndpointSlice)


def ready(ready: bool | None = True, **more: bool) -> dict[str, Any]:
    return {"conditions": {"ready": ready, **more}}


def port(service: Service, *slices: EndpointSlice) -> PortBackends:
    found = service_backends(service, slices, PLACE)
    assert found is not None
    return found.ports[0]


def addresses(reached: Reached) -> list[str]:
    return [backend.address for backend in reached.backends]


def test_the_ready_ones_of_all_slices_answer() -> None:
    several = endpoints(("10.244.0.3", ready()), ("10.244.0.2", ready(None))), endpoints(("10.244.0.4", ready(False)))
    assert port(service(), *several).internal.backends == (Backend("10.244.0.2", 8080), Backend("10.244.0.3", 8080))


def test_while_none_is_ready_those_that_end_and_still_serve_answer() -> None:
    ending = ("10.244.0.2", ready(False, serving=True, terminating=True))
    broken = ("10.244.0.3", ready(False, serving=False, terminating=True))
    unready = ("10.244.0.4", ready(False, serving=True))
    assert addresses(port(service(), endpoints(ending, broken, unready)).internal) == ["10.244.0.2"]
    assert addresses(port(service(), endpoints(ending, ("10.244.0.9", ready()))).internal) == ["10.244.0.9"]


def test_the_port_is_found_by_name_and_protocol_and_may_differ_from_slice_to_slice() -> None:
    found = port(
        service(),
        endpoints(("10.244.0.2", ready())),
        endpoints(("10.244.0.3", ready()), port=9090),
        endpoints(("10.244.0.4", ready()), name="admin"),
    )
    assert found.internal.backends == (Backend("10.244.0.2", 8080), Backend("10.244.0.3", 9090))


@pytest.mark.parametrize("field", ["internalTrafficPolicy", "externalTrafficPolicy"])
def test_local_is_this_node_alone(field: str) -> None:
    here, there = ("10.244.0.2", {**ready(), "nodeName": "n1"}), ("10.244.1.2", {**ready(), "nodeName": "n2"})
    local = service(**{field: "Local"}, type="NodePort")

    def way(*given: tuple[str, dict[str, Any]]) -> Reached:
        found = port(local, endpoints(*given))
        return found.internal if field == "internalTrafficPolicy" else found.external

    assert addresses(way(here, there)) == ["10.244.0.2"]
    assert way(there) == Reached(dropped=True)
    assert way() == Reached()
    assert port(local, endpoints(here)).masquerade is (field == "internalTrafficPolicy")


@pytest.mark.parametrize("more", [{"clusterIP": "None"}, {"type": "ExternalName", "clusterIP": ""}, {"clusterIP": ""}])
def test_a_service_without_an_address_has_no_rules(more: dict[str, Any]) -> None:
    assert service_backends(service(**more), (), PLACE) is None


def test_the_address_of_ipv4_is_the_one() -> None:
    both = service(clusterIP="fd00::5", clusterIPs=["fd00::5", "10.96.0.5"])
    found = service_backends(both, (), PLACE)
    assert found is not None
    assert found.address == "10.96.0.5"


def test_node_ports_are_of_services_that_have_them() -> None:
    ports = [{"port": 80, "nodePort": 30080}]
    assert port(service(type="NodePort", ports=ports)).node_port == 30080
    assert port(service(type="ClusterIP", ports=ports)).node_port == 0


def test_clients_stay_for_three_hours_or_as_long_as_is_said() -> None:
    config = {"clientIP": {"timeoutSeconds": 7}}
    assert port(service()).affinity == 0
    assert port(service(sessionAffinity="ClientIP")).affinity == 10800
    assert port(service(sessionAffinity="ClientIP", sessionAffinityConfig=config)).affinity == 7


# ---------------------------------------------------------------- endpoints that somebody wrote


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "127.8.8.8", "169.254.169.254", "224.0.0.1", "0.0.0.0", "255.255.255.255", "fd00::1", "web"],
)
def test_no_endpoint_leads_to_loopback_a_link_or_many(address: str) -> None:
    assert not may_answer(address)
    assert port(service(), endpoints((address, ready()))).internal == Reached()


def test_a_node_port_leads_to_pods_and_to_this_node_only() -> None:
    """Not to another machine, that would take the client for this one, nor to the API server at the gateway."""
    given = ["10.244.0.1", "10.244.0.7", "10.244.3.7", "192.0.2.1", "192.0.2.2", "203.0.113.5"]
    found = port(service(type="NodePort"), endpoints(*((address, ready()) for address in given)))
    assert addresses(found.external) == ["10.244.0.7", "10.244.3.7", "192.0.2.2"]
    assert set(addresses(found.internal)) == set(given)


# ---------------------------------------------------------------- flows of UDP


def of(*backends: str, protocol: str = "udp", node_port: int = 0) -> dict[str, ServiceBackends]:
    reached = Reached(tuple(Backend(address, 53) for address in backends))
    one = PortBackends("dns", protocol, 53, node_port, reached, reached, masquerade=True, affinity=0)
    return {"shop/dns": ServiceBackends("shop/dns", "10.96.0.9", (one,))}


def test_flows_to_what_has_gone_are_stale_also_those_of_node_ports() -> None:
    assert stale_flows(of("10.244.0.2", "10.244.0.3", node_port=30053), of("10.244.0.3", node_port=30053)) == [
        StaleFlow("", 30053, "10.244.0.2"),
        StaleFlow("10.96.0.9", 53, "10.244.0.2"),
    ]
    assert stale_flows(of("10.244.0.2"), {}) == [StaleFlow("10.96.0.9", 53, "10.244.0.2")]


def test_flows_that_were_led_nowhere_are_stale_when_somebody_answers() -> None:
    assert stale_flows(of(), of("10.244.0.2")) == [StaleFlow("10.96.0.9", 53)]


def test_what_stays_and_what_is_no_udp_is_left_alone() -> None:
    assert stale_flows(of("10.244.0.2"), of("10.244.0.2", "10.244.0.3")) == []
    assert stale_flows(of("10.244.0.2", protocol="tcp"), of(protocol="tcp")) == []


def test_of_ten_thousand_endpoints_the_first_five_thousand_answer() -> None:
    several = [endpoints(*((f"10.244.{part}.{number}", ready()) for number in range(1, 251))) for part in range(40)]
    backends = port(service(), *several).internal.backends
    assert len(backends) == 5000
    assert list(backends) == sorted(backends)
