"""What `why vpa/NAME` tells of a VPA on a real API server, beside a real recommender."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podfit.answers.autoscaling.estimate_steps import estimate_steps
from podfit.answers.autoscaling.recommend import Size, recommend
from podfit.answers.autoscaling.recommended_facts import FactsReader, UsageWindow
from podfit.answers.facts.readable import readable_amount
from podfit.answers.why.vpa import read_facts, why_vpa
from podfit.core.times import format_time
from podfit.decide.autoscaling.estimate import LATER
from podfit.decide.autoscaling.flags import EstimatorFlags
from support.vpa_world import NAMESPACE, World, recommending


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with recommending(tmp_path) as made:
        yield made


async def test_updated_is_when_the_recommender_last_wrote_another_target(world: World) -> None:
    await world.deployment("web")
    await world.pod("web-0", "web")
    await world.vpa("web")
    world.usage.used = {"web-0": {"app": ("100m", "300Mi")}}
    await world.start()
    await world.minutes(1)
    first = (await world.sizes("web"))["app"].target["memory"]
    world.usage.used = {"web-0": {"app": ("100m", "900Mi")}}
    await world.minutes(1)
    assert (await world.sizes("web"))["app"].target["memory"] > first
    written = format_time(world.clock.now())
    await world.clock.advance(30)
    facts = await read_facts(world.client, "web", NAMESPACE)
    found = why_vpa(facts, world.clock.now())
    assert (found.updated, found.age) == (written, 30)


async def young(world: World, cpu: str, memory: str, **policy: object) -> None:
    """A VPA whose peak of memory is in no checkpoint, since its interval of a day is under way."""
    await world.deployment("web")
    await world.replicaset("web-rs", "web", 1)
    await world.pod("web-0", "web", owner="web-rs")
    await world.vpa("web", resourcePolicy={"containerPolicies": [{"containerName": "app", **policy}]})
    world.usage.used = {"web-0": {"app": (cpu, memory)}}
    await world.start()
    await world.minutes(3)


async def test_the_steps_of_a_young_vpa_end_at_the_numbers_that_are_shown(world: World) -> None:
    await young(world, "100m", "760Mi", maxAllowed={"memory": "512Mi"})
    facts, now = await read_facts(world.client, "web", NAMESPACE), world.clock.now()
    assert facts.checkpoints
    told = estimate_steps(facts.checkpoints, facts.vpa, now.timestamp())
    own = (await world.sizes("web"))["app"]
    for resource in ("cpu", "memory"):
        *estimated, last = told["app", resource]
        assert last.value == str(own.target[resource])
        if last.step == "cap":
            assert estimated[-1].value == str(own.uncapped_target[resource])
    percentile, margin, minimum, cap = told["app", "memory"]
    assert percentile.because == LATER
    assert readable_amount("memory", percentile.value).startswith("7")
    assert (margin.value, margin.value) == (minimum.value, str(own.uncapped_target["memory"]))
    assert (cap.step, cap.because) == ("cap", "maxAllowed 512Mi of containerPolicies")


async def sizes(world: World) -> dict[str, Size]:
    reader = FactsReader(world.client, world.clock, NAMESPACE)
    found = recommend(await reader.read(UsageWindow(0)), EstimatorFlags(min_cpu_millicores=10, min_memory_mb=16))
    return {size.resource: size for size in found.workloads[0].sizes}


async def test_recommend_names_the_bound_that_decided_and_what_it_would_be_without(world: World) -> None:
    await young(world, "10m", "760Mi", maxAllowed={"memory": "512Mi"})
    found = await sizes(world)
    assert (found["cpu"].recommended, found["memory"].recommended) == ("25m", "512Mi")
    assert found["cpu"].reason.endswith("15 % on top; raised to its share of the pod's minimum (23m without it)")
    uncapped = readable_amount("memory", str((await world.sizes("web"))["app"].uncapped_target["memory"]))
    assert found["memory"].reason.endswith(f"; maxAllowed 512Mi of containerPolicies ({uncapped} without it)")


async def test_a_number_of_a_recommender_with_other_flags_is_not_explained_by_ours(world: World) -> None:
    await young(world, "10m", "760Mi")
    await world.stop()
    amounts = {"cpu": "7m", "memory": "1Mi"}
    own = {"containerName": "app", "target": amounts, "uncappedTarget": amounts}
    await world.say_status("web", {"recommendation": {"containerRecommendations": [own]}})
    facts = await read_facts(world.client, "web", NAMESPACE)
    told = estimate_steps(facts.checkpoints, facts.vpa, world.clock.now().timestamp())
    assert [[step.step for step in told["app", resource]] for resource in ("cpu", "memory")] == [["estimate"]] * 2
