"""What monitoring sees of resizes on a node's /metrics."""

from typing import Any

import pytest

from kubelet.harness import Node, container
from kubelet.node_api import Document

STEPS = (10, 50, 100, 500, 1000, 2000, 5000, 10000, 20000, 30000, 60000, 120000, 300000, 600000)


def sized(cpu: str, memory: str = "100Mi", name: str = "c1", **limit: str) -> Document:
    """Requests by place, limits as `cpu_limit` and `memory_limit`."""
    limits = {key.removesuffix("_limit"): value for key, value in limit.items()}
    return container(name, resources={"requests": {"cpu": cpu, "memory": memory}, "limits": limits})


async def shown(node: Node, name: str, **labels: str) -> dict[str, float]:
    """The lines of one metric: labels as written, without those that were asked for, to value."""
    _, text = await node.ask("/metrics")
    found = {}
    for line in text.splitlines():
        series, _, value = line.rpartition(" ")
        if series.partition("{")[0] != name:
            continue
        pairs = set(filter(None, series.partition("{")[2].rstrip("}").split(",")))
        wanted = {f'{key}="{label}"' for key, label in labels.items()}
        if wanted <= pairs:
            found[",".join(sorted(pairs - wanted))] = float(value)
    return found


@pytest.mark.row("R-186")
async def test_each_change_of_a_request_or_limit_is_counted_by_what_it_does(node: Node) -> None:
    name = "kubelet_container_requested_resizes_total"
    node.add(containers=[sized("100m"), sized("100m", name="c2", cpu_limit="1", memory_limit="200Mi")])
    await node.runs()
    second = sized("100m", "50Mi", "c2", cpu_limit="2", memory_limit="200Mi")
    node.api.change("web", containers=[sized("200m", cpu_limit="1"), second])
    await node.rest()
    assert await shown(node, name) == {
        'operation="increase",requirement="requests",resource="cpu"': 1,
        'operation="add",requirement="limits",resource="cpu"': 1,
        'operation="increase",requirement="limits",resource="cpu"': 1,
        'operation="decrease",requirement="requests",resource="memory"': 1,
    }
    node.api.change("web", containers=[sized("300m", cpu_limit="1"), second])
    await node.rest()
    assert (await shown(node, name, operation="increase", requirement="requests"))['resource="cpu"'] == 2


@pytest.mark.row("R-186")
async def test_a_change_of_the_pod_as_a_whole_is_not_counted_nor_is_anything_else(node: Node) -> None:
    level: dict[str, Any] = {"resources": {"requests": {"cpu": "500m"}}}
    pod = node.add(containers=[sized("100m")], **level)
    await node.runs()
    node.api.change("web", resources={"requests": {"cpu": "700m"}})
    await node.rest()
    metadata = {**pod["metadata"], "generation": 3, "labels": {"a": "b"}}
    node.api.put("pods", {**(node.api.get("pods", "web") or {}), "metadata": metadata})
    await node.rest()
    assert await shown(node, "kubelet_container_requested_resizes_total") == {}


@pytest.mark.row("R-187")
async def test_the_gauges_come_back_to_nothing(node: Node) -> None:
    pending, ongoing = "kubelet_pod_pending_resizes", "kubelet_pod_in_progress_resizes"
    node.add("web", containers=[sized("1")])
    node.add("big", restartPolicy="Never", containers=[sized("2", name="b1")])
    await node.runs("web")
    await node.runs("big")
    assert await shown(node, pending) == {'reason="deferred"': 0, 'reason="infeasible"': 0}
    node.api.change("web", containers=[sized("3")])
    await node.rest()
    assert await shown(node, pending) == {'reason="deferred"': 1, 'reason="infeasible"': 0}
    assert await shown(node, ongoing) == {"": 0}
    node.api.remove("pods", "big")
    await node.until(lambda: node.state()["resources"]["requests"]["cpu"] == "3")
    assert await shown(node, pending) == {'reason="deferred"': 0, 'reason="infeasible"': 0}
    assert await shown(node, ongoing) == {"": 0}


@pytest.mark.row("R-188")
async def test_a_resize_that_fails_is_timed_as_such_and_its_repetition_as_done(node: Node) -> None:
    count, bucket = "kubelet_pod_resize_duration_milliseconds_count", "kubelet_pod_resize_duration_milliseconds_bucket"
    node.add(containers=[sized("100m", cpu_limit="200m")])
    await node.runs()
    node.runtime.fail["update"] = "no"
    node.api.change("web", containers=[sized("100m", cpu_limit="400m")])
    await node.rest()
    assert await shown(node, count) == {'success="false"': 1}
    assert await shown(node, "kubelet_pod_in_progress_resizes") == {"": 1}
    del node.runtime.fail["update"]
    await node.advance(60)
    assert (await shown(node, count))['success="true"'] == 1
    assert await shown(node, "kubelet_pod_in_progress_resizes") == {"": 0}
    assert set(await shown(node, bucket, success="true")) == {*(f'le="{step}.0"' for step in STEPS), 'le="+Inf"'}


async def test_desired_allocated_and_actual_lie_side_by_side(node: Node) -> None:
    async def states(**labels: str) -> dict[str, float]:
        return await shown(
            node, "podfit_container_resource", namespace="default", pod="web", container="c1", resource="cpu", **labels
        )

    node.add("web", containers=[sized("1", cpu_limit="2")])
    node.add("big", containers=[sized("2", name="b1")])
    await node.runs("web")
    await node.runs("big")
    same = {'state="actual"': 1.0, 'state="allocated"': 1.0, 'state="desired"': 1.0}
    assert await states(requirement="requests") == same
    node.api.change("web", containers=[sized("3", cpu_limit="4")])
    await node.rest()
    assert await states(requirement="requests") == {**same, 'state="desired"': 3.0}
    assert await states(requirement="limits") == {
        'state="actual"': 2.0,
        'state="allocated"': 2.0,
        'state="desired"': 4.0,
    }
    node.api.remove("pods", "big")
    await node.until(lambda: node.state()["resources"]["requests"]["cpu"] == "3")
    assert await states(requirement="requests") == dict.fromkeys(same, 3.0)
    node.api.remove("pods", "web")
    await node.until(lambda: not node.runtime.boxes)
    assert await states() == {}


async def test_what_a_pod_names_as_a_whole_is_shown_too(node: Node) -> None:
    node.add(containers=[sized("100m")], resources={"requests": {"cpu": "500m", "memory": "1Gi"}})
    await node.runs()
    seen = await shown(node, "podfit_pod_resource", pod="web", resource="memory", requirement="requests")
    assert seen == {
        'namespace="default",state="actual"': 2.0**30,
        'namespace="default",state="allocated"': 2.0**30,
        'namespace="default",state="desired"': 2.0**30,
    }


async def test_nothing_but_the_metrics_themselves_is_exposed(node: Node) -> None:
    """Upstream has no series of creation times."""
    node.add()
    await node.runs()
    _, text = await node.ask("/metrics")
    assert "_created" not in text
