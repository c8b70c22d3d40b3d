"""`podfit metrics-server` beside an API server of its own: aggregation leads to it, and it believes the front proxy."""

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podfit.api.apiregistration.v1.types import APIService
from podfit.api.core.v1.nodes.types import Node, NodeStatus
from podfit.api.discovery.v1.types import EndpointSlice
from podfit.api.meta.codec import convert
from podfit.apiserver.extensions.aggregation import remote
from podfit.client.kubeconfig import load
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.metrics.kubelets import Kubelets, Reached, server_of
from podfit.metrics.objects import API_SERVICE
from podfit.net.addresses import own_address
from podfit.net.http_client import HttpsClient
from podfit.net.system import SystemClock
from podfit.net.tls import client_context
from podfit.net.wire import Identity, Request
from podfit.process.control.apiserver import ApiServerProcess
from podfit.process.control.metrics_process import MetricsServerOptions, MetricsServerProcess
from podfit.process.data.data_dir import DataDir
from podfit.process.options import ApiServerOptions
from support.eventually import PATIENCE

ROOT = "/apis/metrics.k8s.io/v1beta1"


@asynccontextmanager
async def both(directory: Path) -> AsyncIterator[tuple[Path, MetricsServerProcess]]:
    options = ApiServerOptions(data=DataDir.at(directory), port=0)
    api = await ApiServerProcess.start(options, announce=lambda _: None, clock=SystemClock())
    kubeconfig = options.data.kubeconfig
    try:
        made = MetricsServerOptions(
            kubeconfig=kubeconfig, port=0, address="0.0.0.0", register=True, advertise_address=own_address()
        )
        metrics = await MetricsServerProcess.start(made, announce=lambda _: None, clock=SystemClock())
        try:
            yield kubeconfig, metrics
        finally:
            await metrics.stop()
    finally:
        await api.stop()


@pytest.mark.skipif(not own_address(), reason="this machine has no address but loopback")
async def test_an_api_server_passes_requests_on_to_it(tmp_path: Path) -> None:
    async with both(tmp_path) as (kubeconfig, _):
        client = load([kubeconfig]).client()
        try:
            async with asyncio.timeout(20 * PATIENCE):
                answer = await until_available(client)
            assert answer == {
                "kind": "NodeMetricsList",
                "apiVersion": "metrics.k8s.io/v1beta1",
                "metadata": {},
                "items": [],
            }
            with pytest.raises(ApiError) as refused:
                await client.request("GET", f"{ROOT}/nodes/none")
            assert refused.value.message == 'nodemetrics.metrics.k8s.io "none" not found'
        finally:
            await client.close()


@pytest.mark.skipif(not own_address(), reason="this machine has no address but loopback")
async def test_an_api_server_that_names_no_group_reads_its_discovery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Upstream's aggregated discovery asks as system:kube-aggregator, in no group."""
    monkeypatch.setattr(remote, "AGGREGATOR", Identity("system:kube-aggregator"))
    async with both(tmp_path) as (kubeconfig, _):
        client = load([kubeconfig]).client()
        try:
            async with asyncio.timeout(20 * PATIENCE):
                assert (await until_available(client))["kind"] == "NodeMetricsList"
            listed = json.loads(await client.request("GET", ROOT))
            assert [kind["name"] for kind in listed["resources"]] == ["nodes", "pods"]
        finally:
            await client.close()


@pytest.mark.skipif(not own_address(), reason="this machine has no address but loopback")
async def test_the_front_proxy_names_a_group_in_each_header(tmp_path: Path) -> None:
    asked: list[tuple[str, str, tuple[str, ...], int]] = [
        (ROOT, "system:kube-aggregator", (), 200),
        ("/openapi/v2", "system:aggregator", (), 404),
        (ROOT, "system:anonymous", (), 403),
        (ROOT, "eve", ("system:unauthenticated",), 403),
        (f"{ROOT}/nodes", "eve", (), 403),
        (f"{ROOT}/nodes", "eve", ("dev,system:masters",), 403),
        (f"{ROOT}/nodes", "eve", ("dev, system:masters",), 403),
        (f"{ROOT}/nodes", "eve", ("dev", "system:masters"), 200),
    ]
    async with both(tmp_path) as (kubeconfig, _):
        place = DataDir.at(tmp_path).pki / "front-proxy" / "front-proxy-client.crt"
        shown = client_context(verify=False, certificate=place.read_bytes(), key=place.with_suffix(".key").read_bytes())
        client = HttpsClient(await address_of(kubeconfig), shown)
        try:
            for path, user, groups, code in asked:
                headers = (("X-Remote-User", user), *(("X-Remote-Group", group) for group in groups))
                answer = await client.send(Request("GET", path), more=headers)
                assert (answer.status, user, groups) == (code, user, groups), await answer.read()
        finally:
            await client.close()


async def address_of(kubeconfig: Path) -> str:
    """Where the registered service leads."""
    client = load([kubeconfig]).client()
    try:
        told = (await client.list(EndpointSlice, "kube-system")).items
        (found,) = (place for place in told if place.metadata.name.startswith("metrics-server"))
        assert found.endpoints
        assert found.ports
        return f"https://{found.endpoints[0].addresses[0]}:{found.ports[0].port}"
    finally:
        await client.close()


async def until_available(client: Client) -> Any:
    """The nodes, once the API server has found the backend to be there."""
    found = await client.list(APIService)
    if not any(map(is_available, found.items)):
        async for event in client.watch(APIService, resource_version=found.resource_version):
            if event.type != "BOOKMARK" and is_available(event.object):
                break
    return json.loads(await client.request("GET", f"{ROOT}/nodes"))


def is_available(service: APIService) -> bool:
    told = {(condition.type, condition.status) for condition in service.status.conditions}
    return service.metadata.name == API_SERVICE and ("Available", "True") in told


def node(*addresses: tuple[str, str], port: int = 0) -> Node:
    told = [{"type": kind, "address": address} for kind, address in addresses]
    return Node(status=convert({"addresses": told, "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}, NodeStatus))


@pytest.mark.parametrize(
    ("given", "reached", "server"),
    [
        (node(("Hostname", "n1"), ("InternalIP", "10.0.0.7")), Reached(), "https://n1:10250"),
        (
            node(("Hostname", "n1"), ("InternalIP", "10.0.0.7"), port=1234),
            Reached(types=("InternalIP",)),
            "https://10.0.0.7:1234",
        ),
        (node(("InternalIP", "fd00::7"), port=1234), Reached(told_port=False), "https://[fd00::7]:10250"),
        (node(("InternalIP", "10.0.0.7"), ("InternalIP", "10.0.0.8")), Reached(), "https://10.0.0.7:10250"),
    ],
)
def test_where_a_kubelet_is_asked(given: Node, reached: Reached, server: str) -> None:
    assert server_of(given, reached) == server


def test_a_node_without_such_an_address_is_not_asked() -> None:
    with pytest.raises(ConnectionError, match="no address of the types InternalIP"):
        server_of(node(("Hostname", "n1")), Reached(types=("InternalIP",)))


async def test_a_kubelet_that_is_not_reached_is_named_once() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        kubelets = Kubelets(ssl.create_default_context(), Reached(port=port), None)
        with pytest.raises(ConnectionError) as caught:
            await kubelets.ask(node(("InternalIP", "127.0.0.1")))
    assert str(caught.value).count(f"https://127.0.0.1:{port}") == 1
