"""What an HPA's controller makes of wrong metrics, APIs and targets, of long selectors, and of who has many HPAs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from controllers.test_hpa_better import OURS, QUEUE, begin, cpu, pod, spec, used
from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.resource import dynamic
from podfit.core.selectors import Selector, from_map
from podfit.decide.autoscaling.horizontal.claims import Claims
from podfit.decide.autoscaling.horizontal.model import Settings
from support.hpa_world import HpaWorld, autoscaling


async def nothing_done(world: HpaWorld, reason: str, text: str, replicas: int = 2) -> None:
    status, said, message = await world.condition("ScalingActive")
    assert (status, said, await world.replicas()) == ("False", reason, replicas)
    assert text in message


@pytest.mark.parametrize("amount", ["NaN", "-Inf", "1e", "", None, [1], "9" * 400])
async def test_hpa_scales_nothing_on_an_amount_that_is_none(tmp_path: Path, amount: Any) -> None:
    usage = {f"web-{number}": {"containers": {"app": {"cpu": amount, "memory": "1Mi"}}} for number in (0, 1)}
    async with autoscaling(tmp_path) as world:
        await begin(world, OURS, pod(0), pod(1), told={"pods": usage})
        await world.clock.advance(20)
        if amount == "9" * 400:  # a number, if a large one: the most that is allowed
            assert await world.replicas() == 10
        else:
            said = "did not receive metrics" if amount is None else "unable to get metrics for resource cpu"
            await nothing_done(world, "FailedGetResourceMetric", said)


@pytest.mark.parametrize("queue", [["NaN"], ["x"], [None], [{}]])
async def test_hpa_scales_nothing_on_an_external_amount_that_is_none(tmp_path: Path, queue: Any) -> None:
    async with autoscaling(tmp_path) as world:
        await begin(world, OURS, pod(0), pod(1), told={"external": {"queue": queue}}, spec=spec(QUEUE))
        await world.clock.advance(20)
        await nothing_done(world, "FailedGetExternalMetric", "unable to fetch metrics from external metrics API")


async def test_hpa_says_that_the_metrics_apis_are_not_there(tmp_path: Path) -> None:
    async with autoscaling(tmp_path) as world:
        for group, version in (("metrics.k8s.io", "v1beta1"), ("external.metrics.k8s.io", "v1beta1")):
            services = dynamic("apiregistration.k8s.io", "v1", "apiservices", namespaced=False)
            await world.client.delete(services, f"{version}.{group}")
        await begin(world, OURS, pod(0), pod(1), told={}, spec=spec(cpu(), QUEUE))
        await world.clock.advance(20)
        await nothing_done(world, "FailedGetResourceMetric", "the server could not find the requested resource")


async def test_hpa_says_that_its_target_has_no_scale(tmp_path: Path) -> None:
    target = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "web"}
    async with autoscaling(tmp_path) as world:
        await world.start(OURS)
        await world.autoscaler("web", {"scaleTargetRef": target, "maxReplicas": 3, "metrics": [cpu()]})
        await world.clock.advance(10)
        status, reason, message = await world.condition("AbleToScale")
        assert (status, reason) == ("False", "FailedGetScale")
        assert message.endswith("the server could not find the requested resource")


async def on_gadgets(world: HpaWorld, terms: int) -> dict[str, Any]:
    """Two pods at twice their target, selected by so many terms; the spec of an autoscaler of them."""
    world.metrics.told = {"pods": used("100m", "100m")}
    selector = ",".join(["app=web", *(f"k{number}!=v" for number in range(terms - 1))])
    await world.target({"kind": "Gadget", "replicas": 2, "status_replicas": 2, "selector": selector})
    for number in (0, 1):
        await world.pod(pod(number))
    await world.start(OURS)
    return spec(scaleTargetRef={"apiVersion": "x.example.com/v1", "kind": "Gadget", "name": "web"})


async def test_hpa_of_a_selector_of_a_thousand_terms(tmp_path: Path) -> None:
    """It is read; who else selects the same pods is still found."""
    async with autoscaling(tmp_path) as world:
        wanted = await on_gadgets(world, 1000)
        await world.autoscaler("web", wanted)
        await world.clock.advance(3)
        status, reason, _ = await world.condition("ScalingActive")
        assert (status, reason, await world.replicas()) == ("True", "ValidMetricFound", 4)
        await world.autoscaler("rival", wanted)
        await world.clock.advance(3)
        assert (await world.condition("ScalingActive", "rival"))[1] == "AmbiguousSelector"


async def test_hpa_says_that_a_selector_is_too_long(tmp_path: Path) -> None:
    async with autoscaling(tmp_path) as world:
        await world.autoscaler("web", await on_gadgets(world, 1001))
        await world.clock.advance(3)
        status, reason, message = await world.condition("AbleToScale")
        assert (status, reason, await world.replicas()) == ("False", "FailedGetScale", 2)
        assert message.endswith("a label selector has at most 1000 terms and values")
        assert len(message) < 1500


async def beside_a_tenant(world: HpaWorld, many: int, settings: Settings, slow: float) -> float:
    """Seconds until an HPA is scaled whose pods have begun to use twice their target, beside so many of a tenant, each
    of which asks for a metric that is not there and whose answer takes `slow` seconds."""
    await world.server.namespace("tenant")
    await HpaWorld(world.server, world.clock, world.metrics, "tenant").target(
        {"kind": "Deployment", "replicas": 2, "status_replicas": 2}
    )
    world.metrics.slow = {"tenant": slow}
    for number in range(many):
        document = {"metadata": {"name": f"h{number}", "namespace": "tenant"}, "spec": spec(QUEUE)}
        await world.client.create(convert(document, HorizontalPodAutoscaler))
    await begin(world, settings, pod(0), pod(1), told={"pods": used("50m", "50m")})
    await world.clock.advance(2 * settings.sync_period)
    assert (await world.condition("ScalingActive"))[0] == "True"
    waiting = sum("/namespaces/tenant/" in path for path in world.metrics.asked)
    assert 0 < waiting < many, f"{waiting} were asked for within two periods: the tenant keeps nobody waiting"
    world.metrics.told = {"pods": used("100m", "100m")}
    began = world.clock.monotonic()
    while await world.replicas() == 2 and world.clock.monotonic() - began < 20 * settings.sync_period:
        await world.clock.advance(settings.sync_period / 10)
    assert await world.replicas() == 4
    return world.clock.monotonic() - began


async def test_hpas_of_a_hostile_tenant_do_not_stop_those_of_others(tmp_path: Path) -> None:
    """A round over a tenant's HPAs takes 25 s with two workers; another's is looked at in its period of 1 s."""
    async with autoscaling(tmp_path) as world:
        assert await beside_a_tenant(world, 100, replace(OURS, workers=2), slow=0.5) <= 2


@pytest.mark.campaign
@pytest.mark.timeout(1800)
async def test_ten_thousand_hpas_of_a_hostile_tenant_do_not_stop_those_of_others(
    tmp_path: Path, figure: Callable[[str, object], None]
) -> None:
    """10,000 HPAs of one tenant, each with a metric that is not there and whose answer takes 50 ms (a round of five
    workers is 100 s), beside one of another's, on the test clock: from the moment at which its pods use twice their
    target that one is scaled within its period of 15 s and two for the age of what was read.
    """
    settings = Settings(upstream_compatible=False)
    async with autoscaling(tmp_path) as world:
        took = await beside_a_tenant(world, 10_000, settings, slow=0.05)
    figure("seconds until it was scaled", round(took, 1))
    assert took <= settings.sync_period + 2


def test_ten_thousand_hpas_leave_the_claims_of_another_alone() -> None:
    """Whoever claims pods by a label costs nothing to who demands another label, in whatever namespace."""
    claims, label = Claims(), {"app": "web"}
    for number in range(10_000):
        claims.claim(("tenant", f"h{number}"), Selector(from_map(label).requirements))
    claims.claim(("shop", "web"), Selector(from_map(label).requirements))
    mine = convert({"metadata": {"name": "p", "namespace": "shop", "labels": label}}, Pod)
    assert claims.rivals(("shop", "web"), [mine]) == [("shop", "web")]
    for number in range(10_000):
        claims.forget(("tenant", f"h{number}"))
