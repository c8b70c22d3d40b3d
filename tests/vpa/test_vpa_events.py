"""Updater and recommender between two passes: what happens is looked at in seconds, and storms cost few looks."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import to_dict
from podfit.client.rest import MERGE_PATCH
from podfit.core.quantity import Quantity
from podfit.core.times import format_time
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.update_settings import UpdateSettings
from podfit.vpa.updater.settings import UpdaterSettings
from podfit.vpa.updater.updater import Updater
from podfit.vpa.wakes import GATHER, MOST, RATE, Concerned, Wakes
from support.clock import FakeClock
from support.vpa_world import NAMESPACE, World, recommending

SECOND = 1.0
BOOST = {"cpu": {"type": "Factor", "factor": 4}}
GATES = Gates(cpu_startup_boost=True, in_place=True, per_vpa_config=True)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with recommending(tmp_path) as made:
        yield made


async def web(world: World, replicas: int, **spec: Any) -> None:
    """A Deployment of pods that have what is recommended."""
    await world.deployment("web")
    await world.replicaset("web-rs", "web", replicas)
    for number in range(replicas):
        await world.pod(f"web-{number}", "web", owner="web-rs")
    await world.vpa("web", **spec)
    await world.recommend("web", "100m", "300Mi")


async def updating(world: World, **rules: Any) -> Updater:
    settings = UpdaterSettings(admission=None, rules=UpdateSettings(gates=GATES, **rules))
    updater = Updater(world.client, clock=world.clock, settings=settings)
    await world.run(updater.run())
    await world.clock.advance(20)
    return updater


async def tell(
    world: World, name: str, *, is_ready: bool, restarts: int = 0, running: bool = True, **more: Any
) -> None:
    """As a kubelet that has carried out what is desired, at this moment; `more` is of the container's status."""
    pod, now = await world.client.get(Pod, name, NAMESPACE), format_time(world.clock.now())
    condition = {"type": "Ready", "status": "True" if is_ready else "False", "lastTransitionTime": now}
    state = {"running": {"startedAt": now}} if running else {"waiting": {"reason": "CrashLoopBackOff"}}
    told = {"name": "app", "image": "i", "imageID": "", "ready": is_ready, "restartCount": restarts, "state": state}
    told |= {"resources": to_dict(pod.spec.containers[0].resources), **more}
    await world.report(name, conditions=[condition], containerStatuses=[told])


