"""Where HPAs do otherwise than upstream's (docs/compatibility.md), each beside `--upstream-compatible`."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.meta.codec import convert
from podfit.client.vpa_kinds import VPAS
from podfit.decide.autoscaling.horizontal.lasting import MEMORY, MOST_BYTES, PROPOSALS, remembered, restored
from podfit.decide.autoscaling.horizontal.model import Change, Memory, Recommendation, Settings
from support.hpa_world import HpaWorld, autoscaling

OURS = Settings(sync_period=1, downscale_stabilization=5, upstream_compatible=False)
LETTER = replace(OURS, upstream_compatible=True)
BOTH = pytest.mark.parametrize("settings", [OURS, LETTER], ids=["ours", "upstream"])


def pod(number: int, **given: Any) -> dict[str, Any]:
    containers = [{"name": "app", "requests": {"cpu": "100m", "memory": "128Mi"}}]
    usual = {"name": f"web-{number}", "phase": "Running", "ready": "True", "start": True, "deleted": False}
    return {**usual, "age": 3600, "transition_age": 3590, "labels": {"app": "web"}, "containers": containers, **given}


def used(*cpus: str) -> dict[str, Any]:
    return {f"web-{number}": {"containers": {"app": {"cpu": cpu, "memory": "64Mi"}}} for number, cpu in enumerate(cpus)}


def cpu(percent: int = 50) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


QUEUE = {
    "type": "External",
    "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}},
}


def spec(*metrics: dict[str, Any], **more: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    bounds = {"minReplicas": 1, "maxReplicas": 10}
    return {"scaleTargetRef": target, **bounds, "metrics": list(metrics or (cpu(),)), **more}


async def begin(world: HpaWorld, settings: Settings, *pods: dict[str, Any], told: dict[str, Any], **hpa: Any) -> None:
    """A Deployment of these pods, and an autoscaler of it."""
    world.metrics.told = told
    await world.target({"kind": "Deployment", "replicas": len(pods), "status_replicas": len(pods)})
    for given in pods:
        await world.pod(given)
    await world.start(settings)
    await world.autoscaler("web", hpa.get("spec") or spec())


async def annotations(world: HpaWorld) -> dict[str, str]:
    found = await world.client.get(HorizontalPodAutoscaler, "web", world.namespace)
    return dict(found.metadata.annotations)


@pytest.mark.parametrize(
    ("mode", "controlled", "says"),
    [("InPlaceOrRecreate", None, True), ("Off", None, False), ("Recreate", ["memory"], False)],
)
async def test_hpa_names_the_vpa_that_sizes_what_it_scales_on(
    tmp_path: Path, mode: str, controlled: list[str] | None, says: bool
) -> None:
    async with autoscaling(tmp_path) as world:
        await world.define_vpas()
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        vpa: dict[str, Any] = {"targetRef": target, "updatePolicy": {"updateMode": mode}}
        if controlled:
            policy = {"containerName": "*", "controlledResources": controlled}
            vpa["resourcePolicy"] = {"containerPolicies": [policy]}
        document = {"metadata": {"name": "sizes", "namespace": world.namespace}, "spec": vpa}
        await world.client.create_in(VPAS, convert(document, VerticalPodAutoscaler))
        await begin(world, OURS, pod(0), told={"pods": used("50m")})
        await world.clock.advance(2)
        types = [condition["type"] for condition in (await world.status())["conditions"]]
        assert ("podfit.dev/VerticalAutoscaler" in types) is says
        if says:
            _, reason, message = await world.condition("podfit.dev/VerticalAutoscaler")
            assert (reason, message.partition(", ")[0]) == (
                "SameResource",
                "VerticalPodAutoscaler sizes (InPlaceOrRecreate) sizes cpu",
            )
            await world.client.delete(VPAS, "sizes", world.namespace)
            await world.clock.advance(62)
            assert len((await world.status())["conditions"]) == len(types) - 1


@BOTH
async def test_hpa_leaves_out_a_pod_without_a_request(tmp_path: Path, settings: Settings) -> None:
    """Three pods at twice their target need six; the fourth stays beside them."""
    bare = pod(3, containers=[{"name": "app", "requests": {}}])
    async with autoscaling(tmp_path) as world:
        told = {"pods": used("100m", "100m", "100m", "900m")}
        await begin(world, settings, pod(0), pod(1), pod(2), bare, told=told)
        await world.clock.advance(2)
        status, reason, message = await world.condition("ScalingActive")
        if settings.upstream_compatible:
            assert (await world.replicas(), status, reason) == (4, "False", "FailedGetResourceMetric")
            return
        assert (await world.replicas(), status) == (7, "True")
        assert message.endswith(
            "; left out of cpu resource utilization (percentage of request), for lack of a request: web-3"
        )
        world.metrics.told = {"pods": used("10m", "10m", "10m", "900m")}
        await world.clock.advance(10)
        assert await world.replicas() == 2


@BOTH
async def test_hpa_passes_over_a_pod_that_ended_well(tmp_path: Path, settings: Settings) -> None:
    """Under half of its target; a pod that is over would count at its whole request by upstream's rules."""
    over = pod(2, phase="Succeeded", ready="False")
    async with autoscaling(tmp_path) as world:
        await begin(world, settings, pod(0), pod(1), over, told={"pods": used("20m", "20m")})
        await world.clock.advance(8)
        assert await world.replicas() == (3 if settings.upstream_compatible else 1)


