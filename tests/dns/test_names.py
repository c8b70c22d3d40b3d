"""Names of Services as an API server has them, and the Service kube-dns, with the rights of the name server alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from podfit.api.core.v1.services.types import Service
from podfit.api.discovery.v1.types import EndpointSlice
from podfit.api.meta.codec import convert
from podfit.decide.dns.own import DnsPlace
from podfit.decide.dns.records import RecordType
from podfit.decide.dns.zone import Question, Zone
from podfit.dns.names import ClusterNames
from podfit.dns.own_service import OwnService
from podfit.net.supervisor import Supervisor
from podfit.net.wire import Identity
from podfit.process.identities import DNS
from support.clock import FakeClock
from support.server import Server, running_server

PLACE = DnsPlace(service="10.96.0.10", address="10.244.0.1", port=53, node="box")


@dataclass
class Named:
    server: Server
    names: ClusterNames
    own: OwnService
    clock: FakeClock

    async def values(self, name: str, kind: RecordType = RecordType.A) -> list[str] | None:
        """None when there is no such name."""
        await self.clock.settle()
        answer = self.names.zone.answer(Question(name, kind))
        assert answer is not None
        return sorted(record.value for record in answer.records) if not answer.code else None

    async def make(self, kind: type[Any], name: str, **more: Any) -> Any:
        return await self.server.client.create(
            convert({"metadata": {"name": name, "namespace": "default"}} | more, kind)
        )

    async def service(self) -> Service:
        await self.clock.settle()
        return await self.server.client.get(Service, "kube-dns", "kube-system")

    async def slices(self) -> list[EndpointSlice]:
        await self.clock.settle()
        return list((await self.server.client.list(EndpointSlice, "kube-system")).items)


@asynccontextmanager
async def named(directory: Path) -> AsyncIterator[Named]:
    clock = FakeClock()
    async with running_server(directory, clock=clock) as server:
        client = server.as_identity(Identity(DNS))
        names = ClusterNames(client, Zone("cluster.local"), clock)
        own = OwnService(client, names, PLACE, clock)
        running = Supervisor("test")
        running.run(names.run())
        running.run(own.run())
        try:
            await names.ready.wait()
            yield Named(server, names, own, clock)
            assert running.broken is None
        finally:
            await running.stop()


def endpoints(*addresses: str, ready: bool = True) -> dict[str, Any]:
    return {
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": ready}} for address in addresses],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    }


def of(service: str) -> dict[str, Any]:
    return {"metadata": {"name": "part", "namespace": "default", "labels": {"kubernetes.io/service-name": service}}}


async def test_services_and_endpoints_come_change_and_go(tmp_path: Path) -> None:
    web, all_web = "web.default.svc.cluster.local", "all.default.svc.cluster.local"
    async with named(tmp_path) as cluster:
        client = cluster.server.client
        assert await cluster.values(web) is None
        made = await cluster.make(Service, "web", spec={"ports": [{"name": "http", "port": 80}]})
        assert await cluster.values(web) == [made.spec.cluster_ip]
        assert await cluster.values(f"_http._tcp.{web}", RecordType.SRV) == [web]

        ports = [{"name": "http", "port": 80}]
        headless = await cluster.make(Service, "all", spec={"clusterIP": "None", "ports": ports})
        assert await cluster.values(all_web) is None
        part = await cluster.make(EndpointSlice, "part", **(endpoints("10.244.0.7", "10.244.0.8") | of("all")))
        assert await cluster.values(all_web) == ["10.244.0.7", "10.244.0.8"]
        fewer = convert(endpoints("10.244.0.8"), EndpointSlice)
        part = await client.update(replace(part, endpoints=fewer.endpoints))
        assert await cluster.values(all_web) == ["10.244.0.8"]
        assert cluster.names.zone.answer(Question("7.0.244.10.in-addr.arpa", RecordType.PTR)) is None

        late = convert(endpoints("10.244.0.8", ready=False), EndpointSlice)
        part = await client.update(replace(part, endpoints=late.endpoints))
        assert await cluster.values(all_web) is None
        await client.update(replace(headless, spec=replace(headless.spec, publish_not_ready_addresses=True)))
        assert await cluster.values(all_web) == ["10.244.0.8"]

        await cluster.make(Service, "other", spec={"clusterIP": "None"})
        moved = replace(part.metadata, labels={"kubernetes.io/service-name": "other"})
        await client.update(replace(part, metadata=moved, endpoints=fewer.endpoints))
        assert await cluster.values(all_web) is None
        assert await cluster.values("other.default.svc.cluster.local") == ["10.244.0.8"]
        await client.delete(Service, "other", "default")
        assert await cluster.values("other.default.svc.cluster.local") is None
        await client.delete(Service, "web", "default")
        assert await cluster.values(web) is None
        assert await cluster.values(f"_http._tcp.{web}", RecordType.SRV) is None


async def test_endpoints_that_were_there_first_are_told_with_their_service(tmp_path: Path) -> None:
    async with named(tmp_path) as cluster:
        await cluster.make(EndpointSlice, "part", **(endpoints("10.244.0.7") | of("late")))
        assert await cluster.values("late.default.svc.cluster.local") is None
        await cluster.make(Service, "late", spec={"clusterIP": "None"})
        assert await cluster.values("late.default.svc.cluster.local") == ["10.244.0.7"]


async def test_pods_are_named_in_namespaces_that_there_are(tmp_path: Path) -> None:
    name = "10-244-0-7.shop.pod.cluster.local"
    async with named(tmp_path) as cluster:
        assert await cluster.values(name) is None
        await cluster.server.namespace("shop")
        assert await cluster.values(name) == ["10.244.0.7"]


async def test_kube_dns_is_made_and_comes_back_with_the_rights_of_the_name_server(tmp_path: Path) -> None:
    async with named(tmp_path) as cluster:
        client = cluster.server.client
        service, [part] = await cluster.service(), await cluster.slices()
        assert (service.spec.cluster_ip, cluster.own.others) == ("10.96.0.10", "")
        assert [endpoint.addresses for endpoint in part.endpoints or ()] == [("10.244.0.1",)]
        assert await cluster.values("kube-dns.kube-system.svc.cluster.local") == ["10.96.0.10"]
        assert await cluster.values("ns.dns.cluster.local") == ["10.96.0.10"]

        await client.delete(EndpointSlice, part.metadata.name, "kube-system")
        await client.delete(Service, "kube-dns", "kube-system")
        assert (await cluster.service()).spec.cluster_ip == "10.96.0.10"
        assert len(await cluster.slices()) == 1
        part = (await cluster.slices())[0]
        await client.update(replace(part, endpoints=()))
        assert [one.addresses for one in (await cluster.slices())[0].endpoints or ()] == [("10.244.0.1",)]


async def test_somebody_elses_kube_dns_is_left_alone_until_it_goes(tmp_path: Path) -> None:
    async with named(tmp_path) as cluster:
        client, service = cluster.server.client, await cluster.service()
        mine = await client.update(replace(service, spec=replace(service.spec, selector={"k8s-app": "kube-dns"})))
        assert await cluster.slices() == []
        assert "has a selector" in cluster.own.others
        assert (await cluster.service()).metadata.resource_version == mine.metadata.resource_version
        await client.delete(Service, "kube-dns", "kube-system")
        assert (await cluster.service()).spec.selector == {}
        assert len(await cluster.slices()) == 1
        assert cluster.own.others == ""


async def test_a_tenth_address_that_is_taken_is_said_and_taken_when_it_is_free(tmp_path: Path) -> None:
    async with running_server(tmp_path, clock=(clock := FakeClock())) as server:
        taken = {"metadata": {"name": "first", "namespace": "default"}, "spec": {"clusterIP": PLACE.service}}
        taken["spec"]["ports"] = [{"port": 80}]  # type: ignore[assignment]
        await server.client.create(convert(taken, Service))
        client = server.as_identity(Identity(DNS))
        names = ClusterNames(client, Zone("cluster.local"), clock)
        own, running = OwnService(client, names, PLACE, clock), Supervisor("test")
        running.run(names.run())
        running.run(own.run())
        await own.settled.wait()
        assert "provided IP is already allocated" in own.others
        await server.client.delete(Service, "first", "default")
        await clock.settle()
        await clock.advance(2)
        await clock.settle()
        assert (await server.client.get(Service, "kube-dns", "kube-system")).spec.cluster_ip == PLACE.service
        assert own.others == ""
        await running.stop()


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("POST", "/api/v1/namespaces/default/services"),
        ("PUT", "/api/v1/namespaces/kube-system/services/metrics-server"),
        ("DELETE", "/api/v1/namespaces/kube-system/services/kube-dns"),
        ("POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"),
        ("GET", "/api/v1/namespaces/kube-system/secrets"),
        ("GET", "/api/v1/pods"),
    ],
)
async def test_the_name_server_may_do_no_more(verb: str, path: str, tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        response = await server.ask(verb, path, b"{}", identity=Identity(DNS))
        assert response.status == 403
