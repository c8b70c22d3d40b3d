"""The updater beside a real API server: whom it resizes and evicts, what it says, and when it does nothing."""

from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from podfit.api.coordination.v1.types import Lease
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.policy.v1.types import PodDisruptionBudget
from podfit.client.rate_limit import Rate
from podfit.core.times import format_micro
from podfit.decide.autoscaling.conditions import IN_PLACE_BY_DEFAULT, MEMORY_IN_USE, TOO_FEW_REPLICAS
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.published import AdmissionLease
from podfit.decide.autoscaling.update_settings import UpdateSettings
from podfit.vpa.updater.settings import UpdaterSettings
from podfit.vpa.updater.updater import Updater
from support.vpa_world import NAMESPACE, World, recommending

SMALL, LARGE = ("100m", "300Mi"), ("500m", "600Mi")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with recommending(tmp_path) as made:
        yield made


async def web(world: World, replicas: int, mode: str | None = None, *, restart: bool = False, **spec: Any) -> None:
    """A Deployment of so many small pods whose VPA recommends more."""
    await world.deployment("web")
    await world.replicaset("web-rs", "web", replicas)
    for number in range(replicas):
        await world.pod(f"web-{number}", "web", owner="web-rs", restart=restart)
    if mode is not None:
        spec["updatePolicy"] = {"updateMode": mode}
    await world.vpa("web", **spec)
    await world.recommend("web", *LARGE)


async def updating(world: World, **settings: Any) -> Updater:
    updater = Updater(world.client, clock=world.clock, settings=UpdaterSettings(**{"admission": None, **settings}))
    await world.run(updater.run())
    return updater


def series(updater: Updater, name: str) -> list[str]:
    lines = updater.metrics.exposition().decode().splitlines()
    return [line.removeprefix(f"vpa_updater_{name}") for line in lines if line.startswith(f"vpa_updater_{name}{{")]


@pytest.mark.row("V-090", "V-100", "V-121")
async def test_vpa_resizes_in_place_by_default_and_says_so(world: World) -> None:
    await web(world, 3)
    updater = await updating(world)
    assert sorted((await world.requests()).values()) == [SMALL, SMALL, SMALL]
    await world.minutes(1)
    assert sorted((await world.requests()).values()) == [SMALL, SMALL, LARGE]
    assert series(updater, "in_place_updated_pods_total") == [
        '{vpa_name="web",vpa_namespace="default",vpa_size_log2="1"} 1.0'
    ]
    await world.minutes(2)
    pods = (await world.client.list(Pod, NAMESPACE)).items
    assert [pod.metadata.annotations.get("vpaInPlaceUpdated") for pod in pods] == ["true"] * 3
    said = await world.events()
    resized = [(f"Pod/web-{number}", "InPlaceResizedByVPA") for number in range(3)]
    assert said == [*resized, ("VerticalPodAutoscaler/web", "InPlaceByDefault")]
    assert (await world.conditions("web"))[IN_PLACE_BY_DEFAULT][0] == "True"
    assert (await world.conditions("web"))["RecommendationProvided"] == ("True", "")


@pytest.mark.row("V-007", "V-087", "V-090")
@pytest.mark.parametrize("mode", ["Recreate", "Auto"])
@pytest.mark.parametrize("annotated", [True, False], ids=["annotation", "flag"])
async def test_vpa_evicts_as_upstream_where_it_is_asked_to(world: World, mode: str, annotated: bool) -> None:
    await web(world, 3, mode)
    if annotated:
        await world.annotate_vpa("web", {"podfit.dev/update-mode": "upstream"})
    await updating(world, rules=UpdateSettings(upstream_compatible=not annotated))
    await world.minutes(1)
    gone = [pod for pod in (await world.client.list(Pod, NAMESPACE)).items if pod.metadata.deletion_timestamp]
    assert len(gone) == 1
    name = gone[0].metadata.name
    assert await world.events() == [(f"Pod/{name}", "EvictedByVPA"), ("VerticalPodAutoscaler/web", "EvictedPod")]
    assert set((await world.requests()).values()) == {SMALL}
    assert IN_PLACE_BY_DEFAULT not in await world.conditions("web")


