"""What every verb that foretells says of random situations on a real node, against what then happens there: `plan`,
room made, plans of templates and of manifests, `why node/`, `why vpa/`, `recommend`.

The situations are those of tests/answers; here containers, usage and time are real.
"""

import asyncio
import random
import socket
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar, cast

import pytest
from msgspec.structs import replace

from answers import test_in_place_rollouts_hold as manifests
from answers import test_rollouts_hold as templates
from answers.situations import Situation, busy, compared
from answers.test_why_node_and_scheduler import Crowd
from answers.test_why_vpa_and_updater import _deed, settings_of
from e2e.real_world import Real
from podfit.answers.autoscaling.recommend import MEBI, recommend
from podfit.answers.autoscaling.recommended_facts import FactsReader, UsageWindow
from podfit.answers.why.vpa import foretold, read_facts
from podfit.api.apps.v1.daemonsets import DaemonSet
from podfit.api.apps.v1.deployments import Deployment, ReplicaSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.scheduling.v1.types import PriorityClass
from podfit.client.election import Election, LeaseTiming
from podfit.client.kubeconfig import load
from podfit.client.rest import MERGE_PATCH, Client
from podfit.client.vpa_kinds import VPAS
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.autoscaling.actions import Deed, Verdict
from podfit.decide.autoscaling.flags import EstimatorFlags, RecommenderFlags
from podfit.decide.autoscaling.published import LEASE
from podfit.decide.pod.resize_state import ResizeState
from podfit.net.system import SystemClock
from podfit.testing.cluster import Cluster
from podfit.vpa.recommender.recommender import Recommender
from podfit.vpa.recommender.settings import RecommenderSettings
from podfit.vpa.updater.updater import Updater
from support.eventually import Steady, eventually_async
from support.up import IMAGE, STAY, Up
from support.vpa_processes import DEFINITIONS

pytestmark = [pytest.mark.campaign, pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]
T = TypeVar("T")
WORKLOADS = (Deployment, StatefulSet, DaemonSet, ReplicaSet)
OTHER_IMAGE = f"docker.io/library/{IMAGE}"
"""The same one by another name: a template with it is another."""
FLAGS = EstimatorFlags(min_cpu_millicores=5, min_memory_mb=8)
WATCHED = UsageWindow(seconds=150, interval=15)
BEGUN = 45.0
"""Seconds after which the CPU that a container takes to begin is in no sample any more."""
LEAST_BUCKET = 1.06
"""Two containers that do the same do not use the same to the byte: a histogram's bucket is 5 % wider than the last."""


class _PodOf(NamedTuple):
    pod: Pod


class Waiting:
    """Time that is not moved on: instead all is waited for that is under way."""

    def __init__(self, node: "RealNode") -> None:
        self._node = node

    def advance(self, seconds: float = 0, *, minutes: float = 0) -> None:
        self._node.run(self._node.rest())


