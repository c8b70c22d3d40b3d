"""Addresses and node ports of services: one owner each, on one server and on several, through failures too."""

import asyncio
import json
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podfit.api.core.v1.services.types import Endpoints, Service
from podfit.api.discovery.v1.types import EndpointSlice
from podfit.api.meta.codec import convert
from podfit.apiserver.handlers import allocations
from podfit.apiserver.housekeeping import own_service
from podfit.apiserver.registry import pending_allocations
from podfit.apiserver.registry.service_allocation import ServiceRanges
from podfit.apiserver.server import PUBLISH_SECONDS, ApiServer
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.store.protocol import StoreUnavailable
from support.clock import FakeClock
from support.server import ADMIN, Server, document, running_server


def service(name: str, **spec: Any) -> Service:
    body = {"ports": [{"port": 80}]} | spec
    return convert({"metadata": {"name": name, "namespace": "default"}, "spec": body}, Service)


async def keys(server: Server) -> list[str]:
    page = await server.context.store.list(allocations.ROOT)
    return [record.key.removeprefix(f"{allocations.ROOT}/") for record in page.records]


async def test_many_at_once_get_different_addresses(server: Server) -> None:
    """Through two servers on one store, which know nothing of each other."""
    other = Client(Local(ApiServer(server.context, signing_key=Path("/nonexistent")).handler, ADMIN))
    clients = (server.client, other)
    made = await asyncio.gather(*(clients[n % 2].create(service(f"s{n}", type="NodePort")) for n in range(40)))
    assert len({service.spec.cluster_ip for service in made}) == 40
    assert len({service.spec.ports[0].node_port for service in made}) == 40
    assert len(await keys(server)) == 80


async def test_an_address_is_given_back(server: Server) -> None:
    await server.client.create(service("a", clusterIP="10.96.0.10"))
    with pytest.raises(ApiError) as refused:
        await server.client.create(service("b", clusterIP="10.96.0.10"))
    assert refused.value.message == (
        'Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.96.0.10"]: failed to allocate IP 10.96.0.10: '
        "provided IP is already allocated"
    )
    await server.client.delete(Service, "a", "default")
    assert await keys(server) == []
    await server.client.create(service("b", clusterIP="10.96.0.10"))


async def test_what_a_refused_write_took_is_given_back(server: Server) -> None:
    await server.client.create(service("a", type="NodePort"))
    before = await keys(server)
    with pytest.raises(ApiError):
        await server.client.create(service("a", type="NodePort"))
    with pytest.raises(ApiError) as refused:
        await server.client.create(service("b", type="NodePort", ports=[{"port": 80, "nodePort": 29999}]))
    assert "The range of valid ports is 30000-32767" in refused.value.message
    assert await keys(server) == before


async def test_a_dry_run_takes_nothing(server: Server) -> None:
    body = json.dumps({"metadata": {"name": "dry"}, "spec": {"type": "NodePort", "ports": [{"port": 1}]}}).encode()
    answer = await server.ask("POST", "/api/v1/namespaces/default/services?dryRun=All", body)
    assert document(await answer.read())["spec"]["clusterIP"]
    assert await keys(server) == []