@pytest.mark.row("V-087")
async def test_vpa_does_not_evict_against_a_disruption_budget(world: World) -> None:
    await web(world, 3, "Recreate")
    budget = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 3}
    metadata = {"name": "web", "namespace": NAMESPACE}
    await world.client.create(convert({"metadata": metadata, "spec": budget}, PodDisruptionBudget))
    updater = await updating(world, rules=UpdateSettings(upstream_compatible=True))
    await world.minutes(3)
    assert not any(pod.metadata.deletion_timestamp for pod in (await world.client.list(Pod, NAMESPACE)).items)
    failed = [line for line in series(updater, "failed_eviction_attempts_total") if "EvictionError" in line]
    assert failed == [
        '{reason="EvictionError",update_mode="Recreate",vpa_name="web",vpa_namespace="default",vpa_size_log2="1"} 9.0'
    ]


@pytest.mark.row("V-085")
@pytest.mark.parametrize(("compatible", "expected"), [(False, LARGE), (True, SMALL)])
async def test_vpa_resizes_the_only_replica_unless_as_upstream(
    world: World, compatible: bool, expected: tuple[str, str]
) -> None:
    await web(world, 1, "InPlaceOrRecreate")
    await updating(world, rules=UpdateSettings(upstream_compatible=compatible))
    await world.minutes(2)
    assert await world.requests() == {"web-0": expected}


@pytest.mark.parametrize("mode", ["Off", "Initial"])
async def test_vpa_leaves_pods_alone_in_passive_modes(world: World, mode: str) -> None:
    await web(world, 3, mode)
    await updating(world)
    await world.minutes(3)
    assert set((await world.requests()).values()) == {SMALL}


@pytest.mark.row("V-080")
async def test_vpa_waits_for_the_lease_of_an_admission_controller(world: World) -> None:
    await web(world, 2)
    await updating(world, admission=AdmissionLease())
    await world.minutes(2)
    assert set((await world.requests()).values()) == {SMALL}
    document = {"metadata": {"name": "vpa-admission-controller", "namespace": "kube-system"}, "spec": {}}
    await world.client.create(convert(document, Lease))
    await world.minutes(1)
    assert sorted((await world.requests()).values()) == [SMALL, SMALL]  # made a minute ago: too old by then
    renewed = {"spec": {"renewTime": format_micro(world.clock.now()), "leaseDurationSeconds": 10}}
    await world.client.patch(Lease, "vpa-admission-controller", "kube-system", renewed)
    await world.clock.advance(59)
    assert set((await world.requests()).values()) == {SMALL}


@pytest.mark.row("V-089")
async def test_vpa_disturbs_pods_no_faster_than_the_rate_limit(world: World) -> None:
    await web(world, 12, "InPlaceOrRecreate")
    await updating(world, eviction_rate=Rate(qps=1 / 45, burst=1))
    changed = []
    for _ in range(6):
        await world.minutes(1)
        changed.append(sum(request == LARGE for request in (await world.requests()).values()))
    assert changed[-1] in (6, 7, 8)
    assert all(later - before <= 2 for before, later in pairwise(changed))


