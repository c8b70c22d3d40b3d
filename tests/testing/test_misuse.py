"""What the pytest cluster says of calls that make no sense, before anything is sent or moved."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podfit.testing.cluster import Clock, Cluster
from podfit.testing.plugin import options_of

WEB = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "200m"}}}]},
}
Call = Callable[[Cluster, Clock], object]


def config_map(**metadata: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def test_calls_that_make_no_sense(cluster: Cluster, clock: Clock) -> None:
    cluster.apply(WEB)
    calls: list[tuple[Call, type[Exception], str]] = [
        (lambda cluster, _: cluster.apply(""), ValueError, "a YAML text or a file, and not empty"),
        (lambda cluster, _: cluster.apply("- a\n- b"), ValueError, 'a manifest is a mapping, not ["a", "b"]'),
        (lambda cluster, _: cluster.apply({"kind": "Pod"}), ValueError, "has apiVersion, kind and metadata.name"),
        (lambda cluster, _: cluster.apply(config_map(generateName="c-")), ValueError, "has apiVersion, kind and"),
        (lambda cluster, _: cluster.get("v1", "Deployment", "d"), LookupError, "it serves Deployment in apps/v1"),
        (lambda cluster, _: cluster.resize("web"), ValueError, "a resize names containers and their sizes"),
        (lambda cluster, _: cluster.resize("web", app={"cpu": "1"}), ValueError, "a resize names containers"),
        (lambda cluster, _: cluster.end("web", code=256), ValueError, "a number from 0 to 255, not 256"),
        (lambda _, clock: clock.advance(-1), ValueError, "clock.jump sets the time of day"),
        (lambda _, clock: clock.advance(hours=math.nan), ValueError, "time cannot move by nan s"),
        (lambda _, clock: clock.advance(math.inf), ValueError, "time cannot move by inf s"),
        (lambda _, clock: clock.jump(1e15), ValueError, "leaves the years 1 to 9999"),
    ]
    for call, kind, told in calls:
        with pytest.raises(kind) as caught:
            call(cluster, clock)
        assert told in str(caught.value)
    assert (clock.elapsed, cluster.pod("web").desired.cpu) == (0, 0.2)


def test_a_list_is_its_items_and_json_is_no_path(cluster: Cluster) -> None:
    cluster.apply({"apiVersion": "v1", "kind": "List", "items": [config_map(name="a"), config_map(name="b")]})
    cluster.apply('{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}')
    assert [cluster.get("v1", "ConfigMap", name)["metadata"]["name"] for name in "abc"] == ["a", "b", "c"]


def test_a_failed_assertion_shows_a_pod_and_an_event_in_a_line(cluster: Cluster) -> None:
    cluster.apply(WEB)
    assert repr(cluster.pod("web")) == "<pod default/web: Running on simulated-1, ready, 0 restarts>"
    event = next(event for event in cluster.events("web") if event.reason == "Scheduled")
    told = "Successfully assigned default/web to simulated-1"
    assert repr(event) == f"<event Normal Scheduled of Pod/web: {told}>"


@pytest.mark.podfit(nodes=0)
def test_a_cluster_may_have_no_node(cluster: Cluster) -> None:
    cluster.apply(WEB)
    assert (cluster.nodes(), cluster.pod("web").phase) == ([], "Pending")
    assert "no nodes available to schedule pods" in cluster.events("web")[-1].message


@pytest.mark.parametrize(
    ("nodes", "told"),
    [
        (-1, "nodes is a number, or the size of each"),
        ("3", "nodes is a number, or the size of each"),
        ([{"cpus": "4"}], 'a node has no "cpus": it has cpu, memory'),
    ],
)
def test_nodes_that_make_no_sense(nodes: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=told):
        Cluster(tmp_path, nodes=nodes)


def test_feature_gates_that_there_are_not(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unrecognized feature gate: HpaScaleToZero"):
        Cluster(tmp_path, feature_gates={"HpaScaleToZero": True})


@pytest.mark.parametrize("marked", [pytest.mark.podfit(node=3), pytest.mark.podfit(3)])
def test_options_that_no_cluster_has(marked: pytest.MarkDecorator) -> None:
    names = "takes feature_gates, lend_spare, node_groups, nodes, play_kwok_nodes, seed, store, vpa, each by name"
    with pytest.raises(pytest.UsageError, match=names):
        options_of(marked.mark)
