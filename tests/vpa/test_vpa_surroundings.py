"""Horizontal autoscalers of the same workload, and nodes that are too small."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.core.v1.nodes.types import Node
from podfit.api.meta.codec import convert
from podfit.decide.autoscaling.conditions import CAPPED
from podfit.decide.autoscaling.nodes_and_autoscalers import HELD
from support.vpa_world import NAMESPACE, World, recommending


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with recommending(tmp_path) as made:
        yield made


async def web(world: World, cpu: str = "500m") -> None:
    await world.deployment("web")
    await world.pod("web-1", "web")
    await world.vpa("web")
    world.usage.used = {"web-1": {"app": (cpu, "400Mi")}}


async def autoscaler(world: World, kind: str, **target: object) -> None:
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": kind, **target}}}
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    document = {
        "metadata": {"name": "hpa", "namespace": NAMESPACE},
        "spec": {"scaleTargetRef": ref, "maxReplicas": 5, "metrics": [metric]},
    }
    await world.client.create(convert(document, HorizontalPodAutoscaler))


async def test_vpa_does_not_recommend_what_an_hpa_scales_on(world: World) -> None:
    await web(world)
    await autoscaler(world, "Utilization", averageUtilization=80)
    await world.start()
    await world.minutes(2)
    assert set((await world.sizes("web"))["app"].target) == {"memory"}
    said = "HorizontalPodAutoscaler hpa scales on cpu, which is therefore not recommended"
    assert (await world.conditions("web"))[HELD] == ("True", said)
    await world.client.delete(HorizontalPodAutoscaler, "hpa", NAMESPACE)
    await world.minutes(2)
    assert set((await world.sizes("web"))["app"].target) == {"cpu", "memory"}
    assert HELD not in await world.conditions("web")


async def test_vpa_recommends_beside_an_hpa_that_counts_amounts(world: World) -> None:
    await web(world)
    await autoscaler(world, "AverageValue", averageValue="400m")
    await world.start()
    await world.minutes(2)
    assert set((await world.sizes("web"))["app"].target) == {"cpu", "memory"}


@pytest.mark.parametrize(("compatible", "expected"), [(False, True), (True, False)])
async def test_vpa_recommends_no_more_than_the_largest_node_has(world: World, compatible: bool, expected: bool) -> None:
    await web(world, "100")
    await world.start(upstream_compatible=compatible)
    await world.minutes(2)
    target = (await world.sizes("web"))["app"].target["cpu"]
    assert (target.milli() == 64_000) is expected


@pytest.mark.parametrize(("compatible", "expected"), [(False, {"app", "proxy"}), (True, {"app"})])
async def test_vpa_sizes_sidecars_unless_as_upstream(world: World, compatible: bool, expected: set[str]) -> None:
    await world.deployment("web")
    await world.pod("web-1", "web", sidecar="proxy")
    await world.vpa("web")
    world.usage.used = {"web-1": dict.fromkeys(("app", "proxy", "setup"), ("500m", "400Mi"))}
    await world.start(upstream_compatible=compatible)
    await world.minutes(2)
    assert set(await world.sizes("web")) == expected


async def test_vpa_says_that_no_node_is_large_enough(world: World) -> None:
    await web(world, "100")
    await world.start()
    await world.minutes(2)
    (status, message) = (await world.conditions("web"))[CAPPED]
    assert (status, message.partition(":")[0]) == ("True", "cpu of app")
    assert message.endswith("would be recommended, the largest node has 64")
    node = await world.client.get(Node, "n", "")
    cordoned = replace(node, spec=replace(node.spec, unschedulable=True))
    await world.client.update(cordoned)
    await world.minutes(1)
    assert (await world.sizes("web"))["app"].target["cpu"].milli() == 64_000
    larger = {"status": {"allocatable": {"cpu": "640"}}}
    await world.client.patch(Node, "n", "", larger, subresource="status")
    await world.minutes(1)
    assert CAPPED not in await world.conditions("web")