@pytest.mark.row("V-101", "V-106")
async def test_vpa_evicts_a_pod_whose_resize_is_deferred_for_long(world: World) -> None:
    await web(world, 3, "InPlaceOrRecreate")
    await world.report(
        "web-0", conditions=[{"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "full"}]
    )
    await updating(world)
    await world.minutes(5)
    assert not (await world.client.get(Pod, "web-0", NAMESPACE)).metadata.deletion_timestamp
    await world.minutes(3)
    assert (await world.client.get(Pod, "web-0", NAMESPACE)).metadata.deletion_timestamp


@pytest.mark.parametrize("compatible", [False, True])
async def test_vpa_restarts_no_container_against_a_disruption_budget(world: World, compatible: bool) -> None:
    await web(world, 3, "InPlaceOrRecreate", restart=True)
    budget = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 3}
    metadata = {"name": "web", "namespace": NAMESPACE}
    await world.client.create(convert({"metadata": metadata, "spec": budget}, PodDisruptionBudget))
    await updating(world, rules=UpdateSettings(upstream_compatible=compatible))
    await world.minutes(2)
    assert (set((await world.requests()).values()) == {SMALL}) is not compatible
    await world.client.delete(PodDisruptionBudget, "web", NAMESPACE)
    await world.minutes(1)
    assert LARGE in (await world.requests()).values()


async def test_vpa_says_in_the_object_that_the_only_replica_waits(world: World) -> None:
    await web(world, 1, "InPlaceOrRecreate", restart=True)
    await updating(world)
    await world.minutes(1)
    assert "ReplicaSet web-rs has 1" in (await world.conditions("web"))[TOO_FEW_REPLICAS][1]
    before = await world.seen("web")
    await world.minutes(3)
    assert (await world.seen("web")).metadata.resource_version == before.metadata.resource_version
    await world.pod("web-1", "web", owner="web-rs", restart=True)
    await world.minutes(1)
    assert TOO_FEW_REPLICAS not in await world.conditions("web")


async def test_vpa_waits_for_memory_that_is_in_use(world: World) -> None:
    await web(world, 2, "InPlaceOrRecreate")
    message = (
        'cannot decrease memory limits: attempting to set container "app" memory limit (1) below current usage (2)'
    )
    for number in range(2):
        said = {"type": "PodResizeInProgress", "status": "True", "reason": "Error", "message": message}
        await world.report(f"web-{number}", conditions=[said])
    await world.recommend("web", *SMALL)
    await updating(world)
    await world.minutes(90)
    pods = (await world.client.list(Pod, NAMESPACE)).items
    assert [pod.metadata.deletion_timestamp for pod in pods] == [None, None]
    assert (await world.conditions("web"))[MEMORY_IN_USE][1].startswith("Memory limits of web-0, web-1 stay")


async def test_vpa_marks_a_pod_before_its_memory_limit_comes_down(world: World) -> None:
    await web(world, 2, "InPlaceOrRecreate")
    limits = {"spec": {"containers": [{"name": "app", "resources": {"limits": {"memory": "900Mi"}}}]}}
    for number in range(2):
        await world.client.patch(Pod, f"web-{number}", NAMESPACE, limits, subresource="resize")
    await world.recommend("web", "100m", "200Mi")
    await updating(world)
    await world.minutes(2)
    pods = (await world.client.list(Pod, NAMESPACE)).items
    assert [str(pod.spec.containers[0].resources.limits["memory"]) for pod in pods] == ["600Mi", "600Mi"]
    assert [pod.metadata.annotations["podfit.dev/memory-shrink"] for pod in pods] == ["guarded", "guarded"]


@pytest.mark.row("V-090", "V-103")
async def test_vpa_says_that_a_node_can_never_give_as_much(world: World) -> None:
    await web(world, 2, "InPlace")
    for number in range(2):
        infeasible = {"type": "PodResizePending", "status": "True", "reason": "Infeasible", "message": "too large"}
        await world.report(f"web-{number}", conditions=[infeasible])
    updater = await updating(world, rules=UpdateSettings(gates=Gates(in_place=True)))
    await world.minutes(2)
    skipped = [("Pod/web-0", "InPlaceResizeSkipped"), ("Pod/web-1", "InPlaceResizeSkipped")]
    assert [said for said in await world.events() if said[1] == "InPlaceResizeSkipped"] == skipped
    assert series(updater, "in_place_infeasible_skip_pods_total")[0].endswith(" 2.0")


@pytest.mark.row("V-121")
async def test_vpa_updater_has_upstreams_metrics(world: World) -> None:
    updater = await updating(world)
    of_size, of_vpa = ("vpa_size_log2",), ("vpa_name", "vpa_namespace")
    by_mode = (*of_size, "update_mode")
    gauges = ("controlled_pods_total", "evictable_pods_total", "vpas_with_evictable_pods_total")
    expected: dict[str, tuple[str, ...]] = {}
    expected |= dict.fromkeys((*gauges, "vpas_with_evicted_pods_total"), by_mode)
    resized = ("in_place_updatable_pods_total", "vpas_with_in_place_updatable_pods_total")
    expected |= dict.fromkeys((*resized, "vpas_with_in_place_updated_pods_total"), of_size)
    expected |= {
        "evicted_pods_total": (*by_mode, *of_vpa),
        "failed_eviction_attempts_total": (*by_mode, *of_vpa, "reason"),
        "in_place_updated_pods_total": (*of_size, *of_vpa),
        "failed_in_place_update_attempts_total": (*of_size, *of_vpa, "reason"),
        "in_place_infeasible_skip_pods_total": (*of_size, *of_vpa),
        "execution_latency_seconds": ("step",),
    }
    assert {name.name.removeprefix("vpa_updater_"): name.labels for name in updater.metrics.declared} == expected
