"""What `podfit recommend` says of a workload without a VPA is what a recommender says of its twin that has one, from
the same usage, minute by minute.
"""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from podfit.answers.autoscaling.recommend import MEBI, recommend
from podfit.answers.autoscaling.recommended_facts import FactsReader, UsageWindow
from podfit.core.quantity import Quantity
from podfit.decide.autoscaling.flags import EstimatorFlags
from support.vpa_world import NAMESPACE, World, recommending

MINUTES = 10


async def twins(world: World, name: str, pods: int) -> None:
    """`name` has a VPA, `name-free` has none."""
    for twin in (name, f"{name}-free"):
        await world.deployment(twin)
        await world.replicaset(f"{twin}-rs", twin, pods)
        for number in range(pods):
            await world.pod(f"{twin}-{number}", twin, "app", owner=f"{twin}-rs")
    await world.vpa(name, updatePolicy={"updateMode": "Off"})


def use(world: World, workloads: dict[str, int], pick: random.Random) -> None:
    """What each pod and its twin use from now on."""
    for name, pods in workloads.items():
        most, memory = pick.choice((5, 300, 4000)), pick.choice((20, 900, 6000))
        for number in range(pods):
            used = {"app": (f"{pick.randint(1, most)}m", f"{pick.randint(10, memory)}Mi")}
            world.usage.used |= {f"{name}-{number}": used, f"{name}-free-{number}": used}


async def compared(directory: Path, seed: int, number: int) -> int:
    """How many sizes were the same; AssertionError for one that was not."""
    pick, same = random.Random(seed), 0
    async with recommending(directory) as world:
        workloads = {f"w{place}": pick.randint(1, 3) for place in range(number)}
        for name, pods in workloads.items():
            await twins(world, name, pods)
        use(world, workloads, pick)
        await world.start()
        await world.minutes(1)
        reader = FactsReader(world.client, world.clock, NAMESPACE)
        window = UsageWindow(seconds=60.0 * (MINUTES - 1), interval=60.0)
        reading = asyncio.create_task(reader.read(window))
        await world.clock.settle()
        for _ in range(MINUTES - 1):
            await world.clock.advance(30.0)
            use(world, workloads, pick)
            await world.clock.advance(30.0)
        told = recommend(await reading, EstimatorFlags())
        sizes = {(row.workload, size.resource): size for row in told.workloads for size in row.sizes}
        for name in workloads:
            target = (await world.sizes(name))["app"].target
            for resource, amount in target.items():
                size = sizes[f"deployment/{name}-free", resource]
                assert size.source == "usage"
                assert size.recommended == _shown(resource, amount), f"seed {seed}, {name} {resource}: {size}"
                same += 1
    return same


def _shown(resource: str, amount: Quantity) -> str:
    """Memory is told in whole mebibytes, rounded up."""
    return str(amount) if resource == "cpu" else str(Quantity.of_bytes(-(-amount.value() // MEBI) * MEBI))


async def test_a_workload_without_a_vpa_is_told_what_its_twin_gets(tmp_path: Path) -> None:
    assert await compared(tmp_path, 3, 3) == 6


@pytest.mark.campaign
@pytest.mark.timeout(1800)
async def test_two_hundred_workloads_are_told_what_their_twins_get(
    tmp_path: Path, figure: Callable[[str, object], None]
) -> None:
    """200 random workloads in 10 clusters, with usage that changes each minute: what `podfit recommend` says after ten
    minutes is what a recommender writes into the VPA of a twin that uses the same.
    """
    same = 0
    for seed in range(10):
        same += await compared(tmp_path / str(seed), 100 + seed, 20)
    figure("sizes that are the same", same)
    assert same == 400