@BOTH
async def test_hpa_tells_a_failure_once(tmp_path: Path, settings: Settings) -> None:
    async with autoscaling(tmp_path) as world:
        await begin(world, settings, pod(0), told={"pods": {}})
        await world.clock.advance(30)
        from podfit.api.core.v1.events.types import Event

        events = (await world.client.list(Event, world.namespace)).items
        counts = {event.reason: event.count for event in events}
        if settings.upstream_compatible:
            assert counts["FailedGetResourceMetric"] > 5
        else:
            assert counts == {"FailedGetResourceMetric": 1, "FailedComputeMetricsReplicas": 1}


@BOTH
async def test_hpa_says_which_generation_it_saw(tmp_path: Path, settings: Settings) -> None:
    async with autoscaling(tmp_path) as world:
        await begin(world, settings, pod(0), told={"pods": used("50m")})
        await world.change("web", {"maxReplicas": 9})
        await world.clock.advance(3)
        found = await world.client.get(HorizontalPodAutoscaler, "web", world.namespace)
        seen = found.status.observed_generation
        assert seen == (None if settings.upstream_compatible else found.metadata.generation)


@BOTH
async def test_hpa_goes_on_where_the_last_controller_was(tmp_path: Path, settings: Settings) -> None:
    """One pod a minute up: a new controller that knows nothing would add another at once."""
    rules = {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}
    async with autoscaling(tmp_path) as world:
        told = {"pods": used("100m", "100m", "100m")}
        await begin(world, settings, pod(0), pod(1), pod(2), told=told, spec=spec(behavior=rules))
        await world.clock.advance(3)
        assert await world.replicas() == 4
        await world.stop()
        await world.start(settings)
        await world.clock.advance(5)
        assert await world.replicas() == (5 if settings.upstream_compatible else 4)
        await world.clock.advance(60)
        assert await world.replicas() == (6 if settings.upstream_compatible else 5)


def noted(text: str = "", window: int = 3600) -> HorizontalPodAutoscaler:
    """With this memory in its annotation."""
    rules = {"scaleDown": {"stabilizationWindowSeconds": window}}
    document = {"metadata": {"name": "web", "annotations": {MEMORY: text}}, "spec": spec(behavior=rules)}
    return convert(document, HorizontalPodAutoscaler)


