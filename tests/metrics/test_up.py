"""metrics.k8s.io of a whole cluster, aggregated as on any other, on the cluster's clock."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podfit.api.apiregistration.v1.types import APIService
from podfit.api.meta import codec
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.metrics.v1beta1.types import NodeMetrics
from podfit.core.errors import ApiError
from podfit.core.quantity import Quantity
from podfit.metrics.serving import table, wants_table
from podfit.net.wire import Request
from podfit.process.control.metrics_server import MANY_NODES, interval
from podfit.process.data.data_dir import DataDir
from podfit.process.options import ApiServerOptions, NodeKind, UpOptions
from podfit.process.up import Cluster as Composed
from podfit.testing.cluster import Cluster

ROOT = "/apis/metrics.k8s.io/v1beta1"
PODS = f"{ROOT}/namespaces/default/pods"
WEB = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "app", "image": "busybox:1.36"}]},
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    made.apply(WEB)
    made.load("web", cpu=0.25, memory=64 << 20)
    made.clock.advance(46)
    yield made
    made.close()


def get(cluster: Cluster, path: str, **query: str) -> Any:
    return json.loads(cluster.run(cluster.client.request("GET", path, query=query)))


def test_registered_and_available(cluster: Cluster) -> None:
    registered = cluster.run(cluster.client.get(APIService, "v1beta1.metrics.k8s.io"))
    assert [(condition.status, condition.reason) for condition in registered.status.conditions] == [("True", "Passed")]
    groups = {group["name"] for group in get(cluster, "/apis")["groups"]}
    assert "metrics.k8s.io" in groups


def test_pods_tell_rates_windows_and_labels(cluster: Cluster) -> None:
    (item,) = get(cluster, PODS)["items"]
    assert item["containers"] == [{"name": "app", "usage": {"cpu": "250m", "memory": "64Mi"}}]
    assert item["window"] == "15s"
    assert item["metadata"]["labels"] == {"app": "web"}
    assert "kind" not in item
    one = get(cluster, f"{PODS}/web")
    assert (one["kind"], one["containers"]) == ("PodMetrics", item["containers"])


def test_nodes(cluster: Cluster) -> None:
    (node,) = get(cluster, f"{ROOT}/nodes")["items"]
    assert node["usage"]["memory"] == "64Mi"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"labelSelector": "app=web"}, ["web"]),
        ({"labelSelector": "app=other"}, []),
        ({"fieldSelector": "metadata.name=web"}, ["web"]),
        ({"fieldSelector": "metadata.name!=web"}, []),
    ],
)
def test_selectors(cluster: Cluster, query: dict[str, str], names: list[str]) -> None:
    assert [item["metadata"]["name"] for item in get(cluster, PODS, **query)["items"]] == names


def test_what_is_not_there(cluster: Cluster) -> None:
    with pytest.raises(ApiError) as refused:
        get(cluster, f"{PODS}/gone")
    assert (refused.value.code, refused.value.message) == (404, 'podmetrics.metrics.k8s.io "default/gone" not found')


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


async def test_a_table() -> None:
    used = NodeMetrics(metadata=ObjectMeta(name="n1"), window="15s", usage={"cpu": Quantity.parse("250m")})
    request = Request("GET", f"{ROOT}/nodes", headers={"accept": TABLE})
    assert wants_table(request)
    made = json.loads(codec.encode(await table(request, [used])))
    assert [definition["name"] for definition in made["columnDefinitions"]] == ["Name", "cpu", "Window"]
    assert [row["cells"] for row in made["rows"]] == [["n1", "250m", "15s"]]


async def test_a_second_start_answers_without_a_write(tmp_path: Path) -> None:
    """What is registered is asked once the metrics-server of the new process is there, not 30 seconds later."""
    api = ApiServerOptions(data=DataDir.at(tmp_path), port=0, kubeconfig=tmp_path / "kubeconfig")
    for _ in range(2):
        cluster = await Composed.start(UpOptions(api=api, node=NodeKind.NONE), announce=lambda _: None)
        try:
            answer = await cluster.admin_local().request("GET", f"{ROOT}/nodes")
        finally:
            await cluster.stop(pods=False)
        assert json.loads(answer)["items"] == []


def test_many_nodes_are_asked_less_often() -> None:
    assert [interval(nodes) for nodes in (1, MANY_NODES, MANY_NODES + 1)] == [15, 15, 60]
