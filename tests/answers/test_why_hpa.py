"""`why hpa/NAME` against what the controller then does, in random situations; and its words in some."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from podfit.answers.plan.average_value import read_average_values
from podfit.answers.why.hpa import HpaWhy, why_hpa
from podfit.answers.why.hpa_facts import read_hpa
from podfit.api.core.v1.pods.types import Pod
from podfit.core.errors import ApiError
from podfit.decide.autoscaling.horizontal.asked_size import VERTICAL_FIRST
from podfit.decide.autoscaling.horizontal.keep_point import ANCHOR, KEEP_POINT, SCALE
from podfit.decide.autoscaling.horizontal.lasting import REFRESH
from podfit.decide.autoscaling.horizontal.model import Settings
from podfit.decide.autoscaling.horizontal.vertical_first import PATIENCE
from support.hpa_world import HpaWorld, autoscaling

SETTINGS = Settings(upstream_compatible=False)
PERIOD = SETTINGS.sync_period
REF = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def pod(number: int, requests: dict[str, str], phase: str = "Running") -> dict[str, Any]:
    usual = {"name": f"web-{number}", "phase": phase, "ready": "True", "start": True, "deleted": False}
    containers = [{"name": "app", "requests": requests}]
    return {**usual, "age": 3600, "transition_age": 3590, "labels": {"app": "web"}, "containers": containers}


def metric(resource: str = "cpu", percent: int = 50) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": resource, "target": target}}


QUEUE = {
    "type": "External",
    "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}},
}


async def why(world: HpaWorld, name: str = "web") -> HpaWhy:
    return why_hpa(await read_hpa(world.client, name, world.namespace, world.clock))


class Situation:
    def __init__(self, seed: int, world: HpaWorld) -> None:
        self.random, self.world = random.Random(seed), world
        self.pods = self.random.randint(1, 6)

    def load(self) -> None:
        pick, told = self.random.choice, dict[str, Any]()
        for number in range(self.pods):
            if self.random.random() < 0.9:
                usage = {"cpu": f"{pick((0, 20, 45, 50, 55, 90, 200))}m", "memory": f"{pick((20, 64, 200))}Mi"}
                told[f"web-{number}"] = {"containers": {"app": usage}}
        queue = {"queue": [str(pick((0, 5, 30, 80, 400)))]} if self.random.random() < 0.8 else {}
        self.world.metrics.told = {"pods": told, "external": queue}

    async def prepare(self) -> None:
        pick, chance = self.random.choice, self.random.random
        replicas = pick((0, self.pods, self.pods, self.pods, self.pods + 3))
        await self.world.target({"kind": "Deployment", "replicas": replicas, "status_replicas": replicas})
        for number in range(self.pods):
            requests = {} if chance() < 0.1 else {"cpu": "100m", "memory": "128Mi"}
            await self.world.pod(pod(number, requests, pick(("Running",) * 6 + ("Pending", "Succeeded"))))
        rules: dict[str, Any] = {}
        if chance() < 0.6:
            rules["scaleDown"] = {"stabilizationWindowSeconds": pick((0, 30, 120))}
            policies = [{"type": pick(("Pods", "Percent")), "value": pick((1, 50)), "periodSeconds": pick((15, 60))}]
            rules["scaleUp"] = {"policies": policies, "stabilizationWindowSeconds": pick((0, 0, 60))}
        spec: dict[str, Any] = {"scaleTargetRef": REF, "minReplicas": pick((1, 2)), "maxReplicas": pick((2, 5, 20))}
        spec["metrics"] = pick(([metric()], [metric(), QUEUE], [QUEUE], [metric("memory", 80), metric()]))
        if rules:
            spec["behavior"] = rules
        notes = {}
        if await self._grows(pick, chance()):
            notes, spec["metrics"] = {SCALE: VERTICAL_FIRST}, pick(([metric()], [metric("memory", 80), metric()]))
        elif chance() < 0.3:
            began = pick((60, 90, 100, 117, 160, 300))
            notes = {SCALE: KEEP_POINT, ANCHOR: f'{{"cpu":{{"target":50,"request":{began}}}}}'}
        self.load()
        await self.world.start(SETTINGS)
        await self.world.autoscaler("web", spec, annotations=notes)
        if chance() < 0.1:
            await self.world.autoscaler("rival", {**spec, "maxReplicas": 30})
            await self.world.clock.advance(2 * PERIOD)  # until both have been in their bounds either may act (H-185)

    async def _grows(self, pick: Callable[[Sequence[Any]], Any], chance: float) -> bool:
        """Pods of every other may grow first, where a VPA resizes them and their nodes have room."""
        if chance > 1 / 2:
            return False
        await self.world.define_vpas()
        policies = [{"containerName": "*", "maxAllowed": {"cpu": pick(("150m", "1"))}}]
        await self.world.vpa(pick(("InPlaceOrRecreate", "InPlaceOrRecreate", "Recreate", "Off")), policies)
        await self.world.node("n1", pick(("1", "4")))
        return True

    async def promised(self) -> str:
        """Ask, and see what comes of it while the load stays."""
        answer, before = await why(self.world), await self.world.replicas()
        coming = before if answer.next is None else answer.next
        within = PERIOD + REFRESH if any(f"within {PERIOD + REFRESH:g} s" in text for text in answer.acts) else PERIOD
        seen = []
        for _ in range(int(within / PERIOD)):
            await self.world.clock.advance(PERIOD)
            seen.append(await self.world.replicas())
            if seen[-1] != before:
                break
        assert answer.replicas in (None, before)
        assert seen[-1] in (coming, answer.then), (answer, seen)
        if answer.next is None:
            return "unknown"
        if any("replicas wait for it" in text for text in answer.acts):
            return "waits"
        after = seen[-1]
        return "more" if after > before else "fewer" if after < before else "held" if answer.held else "stays"

    async def play(self) -> list[str]:
        await self.prepare()
        await self.world.clock.advance(self.random.choice((16, 20, 95)))
        found = []
        for _ in range(4):
            self.load()
            await self.world.clock.advance(7)  # what was read before is not good any more
            found.append(await self.promised())
            await self.world.clock.advance(self.random.choice((0, 15, 60, 200)))
        return found


async def played(seeds: Iterable[int], directory: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    for seed in seeds:
        async with autoscaling(directory / str(seed)) as world:
            found.update(await Situation(seed, world).play())
    return found


async def test_what_why_says_of_an_hpa_is_done(tmp_path: Path) -> None:
    found = await played(range(24), tmp_path)
    assert found.keys() >= {"more", "fewer", "stays", "unknown", "waits"}, found


@pytest.mark.campaign
@pytest.mark.timeout(1800)
async def test_what_why_says_of_an_hpa_is_done_in_five_hundred_situations(tmp_path: Path, figure: Any) -> None:
    """500 random HPAs with up to six pods, one or two metrics, windows, policies and a rival, each asked four times:
    what `podfit why hpa/NAME` says is what its controller does next.
    """
    for kind, count in sorted((await played(range(1000, 1500), tmp_path)).items()):
        figure(kind, count)


async def test_why_hpa_says_what_bounds_it_and_what_would_change_it(tmp_path: Path) -> None:
    async with autoscaling(tmp_path) as world:
        world.metrics.told = {"pods": {f"web-{number}": {"containers": {"app": {"cpu": "400m"}}} for number in (0, 1)}}
        await world.target({"kind": "Deployment", "replicas": 2, "status_replicas": 2})
        for number in (0, 1):
            await world.pod(pod(number, {"cpu": "100m"}))
        spec = {"scaleTargetRef": REF, "minReplicas": 1, "maxReplicas": 3, "metrics": [metric(), QUEUE]}
        await world.start(SETTINGS)
        await world.autoscaler("web", spec)
        answer = await why(world)
        assert (answer.replicas, answer.next, answer.wanted, answer.good) == (2, 3, 16, False)
        cpu, queue = answer.metrics
        assert (cpu.current, cpu.target, cpu.ratio, cpu.wants) == ("400 %", "50 %", 8.0, 16)
        assert "the server could not find the metric queue" in queue.failure
        assert answer.limited == "the desired replica count is more than the maximum replica count"
        assert answer.changes == (
            "cpu resource: more replicas above 55 % of the request, fewer below 45 %",
            "external metric queue: nothing, until it can be read",
            "maxReplicas of 16 or more instead of 3 gives it all that it wants",
        )
        assert answer.acts == (
            "podfit's controller, within 15 s: scales deployment/web from 2 to 3",
            "then the controller of deployment/web makes 1 pods",
        )


async def test_why_hpa_says_that_pods_grow_first(tmp_path: Path) -> None:
    async with autoscaling(tmp_path) as world:
        world.metrics.told = {"pods": {"web-0": {"containers": {"app": {"cpu": "80m"}}}}}
        await world.target({"kind": "Deployment", "replicas": 1, "status_replicas": 1})
        await world.pod(pod(0, {"cpu": "100m"}))
        await world.define_vpas()
        await world.vpa("InPlaceOrRecreate", [{"containerName": "*", "maxAllowed": {"cpu": "1"}}])
        await world.node("n1", "4")
        await world.start(SETTINGS)
        spec = {"scaleTargetRef": REF, "maxReplicas": 3, "metrics": [metric()]}
        await world.autoscaler("web", spec, annotations={SCALE: VERTICAL_FIRST})
        answer = await why(world)
        assert (answer.replicas, answer.next, answer.wanted) == (1, 1, 2)
        grows, stays = answer.acts
        assert grows.startswith(
            "cpu: VerticalPodAutoscaler web is to grow pods from 100m to 160m; replicas wait for it"
        )
        assert stays == "no replicas: podfit's controller looks again within 15 s, and would leave 1"
        await world.clock.advance(16)
        assert (await why(world)).acts[1] == stays
        await world.clock.advance(PATIENCE)
        assert (await why(world)).replicas == 2


async def test_why_hpa_says_the_target_that_followed_the_request(tmp_path: Path) -> None:
    """50 % of 180m are 90.91 % of 99m; the tolerance would reach to all that pods request."""
    async with autoscaling(tmp_path) as world:
        world.metrics.told = {"pods": {"web-0": {"containers": {"app": {"cpu": "99m"}}}}}
        await world.target({"kind": "Deployment", "replicas": 1, "status_replicas": 1})
        await world.pod(pod(0, {"cpu": "99m"}))
        await world.start(SETTINGS)
        notes = {SCALE: KEEP_POINT, ANCHOR: '{"cpu":{"target":50,"request":180}}'}
        spec = {"scaleTargetRef": REF, "maxReplicas": 3, "metrics": [metric()]}
        await world.autoscaler("web", spec, annotations=notes)
        answer = await why(world)
        (cpu,) = answer.metrics
        assert (cpu.current, cpu.target, cpu.ratio, cpu.wants) == ("100 %", "90.91 %", 1.1, 1)
        assert answer.changes == ("cpu resource: more replicas above 100 % of the request, fewer below 81.82 %",)


async def test_why_hpa_says_what_holds_it(tmp_path: Path) -> None:
    async with autoscaling(tmp_path) as world:
        world.metrics.told = {"pods": {"web-0": {"containers": {"app": {"cpu": "10m"}}}}}
        await world.target({"kind": "Deployment", "replicas": 3, "status_replicas": 3})
        await world.pod(pod(0, {"cpu": "100m"}))
        await world.start(SETTINGS)
        await world.autoscaler("web", {"scaleTargetRef": REF, "maxReplicas": 3, "metrics": [metric()]})
        await world.clock.advance(40)
        answer = await why(world)
        assert (answer.replicas, answer.next, answer.wanted) == (3, 3, 1)
        assert answer.held.startswith("recent recommendations were higher than current one")
        assert ": 3 were wished at 20" in answer.held
        assert answer.acts == ("nobody: podfit's controller looks again within 15 s, and would leave 3",)


async def test_why_hpa_of_a_target_that_cannot_be_scaled(tmp_path: Path) -> None:
    async with autoscaling(tmp_path) as world:
        await world.autoscaler("web", {"scaleTargetRef": REF, "maxReplicas": 3, "metrics": [metric()]})
        answer = await why(world)
        assert 'deployments.apps "web" not found' in answer.active
        assert answer.acts == ("nobody: the target's scale cannot be read",)
        assert not answer.good
        with pytest.raises(ApiError, match="not found"):
            await why(world, "missing")


async def test_plan_hpa_says_shares_as_amounts(tmp_path: Path) -> None:
    async with autoscaling(tmp_path) as world:
        await world.target({"kind": "Deployment", "replicas": 2, "status_replicas": 2})
        await world.pod(pod(0, {"cpu": "100m", "memory": "128Mi"}))
        await world.pod(pod(1, {"cpu": "300m", "memory": "128Mi"}))
        granted = {"name": "app", "image": "i", "imageID": "", "resources": {"requests": {"cpu": "200m"}}}
        status = {"containerStatuses": [{**granted, "ready": True, "restartCount": 0}]}
        await world.client.patch(Pod, "web-1", world.namespace, {"status": status}, subresource="status")
        metrics = [metric(percent=80), QUEUE, metric("memory", 50), metric("ephemeral-storage")]
        await world.autoscaler("web", {"scaleTargetRef": REF, "maxReplicas": 3, "metrics": metrics})
        found = await read_average_values(world.client, "web", world.namespace, world.clock)
        assert [(told.index, told.request, told.average_value) for told in found.metrics] == [
            (0, "150m", "120m"),
            (2, "128Mi", "64Mi"),
            (3, "", ""),
        ]
        assert found.metrics[2].why_not == "missing request for ephemeral-storage in container app of Pod web-0"
        assert [step["path"] for step in found.patch] == [
            "/spec/metrics/0/resource/target",
            "/spec/metrics/2/resource/target",
        ]
        assert found.patch[0]["value"] == {"type": "AverageValue", "averageValue": "120m"}