def test_hpa_memory_ends_at_four_kib_and_is_not_believed_about_the_future() -> None:
    changes = tuple(Change(float(second), 1) for second in range(3000, 3600))
    wishes = tuple(Recommendation(float(second), second) for second in range(3600))
    text = remembered(noted(), OURS, Memory(wishes, changes, changes), 7, 3600.0)
    assert text is not None
    assert len(text) <= MOST_BYTES
    back = restored(noted(text), OURS, 3600.0)
    assert back.recommendations[-1] == wishes[-1]
    assert back.added[-1] == changes[-1]
    assert restored(noted(text), OURS, 2999.0).added == ()
    for wrong in ("x", "[]", '{"wished":[["a",1]]}', '{"added":[[1,-5]]}', text + " " * MOST_BYTES):
        assert restored(noted(wrong), OURS, 3600.0) == Memory()


def test_hpa_memory_is_written_where_it_says_something_new() -> None:
    steady = Memory(tuple(Recommendation(float(second), 3) for second in range(100)))
    assert remembered(noted(), OURS, steady, 3, 100.0) is None
    text = remembered(noted(), OURS, steady, 5, 100.0)
    assert text is not None
    assert remembered(noted(text), OURS, steady, 5, 101.0) is None
    later = Memory((Recommendation(99.0 + 59, 3),))
    assert remembered(noted(text), OURS, later, 5, 160.0) is None
    assert remembered(noted(text), OURS, Memory((Recommendation(99.0 + 60, 3),)), 5, 160.0) is not None
    returned = Memory((Recommendation(99.0, 3), Recommendation(170.0, 5)))
    assert remembered(noted(text), OURS, returned, 5, 170.0) is not None
    assert restored(noted(text, window=60), OURS, 170.0) == Memory()


@BOTH
async def test_hpa_goes_by_the_last_good_value_for_five_minutes(tmp_path: Path, settings: Settings) -> None:
    """The queue wants eight; while it is away idle CPU alone takes nobody away, and busy CPU adds."""
    long = replace(settings, sync_period=15, downscale_stabilization=30)
    async with autoscaling(tmp_path) as world:
        told = {"pods": used(*["10m"] * 4), "external": {"queue": ["80"]}}
        hpa = spec(cpu(), QUEUE, maxReplicas=12)
        await begin(world, long, *map(pod, range(4)), told=told, spec=hpa)
        await world.clock.advance(40)
        assert await world.replicas() == 8
        await world.scale(9)
        world.metrics.told = {"pods": used(*["10m"] * 4), "external": {}}
        await world.clock.advance(240)
        active = await world.condition("ScalingActive")
        if settings.upstream_compatible:
            assert (await world.replicas(), active[:2]) == (9, ("False", "FailedGetExternalMetric"))
            return
        assert (await world.replicas(), active[:2]) == (8, ("True", "ValidMetricFound"))
        assert "; external metric queue(nil) is away, its value of " in active[2]
        await world.clock.advance(60)
        await world.scale(9)
        await world.clock.advance(90)
        active = await world.condition("ScalingActive")
        assert (await world.replicas(), active[:2]) == (9, ("False", "FailedGetExternalMetric"))
        world.metrics.told = {"pods": used(*["150m"] * 4), "external": {}}
        await world.clock.advance(30)
        assert await world.replicas() == 12
        assert (await world.condition("ScalingActive"))[0] == "True"


@BOTH
async def test_hpa_shows_what_each_metric_asked_for(tmp_path: Path, settings: Settings) -> None:
    async with autoscaling(tmp_path) as world:
        told = {"pods": used("400m"), "external": {"queue": ["300"]}}
        await begin(world, settings, pod(0), told=told, spec=spec(cpu(), QUEUE, maxReplicas=2))
        await world.clock.advance(2)
        assert await world.replicas() == 2
        found = await annotations(world)
        if settings.upstream_compatible:
            assert found == {}
            return
        assert json.loads(found[PROPOSALS]) == {
            "wanted": 30,
            "metrics": [
                {"metric": "cpu resource utilization (percentage of request)", "replicas": 8},
                {"metric": "external metric queue(nil)", "replicas": 30, "amount": 300_000},
            ],
        }
