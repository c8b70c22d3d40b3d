"""Pods of a workload go apart without saying so: its Services and its owner say which they are."""

from pathlib import Path
from typing import Any

import pytest

from podfit.api.apps.v1.deployments import ReplicaSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.replication.types import ReplicationController
from podfit.api.core.v1.services.types import Service
from podfit.api.meta.base import Object
from podfit.api.meta.codec import convert
from podfit.decide.placement.default_spread import SpreadDefaulting
from podfit.scheduler.scheduler import NAME
from support.placing import HOSTNAME, ZONE
from support.scheduling import World, running_scheduler

WEB = {"app": "web"}
TEMPLATE = {"metadata": {"labels": WEB}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
META = {"name": "web", "namespace": "default"}
SERVICE = convert({"metadata": META, "spec": {"selector": WEB, "ports": [{"port": 80}]}}, Service)
SELECTOR = {"matchLabels": WEB}
SETS: list[Object] = [
    convert({"metadata": META, "spec": {"replicas": 0, "selector": SELECTOR, "template": TEMPLATE}}, ReplicaSet),
    convert({"metadata": META, "spec": {"replicas": 0, "selector": SELECTOR, "template": TEMPLATE}}, StatefulSet),
    convert({"metadata": META, "spec": {"replicas": 0, "selector": WEB, "template": TEMPLATE}}, ReplicationController),
]


async def large_and_small(world: World) -> None:
    """Emptiness alone prefers the large one, by so much that three small pods go there."""
    await world.node("large", cpu="64", memory="64Gi", labels={HOSTNAME: "large", ZONE: "x"})
    await world.node("small", cpu="4", memory="4Gi", labels={HOSTNAME: "small", ZONE: "y"})


async def three_pods(world: World, **more: Any) -> str:
    """The large nodes' share of three pods, in their order."""
    for name in ("p0", "p1", "p2"):
        await world.pod(name, cpu="100m", memory="100Mi", labels=WEB, **more)
        await world.until(name, lambda pod: bool(pod.spec.node_name))
    return " ".join([await world.placed(name) for name in ("p0", "p1", "p2")])


async def test_pods_that_nothing_selects_are_not_spread(world: World) -> None:
    await large_and_small(world)
    assert await three_pods(world) == "large large large"


async def test_pods_of_a_service_are_spread(world: World) -> None:
    await large_and_small(world)
    await world.client.create(SERVICE)
    await world.rest()
    assert await three_pods(world) == "large small large"


async def test_a_service_counts_as_it_is(world: World) -> None:
    """It may select by something else later, or go."""
    await large_and_small(world)
    await world.client.create(SERVICE)
    await world.client.patch(Service, "web", "default", {"spec": {"selector": {"app": "db"}}})
    await world.rest()
    assert await three_pods(world) == "large large large"
    await world.client.patch(Service, "web", "default", {"spec": {"selector": WEB}})
    await world.client.delete(Service, "web", "default")
    await world.pod("p3", cpu="100m", memory="100Mi", labels=WEB)
    await world.rest()
    assert await world.placed("p3") == "large"


@pytest.mark.parametrize("owner", SETS, ids=lambda owner: type(owner).__name__)
async def test_pods_of_a_controller_are_spread(world: World, owner: Object) -> None:
    await large_and_small(world)
    made = await world.client.create(owner)
    group = "v1" if isinstance(owner, ReplicationController) else "apps/v1"
    reference = {
        "apiVersion": group,
        "kind": type(owner).__name__,
        "name": "web",
        "uid": made.metadata.uid,
        "controller": True,
    }
    await world.rest()
    assert await three_pods(world, owners=[reference]) == "large small large"


async def test_a_profile_without_defaults_spreads_nothing(tmp_path: Path) -> None:
    nothing = SpreadDefaulting((), of_system=False)
    async with running_scheduler(tmp_path, spread={NAME: nothing}) as world:
        await large_and_small(world)
        await world.client.create(SERVICE)
        await world.rest()
        assert await three_pods(world) == "large large large"
