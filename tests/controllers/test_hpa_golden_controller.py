"""What upstream's controller made of whole scenarios, with only the autoscaler on and canned metrics APIs: statuses,
events and replicas at the end, and how the replicas got there."""

from pathlib import Path
from typing import Any

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.decide.autoscaling.horizontal.model import Settings
from podfit.decide.autoscaling.horizontal.samples import go_seconds
from support.golden import Case, parametrize
from support.hpa_world import HpaWorld, autoscaling

SLOWER = 1.5
"""Times of the recording are so much longer than a scenario says."""
STEP = 0.25
FIRST = "web"


@parametrize("hpa/controller.json*")
async def test_hpa_controller(case: Case, tmp_path: Path) -> None:
    given, out = case["in"], case["out"]
    async with autoscaling(tmp_path, namespace=given["namespace"], gates=given["gates"]) as world:
        world.metrics.told = given["metrics"]
        if given["target"] is not None:
            await world.target(given["target"])
        for pod in given["pods"]:
            await world.pod(pod)
        await world.start(settings(given))
        for name in sorted(given["hpas"], key=lambda name: name != FIRST):
            await world.autoscaler(name, given["hpas"][name])
        history = await watched(world, given)
        seen = {
            "status": {name: plain(status) for name, status in (await world.statuses()).items()},
            "events": await world.events(),
            "replicas_history": history,
            "target_replicas": history[-1]["replicas"] if history else None,
        }
    told = {tuple(event[key] for key in ("hpa", "type", "reason", "message")) for event in out["events"]}
    recorded = {name: out.get(name) for name in seen} | {"events": told}
    unstable = {str(part).partition(".")[0] for part in case.get("unstable") or ()}
    for name in seen.keys() - unstable:
        assert seen[name] == recorded[name], name


def settings(given: dict[str, Any]) -> Settings:
    """As `--upstream-compatible` makes them."""
    flags = given["controller"]
    return Settings(
        sync_period=go_seconds(flags["sync_period"]),
        downscale_stabilization=go_seconds(flags["downscale_stabilization"]),
        tolerance=flags["tolerance"],
        cpu_initialization=go_seconds(flags["cpu_initialization_period"]),
        initial_readiness=go_seconds(flags["initial_readiness_delay"]),
        scale_to_zero=given["gates"].get("HPAScaleToZero", False),
    )


async def watched(world: HpaWorld, given: dict[str, Any]) -> list[dict[str, Any]]:
    """The replicas in their order, and whose they are."""
    steps = [(step["at_s"] * SLOWER, step["do"]) for step in given.get("steps") or ()]
    before = await world.replicas()
    history = [{"by": "start", "replicas": before}] if before >= 0 else []
    for turn in range(int(given["watch_s"] * SLOWER / STEP)):
        while steps and steps[0][0] <= turn * STEP:
            _, do = steps.pop(0)
            await carry_out(world, do)
            if "target" in do:
                before = do["target"]
                history.append({"by": "user", "replicas": before})
        await world.clock.advance(STEP)
        now = await world.replicas()
        if now != before:
            history.append({"by": "autoscaler", "replicas": now})
        before = now
    assert not steps
    return history


async def carry_out(world: HpaWorld, do: dict[str, Any]) -> None:
    assert do.keys() <= {"metrics", "target", "hpa", "delete_hpa"}
    if "metrics" in do:
        world.metrics.told = do["metrics"]
    if "target" in do:
        await world.scale(do["target"])
    if "hpa" in do:
        await world.change(FIRST, do["hpa"])
    if "delete_hpa" in do:
        await world.client.delete(HorizontalPodAutoscaler, do["delete_hpa"], world.namespace)


def plain(status: dict[str, Any]) -> dict[str, Any]:
    """As it was recorded: without the times of conditions."""
    conditions = [
        {key: value for key, value in condition.items() if key != "lastTransitionTime"}
        for condition in status.get("conditions") or ()
    ]
    scaled = "set" if status.get("lastScaleTime") else None
    return {**status, "lastScaleTime": scaled} | ({"conditions": conditions} if conditions else {})