async def test_a_key_that_a_dead_server_left_is_taken_over(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_server(tmp_path, clock=clock) as server:
        orphan = allocations.AllocationOwner("default", "gone", "some-uid", "2020-01-01T00:00:00Z")
        await server.context.store.create(f"{allocations.ROOT}/addresses/10.96.0.20", msgspec.json.encode(orphan))
        assert (await server.client.create(service("a", clusterIP="10.96.0.20"))).spec.cluster_ip == "10.96.0.20"
        with pytest.raises(ApiError):
            await server.client.create(service("b", clusterIP="10.96.0.20"))


async def test_a_range_can_be_full(tmp_path: Path) -> None:
    ranges = ServiceRanges(ip_network("10.0.0.0/30"), (30000, 30001))
    async with running_server(tmp_path, ranges=ranges) as server:
        made = [await server.client.create(service(f"s{n}")) for n in range(2)]
        assert {service.spec.cluster_ip for service in made} == {"10.0.0.1", "10.0.0.2"}
        with pytest.raises(ApiError) as refused:
            await server.client.create(service("more"))
        assert (refused.value.code, refused.value.reason) == (403, "Forbidden")
        await server.client.create(service("none", clusterIP="None"))


async def test_types_change(server: Server) -> None:
    """What the new type needs is given, what it has no use for is let go, what stays stays."""
    made = await server.client.create(service("a"))
    address = made.spec.cluster_ip

    async def patched(**spec: Any) -> Service:
        path = "/api/v1/namespaces/default/services/a"
        answer = await server.ask(
            "PATCH", path, json.dumps({"spec": spec}).encode(), content_type="application/merge-patch+json"
        )
        assert answer.status == 200, await answer.read()
        return convert(document(await answer.read()), Service)

    ported = await patched(type="NodePort")
    port = ported.spec.ports[0].node_port
    assert 30000 <= port <= 32767
    assert (ported.spec.cluster_ip, ported.spec.external_traffic_policy) == (address, "Cluster")
    assert (await patched(ports=[{"port": 80, "targetPort": 8080}])).spec.ports[0].node_port == port
    balanced = await patched(type="LoadBalancer", externalTrafficPolicy="Local")
    assert balanced.spec.health_check_node_port
    assert len(await keys(server)) == 3
    plain = await patched(type="ClusterIP")
    assert (plain.spec.ports[0].node_port, plain.spec.health_check_node_port) == (0, 0)
    assert await keys(server) == [f"addresses/{address}"]
    named = await patched(type="ExternalName", externalName="example.com")
    assert (named.spec.cluster_ip, named.spec.cluster_ips, named.spec.ip_families) == ("", (), ())
    assert await keys(server) == []
    back = await patched(type="ClusterIP", externalName=None)
    assert await keys(server) == [f"addresses/{back.spec.cluster_ip}"]


async def test_headless_without_pods_has_both_families(server: Server) -> None:
    made = await server.client.create(service("h", clusterIP="None"))
    assert (made.spec.ip_families, made.spec.ip_family_policy) == (("IPv4", "IPv6"), "RequireDualStack")
    selecting = await server.client.create(service("s", clusterIP="None", selector={"a": "b"}))
    assert (selecting.spec.ip_families, selecting.spec.ip_family_policy) == (("IPv4",), "SingleStack")


async def test_the_server_finds_itself_as_kubernetes(server: Server) -> None:
    for address in ("https://192.0.2.1:6443", "https://192.0.2.2:7443"):
        await server.api.publish(address)
    found = await server.client.get(Service, "kubernetes", "default")
    assert (found.spec.cluster_ip, found.spec.ports[0].name) == ("10.96.0.1", "https")
    endpoints = await server.client.get(Endpoints, "kubernetes", "default")
    assert [address.ip for subset in endpoints.subsets for address in subset.addresses] == ["192.0.2.2"]
    slice_ = await server.client.get(EndpointSlice, "kubernetes", "default")
    assert ((slice_.ports or ())[0].port, slice_.metadata.generation) == (7443, 1)
    with pytest.raises(ApiError):
        await server.client.create(service("thief", clusterIP="10.96.0.1"))


async def test_servers_that_start_together_make_it_once(server: Server) -> None:
    """One has taken the address and not yet made the service when the others want to."""
    clock = server.context.clock
    assert isinstance(clock, FakeClock)
    addresses = [f"https://192.0.2.{number}:6443" for number in range(1, 6)]
    publishing = asyncio.gather(*(server.api.publish(address) for address in addresses))
    while not publishing.done():
        await clock.advance(own_service.GLANCE)
    await publishing
    assert await keys(server) == ["addresses/10.96.0.1"]


async def test_a_server_starts_on_a_full_disk_and_says_where_it_listens_once_there_is_room(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = server.context.clock
    assert isinstance(clock, FakeClock)
    await server.api.publish("https://192.0.2.1:6443")

    async def fail(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("not stored: the disk is full")

    with monkeypatch.context() as full:
        full.setattr(server.context.store, "update", fail)
        await server.api.publish("https://192.0.2.1:7443")
    assert await ports(server) == [6443]
    await clock.advance(PUBLISH_SECONDS)
    assert await ports(server) == [7443]


async def ports(server: Server) -> list[int | None]:
    found = await server.client.list(EndpointSlice, "default")
    return [port.port for endpoint_slice in found.items for port in endpoint_slice.ports or ()]


async def test_the_address_that_a_dying_server_took_is_free_again(server: Server) -> None:
    clock = server.context.clock
    assert isinstance(clock, FakeClock)
    owner = allocations.AllocationOwner("default", "kubernetes", "of-the-dead", format_time(clock.now()))
    await server.context.store.create(f"{allocations.ROOT}/addresses/10.96.0.1", msgspec.json.encode(owner))
    publishing = asyncio.create_task(server.api.publish("https://192.0.2.1:6443"))
    await clock.advance(own_service.GLANCE)
    assert not publishing.done()
    await clock.advance(pending_allocations.SECONDS + 1)
    await publishing
    assert (await server.client.get(Service, "kubernetes", "default")).spec.cluster_ip == "10.96.0.1"