async def boosted(world: World, name: str) -> None:
    """As admission leaves a pod that starts."""
    note = {"vpaCpuStartupBoost/app": '{"requests":{"cpu":"100m","memory":"300Mi"},"limits":{}}'}
    await world.client.patch(Pod, name, NAMESPACE, {"metadata": {"annotations": note}}, content_type=MERGE_PATCH)
    sized = {"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "400m"}}}]}}
    await world.client.patch(Pod, name, NAMESPACE, sized, subresource="resize")
    await tell(world, name, is_ready=False)


async def test_vpa_updater_acts_on_a_recommendation_within_a_second(world: World) -> None:
    await web(world, 2)
    await updating(world)
    await world.recommend("web", "500m", "600Mi")
    assert set((await world.requests()).values()) == {("100m", "300Mi")}
    await world.clock.advance(SECOND)
    assert sorted((await world.requests()).values()) == [("100m", "300Mi"), ("500m", "600Mi")], "one of two at a time"


async def test_vpa_updater_leaves_recommendations_that_hardly_move_to_its_passes(world: World) -> None:
    await web(world, 2)
    await updating(world)
    await world.recommend("web", "109m", "300Mi")
    await world.clock.advance(30)
    assert set((await world.requests()).values()) == {("100m", "300Mi")}
    await world.clock.advance(30)
    assert ("109m", "300Mi") in (await world.requests()).values()


async def test_vpa_updater_evicts_and_restarts_in_its_passes_alone(world: World) -> None:
    await world.deployment("web")
    await world.replicaset("web-rs", "web", 4)
    for number in range(4):
        await world.pod(f"web-{number}", "web", owner="web-rs", restart=True)
    await world.vpa("web", updatePolicy={"updateMode": "InPlaceOrRecreate"})
    await world.deployment("old")
    await world.replicaset("old-rs", "old", 4)
    for number in range(4):
        await world.pod(f"old-{number}", "old", owner="old-rs")
    await world.annotate_vpa("web", {})
    await world.vpa("old", updatePolicy={"updateMode": "Recreate"})
    await world.annotate_vpa("old", {"podfit.dev/update-mode": "upstream"})
    await updating(world)
    for name in ("web", "old"):
        await world.recommend(name, "500m", "600Mi")
    await world.clock.advance(30)

    async def changed() -> tuple[int, int]:
        pods = (await world.client.list(Pod, NAMESPACE)).items
        resized = sum(str(pod.spec.containers[0].resources.requests["cpu"]) == "500m" for pod in pods)
        return resized, sum(bool(pod.metadata.deletion_timestamp) for pod in pods)

    assert await changed() == (0, 0)
    await world.clock.advance(30)
    assert await changed() == (2, 2)


async def test_vpa_updater_as_upstream_hears_of_nothing(world: World) -> None:
    await web(world, 2)
    await updating(world, upstream_compatible=True)
    await world.recommend("web", "500m", "600Mi")
    await world.clock.advance(30)
    assert set((await world.requests()).values()) == {("100m", "300Mi")}


@pytest.mark.parametrize("seconds", [None, 12])
async def test_vpa_boosts_of_all_pods_end_within_a_second(world: World, seconds: int | None) -> None:
    lasts = {"durationSeconds": seconds} if seconds else {}
    await web(world, 6, startupBoost={"cpu": {**BOOST["cpu"], **lasts}})
    await updating(world)
    for number in range(6):
        await boosted(world, f"web-{number}")
    await world.clock.advance(5)
    assert {cpu for cpu, _ in (await world.requests()).values()} == {"400m"}
    for number in range(6):
        await tell(world, f"web-{number}", is_ready=True)
    if seconds:
        await world.clock.advance(seconds - SECOND)
        assert {cpu for cpu, _ in (await world.requests()).values()} == {"400m"}
        await world.clock.advance(SECOND)
    await world.clock.advance(SECOND)
    assert {cpu for cpu, _ in (await world.requests()).values()} == {"100m"}


@pytest.mark.parametrize("running", [True, False], ids=["runs", "waits"])
async def test_vpa_boost_comes_back_with_a_restart_and_ends_again(world: World, running: bool) -> None:
    await web(world, 1, startupBoost=BOOST)
    await updating(world)
    await tell(world, "web-0", is_ready=True)
    await world.clock.advance(5)
    assert await world.requests() == {"web-0": ("100m", "300Mi")}
    await tell(world, "web-0", is_ready=False, restarts=1, running=running)
    await world.clock.advance(SECOND)
    assert await world.requests() == {"web-0": ("400m", "300Mi")}
    (pod,) = (await world.client.list(Pod, NAMESPACE)).items
    assert "vpaCpuStartupBoost/app" in pod.metadata.annotations
    await tell(world, "web-0", is_ready=True, restarts=1)
    await world.clock.advance(SECOND)
    assert await world.requests() == {"web-0": ("100m", "300Mi")}
    (pod,) = (await world.client.list(Pod, NAMESPACE)).items
    assert "vpaCpuStartupBoost/app" not in pod.metadata.annotations


async def test_vpa_boost_that_comes_back_is_bounded(world: World) -> None:
    await web(world, 1, startupBoost=BOOST)
    await updating(world, max_boost=Quantity.of_milli(250))
    await tell(world, "web-0", is_ready=False, restarts=1)
    await tell(world, "web-0", is_ready=False, restarts=2)
    await world.clock.advance(SECOND)
    assert await world.requests() == {"web-0": ("250m", "300Mi")}


async def test_vpa_boost_does_not_come_back_for_a_failed_probe(world: World) -> None:
    await web(world, 1, startupBoost=BOOST)
    await updating(world)
    await tell(world, "web-0", is_ready=True, restarts=1)
    await world.clock.advance(60)
    started = (await world.client.get(Pod, "web-0", NAMESPACE)).status.container_statuses[0].state.running
    assert started is not None
    await tell(world, "web-0", is_ready=False, restarts=1, state={"running": {"startedAt": started.started_at}})
    await world.clock.advance(120)
    assert await world.requests() == {"web-0": ("100m", "300Mi")}


async def test_vpa_recommender_counts_an_oom_within_a_second_and_the_updater_follows(world: World) -> None:
    """From the kill to the resized spec."""
    await web(world, 2)
    world.usage.used = {f"web-{number}": {"app": ("50m", "200Mi")} for number in range(2)}
    await world.start()
    await world.minutes(3)
    await updating(world)
    before = int((await world.sizes("web"))["app"].target["memory"].value())
    now = format_time(world.clock.now())
    end = {"reason": "OOMKilled", "exitCode": 137, "startedAt": now, "finishedAt": now}
    await tell(world, "web-1", is_ready=False)
    await tell(world, "web-1", is_ready=False, restarts=1, lastState={"terminated": end})
    await world.clock.advance(SECOND)
    target = (await world.sizes("web"))["app"].target["memory"]
    assert target.value() > before
    await world.clock.advance(SECOND)
    assert (await world.requests())["web-1"][1] == str(target)


async def test_vpa_recommender_follows_a_policy_within_a_second(world: World) -> None:
    await web(world, 1)
    world.usage.used = {"web-0": {"app": ("50m", "200Mi")}}
    await world.start()
    await world.minutes(2)
    policy = {"resourcePolicy": {"containerPolicies": [{"containerName": "*", "minAllowed": {"cpu": "777m"}}]}}
    patch = {"spec": policy}
    await world.client.request(
        "PATCH",
        f"/apis/autoscaling.k8s.io/v1/namespaces/{NAMESPACE}/verticalpodautoscalers/web",
        json.dumps(patch).encode(),
        content_type=MERGE_PATCH,
    )
    await world.clock.advance(SECOND)
    assert str((await world.sizes("web"))["app"].target["cpu"]) == "777m"


async def test_vpa_storms_are_gathered_and_bounded() -> None:
    """Five minutes in which a pod is restarted every tenth of a second cost ten looks, and one every five seconds."""
    clock = FakeClock()
    wakes, looks = Wakes(clock), 0
    due = clock.monotonic() + 3600
    until = clock.monotonic() + 300
    while clock.monotonic() < until:
        wakes.add(Concerned("Pod", "default", f"p-{looks % 7}"))
        turn = asyncio.ensure_future(wakes.next(due))
        while not turn.done():
            await clock.advance(0.1)
            wakes.add(Concerned("Pod", "default", "crashing"))
        assert len(set(turn.result())) == len(turn.result())
        looks += 1
    assert RATE.burst <= looks <= RATE.burst + 300 * RATE.qps + 1
    for number in range(2 * MOST):
        wakes.add(Concerned("Pod", "default", f"many-{number}"))
    turn = asyncio.ensure_future(wakes.next(due))
    while not turn.done():
        await clock.advance(GATHER)
    assert len(turn.result()) == MOST