class RealNode:
    """As much of a `podfit.testing` cluster as the situations of tests/answers use, over `podfit up`."""

    def __init__(self, up: Up, client: Client, runner: asyncio.Runner) -> None:
        self.up, self.client, self._runner = up, client, runner
        self.clock = Waiting(self)
        self.deadline = 0
        """Seconds that something may wait in place before it is replaced; they are waited for."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def apply(self, *documents: dict[str, Any], namespace: str = "default") -> None:
        self.up.apply(*(real(document) for document in documents))

    def delete(self, name: str, *, kind: str, api_version: str, namespace: str = "default") -> None:
        self.up.ok("delete", kind.lower(), name, "-n", namespace)

    def resize(self, name: str, **resources: Mapping[str, Any]) -> None:
        containers = [{"name": container, "resources": to} for container, to in resources.items()]
        patch = {"spec": {"containers": containers}}
        self.run(self.client.patch(Pod, name, "default", patch, subresource="resize"))

    def pods(self, namespace: str) -> list[_PodOf]:
        return [_PodOf(pod) for pod in self.run(self.client.list(Pod, namespace)).items]

    async def rest(self) -> None:
        """Until nothing has changed for a second; as long as the deadline where a resize waits."""

        async def look() -> tuple[str, bool] | None:
            pods = (await self.client.list(Pod, "default")).items
            workloads: list[Any] = []
            for kind in WORKLOADS:
                workloads += (await self.client.list(kind, "default")).items
            begun = any(one.metadata.generation > one.status.observed_generation for one in workloads)
            if begun or any(busy(pod) or pod.metadata.deletion_timestamp or not _told(pod) for pod in pods):
                return None
            versions = sorted(one.metadata.uid + one.metadata.resource_version for one in (*pods, *workloads))
            return " ".join(versions), any(ResizeState.of(pod).pending is not None for pod in pods)

        quiet, waiting = Steady(12), Steady(10 * (self.deadline + 5))

        def holds(seen: tuple[str, bool]) -> bool:
            short, long = quiet(seen[0]), waiting(seen[0])
            return long if seen[1] and self.deadline else short

        await eventually_async(look, holds, within=240, what="the node is at rest", every=0.1)

    def clear(self) -> None:
        """The namespace as it was."""

        async def cleared() -> None:
            for kind in (*WORKLOADS, LimitRange, Pod):
                for obj in (await self.client.list(kind, "default")).items:
                    with suppress(ApiError):
                        await self.client.delete(kind, obj.metadata.name, "default")
            await eventually_async(
                lambda: self.client.list(Pod, "default"), lambda page: not page.items, within=60, what="it is empty"
            )

        self.run(cleared())


def _told(pod: Pod) -> bool:
    """Whether the scheduler has said something of it."""
    return bool(pod.spec.node_name) or any(condition.type == "PodScheduled" for condition in pod.status.conditions)


def real(document: dict[str, Any]) -> dict[str, Any]:
    """With containers that stay, of an image that is there."""
    spec = document.get("spec", {})
    for pod in (spec.get("template", {}).get("spec", {}), spec if document["kind"] == "Pod" else {}):
        if "containers" in pod:
            pod.setdefault("terminationGracePeriodSeconds", 1)
            for container in pod["containers"]:
                container["image"] = IMAGE if container["image"] == "i" else container["image"]
                container.setdefault("command", STAY)
    return document


class Manifests(manifests.Rollouts):
    def complete(self, document: dict[str, Any]) -> dict[str, Any]:
        return real(document)

    def other_image(self) -> str:
        return OTHER_IMAGE

    def now(self) -> Clock:
        return SystemClock()


@contextmanager
def started(up: Up) -> Iterator[RealNode]:
    up.start("--make-room", "--no-vpa")
    up.ok("apply", "-f", str(DEFINITIONS))
    with asyncio.Runner() as runner:
        client = load([up.kubeconfig]).client()
        try:
            yield RealNode(up, client, runner)
        finally:
            runner.run(client.close())


def plans(node: RealNode, seeds: range) -> Counter[str]:
    """`plan`, with room that neighbours make."""

    async def play() -> Counter[str]:
        world, seen = Real(node.client), Counter[str]()
        for name, value in (("low", 10), ("high", 1000)):
            await node.client.create(convert({"metadata": {"name": name}, "value": value}, PriorityClass))
        for seed in seeds:
            situation = Situation(seed, world)
            await situation.prepare(world.account)
            seen[await compared(seed, situation)] += 1
            await world.clear(situation.namespace)
        return seen

    return node.run(play())


def nodes(node: RealNode, seeds: range) -> Counter[str]:
    """`why node/`."""
    seen = Counter[str]()
    for seed in seeds:
        seen += Crowd(cast(Cluster, node), seed, socket.gethostname().lower()).play()
        node.clear()
    return seen


def changed_templates(node: RealNode, number: int, rounds: int) -> Counter[str]:
    """What a resize with `--also-template` tells of so many workloads, so many times each."""
    return templates.Rollouts(cast(Cluster, node), 11).play(number, rounds=rounds)


def changed_manifests(node: RealNode, number: int, rounds: int) -> Counter[str]:
    """`plan -f`."""
    node.deadline = 30
    return Manifests(cast(Cluster, node), 31).play(number, rounds)


def deployment(name: str, replicas: int, container: dict[str, Any]) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "i", **container}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def vpa(name: str, mode: str) -> VerticalPodAutoscaler:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec = {"targetRef": target, "updatePolicy": {"updateMode": mode}}
    return convert({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, VerticalPodAutoscaler)


def passes(node: RealNode, seed: int, number: int) -> Counter[str]:
    """`why vpa/`: of each pod of so many workloads, in one pass of an updater with settings at random."""
    pick = random.Random(seed)
    resources = {"requests": {"cpu": "50m", "memory": "32Mi"}}
    for place in range(number):
        policy = [{"resourceName": "cpu", "restartPolicy": pick.choice(("NotRequired", "RestartContainer"))}]
        node.apply(deployment(f"v{place}", pick.randint(1, 3), {"resources": resources, "resizePolicy": policy}))
    node.run(node.rest())
    modes = ("Off", "Initial", "Recreate", "InPlace", "InPlaceOrRecreate", "InPlaceOrRecreate")
    asked = {f"v{place}": (pick.choice(modes), pick.choice(("50m", "90m", "20m", "9"))) for place in range(number)}
    settings = replace(settings_of(pick), interval=2.0, admission=None, ignored=frozenset[str]())
    return node.run(_pass(node.client, asked, settings))


async def _pass(client: Client, asked: dict[str, tuple[str, str]], settings: Any) -> Counter[str]:
    clock, told, ended = SystemClock(), dict[str, Verdict](), asyncio.Event()
    election = Election(
        client,
        clock,
        name=LEASE,
        identity="told",
        pace=LeaseTiming(duration=3600),
        told=settings.published().annotation(),
    )
    assert await election.hold()
    for name, (mode, cpu) in asked.items():
        await client.create_in(VPAS, vpa(name, mode))
        amounts = {"cpu": cpu, "memory": "32Mi"}
        sizes = {"containerName": "app", "target": amounts, "lowerBound": amounts, "upperBound": amounts}
        status = {
            "recommendation": {"containerRecommendations": [sizes]},
            "conditions": [{"type": "RecommendationProvided", "status": "True"}],
        }
        await client.patch(VPAS, name, "default", {"status": status}, content_type=MERGE_PATCH, subresource="status")
    for name in asked:
        told |= foretold(await read_facts(client, name, "default", clock)).verdicts
    before = {pod.metadata.uid: pod for pod in (await client.list(Pod, "default")).items}
    calls = 0

    def passed() -> None:
        nonlocal calls
        calls += 1
        if calls == 2:  # the first says that it has begun
            ended.set()

    updating = asyncio.create_task(Updater(client, clock=clock, settings=settings, passed=passed).run())
    await asyncio.wait_for(ended.wait(), 60)
    updating.cancel()
    with suppress(asyncio.CancelledError):
        await updating
    after, seen = {pod.metadata.uid: pod for pod in (await client.list(Pod, "default")).items}, Counter[str]()
    for uid, pod in before.items():
        deed, verdict = _deed(pod, after.get(uid)), told.get(uid)
        said = verdict.deed if verdict is not None else Deed.LEFT
        assert deed is said, f"{pod.metadata.name} {asked}, {settings.rules}: told {verdict}, happened {deed}"
        seen[deed.value] += 1
    return seen


def recommended(node: RealNode, seed: int, number: int) -> Counter[str]:
    """`recommend` of workloads, and what a recommender then says of twins that do the same."""
    pick = random.Random(seed)
    names = [f"r{place}" for place in range(number)]
    for name in names:
        size = pick.randint(12, 60) << 20
        hold = (
            f"mkfifo /tmp/f; {{ head -c {size} /dev/zero; exec sleep 9999; }} > /tmp/f & exec tail -c {size} < /tmp/f"
        )
        for twin in (name, f"{name}-free"):
            node.apply(deployment(twin, 1, {"command": ["sh", "-c", hold]}))
    node.run(node.rest())
    node.run(_twins(node.client, names))
    return Counter({"sizes that are the same": 2 * number})


async def _twins(client: Client, names: list[str]) -> None:
    clock = SystemClock()
    await clock.sleep(BEGUN)
    for name in names:
        await client.create_in(VPAS, vpa(name, "Off"))
    settings = RecommenderSettings(interval=15.0, flags=RecommenderFlags(estimator=FLAGS))
    recommender = asyncio.create_task(Recommender(client, clock=clock, settings=settings).run())
    told = recommend(await FactsReader(client, clock, "default").read(WATCHED), FLAGS)
    await clock.sleep(16)
    recommender.cancel()
    with suppress(asyncio.CancelledError):
        await recommender
    sizes = {(row.workload, size.resource): size for row in told.workloads for size in row.sizes}
    for name in names:
        found = (await client.get(VPAS, name, "default")).status.recommendation
        assert found is not None, f"{name} has no recommendation"
        (container,) = found.container_recommendations
        for resource, amount in container.target.items():
            size = sizes[f"deployment/{name}-free", resource]
            assert size.source == "usage", size
            where = f"{name} {resource}: told {size}, its twin got {amount}"
            if resource == "cpu":
                assert size.recommended == str(amount), where
            else:
                mebis = int(size.recommended.removesuffix("Mi")), -(-amount.value() // MEBI)
                assert max(mebis) <= min(mebis) * LEAST_BUCKET + 1, where


PARTS: dict[str, tuple[int, Callable[[RealNode], Counter[str]]]] = {
    "plan": (20, lambda node: plans(node, range(4000, 4020))),
    "why node": (8, lambda node: nodes(node, range(50, 58))),
    "template": (12, lambda node: changed_templates(node, 6, 2)),
    "manifest": (12, lambda node: changed_manifests(node, 6, 2)),
    "why vpa": (6, lambda node: passes(node, 5, 6)),
    "recommend": (2, lambda node: recommended(node, 3, 2)),
}
"""By verb: how many situations, and how they are played."""


@pytest.mark.timeout(700)
@pytest.mark.parametrize("verb", PARTS)
def test_what_is_told_happens_on_a_real_node(cluster_dir: Up, verb: str, figure: Callable[[str, object], None]) -> None:
    """A part of 60 random situations on a node with containerd, over all verbs that foretell: 20 plans (neighbours make
    room), 8 nodes of which `why node/` tells, 12 changes of templates and 12 of manifests, 6 workloads of which `why
    vpa/` tells, 2 of which `recommend` does. What is told is what happens.
    """
    number, play = PARTS[verb]
    with started(cluster_dir) as node:
        seen = play(node)
    figure("situations", number)
    for kind in sorted(seen):
        figure(kind, seen[kind])
    assert seen


def test_there_are_sixty_situations() -> None:
    assert sum(number for number, _ in PARTS.values()) == 60
