"""Restarts and disruption budgets: plan, resize and the eviction API come to the same decision."""

from typing import Any

import pytest

from actions.shop import NAMESPACE, Shop, cpu, promise
from podfit.actions.resize_pods import Options, carry_out, objection
from podfit.answers.plan.result import FITS, PROTECTED
from podfit.api.meta.codec import convert
from podfit.api.policy.v1.types import PodDisruptionBudget
from support.access import send

WEB = {"selector": {"matchLabels": {"app": "a"}}}


async def budget(shop: Shop, name: str = "b", *, allowed: int, **spec: Any) -> None:
    document = {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"minAvailable": 1, **WEB, **spec}}
    await shop.client.create(convert(document, PodDisruptionBudget))
    status = {"disruptionsAllowed": allowed, "observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1}
    await shop.client.patch(PodDisruptionBudget, name, NAMESPACE, {"status": status}, subresource="status")


async def evictable(shop: Shop) -> bool:
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/a/eviction"
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "a", "namespace": NAMESPACE},
        "deleteOptions": {"dryRun": ["All"]},
    }
    return (await send(shop.server, "POST", path, body))[0] == 201


@pytest.mark.parametrize(
    ("spec", "allowed", "ready", "free"),
    [
        ({}, 0, True, False),
        ({}, 1, True, True),
        ({}, 0, False, True),  # the application is whole without it
        ({"unhealthyPodEvictionPolicy": "AlwaysAllow"}, 0, True, False),
        ({"unhealthyPodEvictionPolicy": "AlwaysAllow"}, 0, False, True),
        ({"selector": {"matchLabels": {"app": "other"}}}, 0, True, True),
    ],
)
async def test_plan_resize_and_eviction_decide_alike(
    shop: Shop, spec: dict[str, Any], allowed: int, ready: bool, free: bool
) -> None:
    gates = [] if ready else [{"conditionType": "example.com/never"}]
    await shop.add("a", "100m", policy="RestartContainer", readinessGates=gates)
    await budget(shop, allowed=allowed, **spec)
    assert await evictable(shop) == free
    promised = promise(await shop.snapshot("a"), cpu("200m"))
    assert promised.plan.pods[0].verdict == (FITS if free else PROTECTED)
    assert promised.plan.good == free
    deeds = [outcome async for outcome in carry_out(shop.client, promised, Options(), shop.node.clock)]
    assert [deed.state == "protected" for deed in deeds] == [not free]


async def test_what_a_budget_protects_is_told_and_may_be_overridden(shop: Shop) -> None:
    await shop.add("a", "100m", policy="RestartContainer")
    await budget(shop, allowed=0)
    promised = promise(await shop.snapshot("a"), cpu("200m"))
    text = "The disruption budget b needs 1 healthy pods and has 1 currently"
    assert promised.plan.pods[0].text == f"a restart would break its disruption budget: {text}"
    why, fix = objection(promised.plan, Options())
    assert (why, "--allow-disruption" in fix) == (f"a: {promised.plan.pods[0].text}", True)
    assert objection(promised.plan, Options(disrupt=True)) == ("", "")
    deeds = await shop.resize("a", request=cpu("200m"), how=Options(wait=True, disrupt=True), moves=10)
    assert [deed.state for deed in deeds] == ["done"]
    assert (await shop.pod("a")).status.container_statuses[0].restart_count == 1


async def test_two_budgets_of_one_pod_protect_it_as_the_eviction_says(shop: Shop) -> None:
    await shop.add("a", "100m", policy="RestartContainer")
    await budget(shop, "b", allowed=1)
    await budget(shop, "c", allowed=1)
    assert not await evictable(shop)
    assert promise(await shop.snapshot("a"), cpu("200m")).plan.pods[0].verdict == PROTECTED


async def test_what_restarts_nothing_is_not_protected(shop: Shop) -> None:
    await shop.add("a", "100m")
    await budget(shop, allowed=0)
    assert promise(await shop.snapshot("a"), cpu("200m")).plan.pods[0].verdict == FITS


@pytest.mark.parametrize(("then", "states"), [(0, ["done", "protected"]), (1, ["done", "done"])])
async def test_a_second_restart_asks_the_budget_again_when_the_first_pod_is_back(
    shop: Shop, then: int, states: list[str]
) -> None:
    """One may be down, and the plan was made when that was so; `then` is what its budget says after the first."""
    for name in ("a", "b"):
        await shop.add(name, "100m", policy="RestartContainer", labels={"app": "a"})
    await budget(shop, allowed=1)
    promised = promise(await shop.snapshot("a", "b"), cpu("200m"))
    assert [pod.verdict for pod in promised.plan.pods] == [FITS, FITS]
    status = {"status": {"disruptionsAllowed": then}}
    await shop.client.patch(PodDisruptionBudget, "b", NAMESPACE, status, subresource="status")
    deeds = await shop.carried_out(promised, Options(), moves=60)
    assert [deed.state for deed in deeds] == states
    assert [(await shop.pod(name)).status.container_statuses[0].restart_count for name in "ab"] == [1, then]


async def test_a_pod_that_never_was_ready_is_not_waited_for_to_be(shop: Shop) -> None:
    never = [{"conditionType": "example.com/never"}]
    for name in ("a", "b"):
        await shop.add(name, "100m", policy="RestartContainer", labels={"app": "a"}, readinessGates=never)
    await budget(shop, allowed=0, unhealthyPodEvictionPolicy="AlwaysAllow")
    deeds = await shop.resize("a", "b", request=cpu("200m"), how=Options(wait=True), moves=30)
    assert [deed.state for deed in deeds] == ["done", "done"]
    assert deeds[0].seconds < 5
