"""`podfit resize --canary`: some pods first, watched by events, and then the others, or back again."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from podfit.actions.canary import CanaryOptions, CanaryRun, CanaryTold, cannot_watch
from podfit.actions.resize_pods import Options, Outcome, Progress
from podfit.answers.facts.commands import HERE
from podfit.answers.facts.target import WORKLOADS, parse_target
from podfit.answers.plan.amounts import parse_amount
from podfit.answers.plan.read_plan import Wanted, read_plan
from podfit.answers.plan.resize_request import BEFORE, ResizeRequest
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.workload.canary import triggers
from podfit.testing.cluster import Cluster
from support.eventually import PATIENCE

PLAIN = "restart,oom,unready"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path, nodes=[{"cpu": "4", "memory": "8Gi"}])
    yield made
    made.close()


def deploy(cluster: Cluster, *, restart: bool = False) -> None:
    container: dict[str, Any] = {
        "name": "c",
        "image": "i",
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}},
        "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer" if restart else "NotRequired"}],
    }
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    cluster.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    cluster.clock.advance(5)


class Started:
    """A canary of one of three pods, for two minutes; `cpus` are by pod."""

    def __init__(self, cluster: Cluster, on: str = PLAIN, number: int = 1) -> None:
        self.cluster, self.lines = cluster, list[str]()
        self.told: CanaryTold | None = None
        self.future: Future[list[Outcome]] = asyncio.run_coroutine_threadsafe(
            self._run(on, number), cluster._runner._loop
        )
        cluster.clock.advance(10)

    async def _run(self, on: str, number: int) -> list[Outcome]:
        request = ResizeRequest({"cpu": parse_amount("--cpu", "200m")})
        about = parse_target("deployment/web", *WORKLOADS)
        planned = await read_plan(self.cluster.client, "default", Wanted(about=about, request=request), HERE)
        options = CanaryOptions(number=number, seconds=120, triggers=triggers(on))
        run = CanaryRun(
            self.cluster.client,
            planned,
            Options(wait=True),
            options,
            self.cluster._virtual,
            about=about,
            namespace="default",
            tell=self.lines.append,
        )
        self.told = run.told
        return [outcome async for outcome in run.outcomes(Progress())]

    def ends(self) -> tuple[list[str], CanaryTold]:
        """The states of the pods that were told of."""
        self.cluster.clock.advance(60)
        outcomes = self.future.result(30 * PATIENCE)
        assert self.told is not None
        return [outcome.state for outcome in outcomes], self.told

    def pods(self) -> list[Pod]:
        return [view.pod for view in self.cluster.pods("default")]

    def cpus(self) -> list[str]:
        return sorted(str(pod.spec.containers[0].resources.requests["cpu"]) for pod in self.pods())

    def first(self) -> str:
        assert self.told is not None
        (name,) = self.told.pods
        return name


def test_nothing_happens_and_the_others_follow(cluster: Cluster) -> None:
    deploy(cluster)
    run = Started(cluster)
    assert run.cpus() == ["100m", "100m", "200m"]
    cluster.clock.advance(90)
    assert run.cpus() == ["100m", "100m", "200m"]
    states, told = run.ends()
    assert (states, told.rolled_back, told.watched_for) == (["done"] * 3, False, 120)
    assert run.cpus() == ["200m"] * 3
    assert run.lines == ["watching 1 pod for 2m: restart, oom, unready"]


def crash(cluster: Cluster, pod: str) -> None:
    cluster.end(pod, code=3)


def run_out_of_memory(cluster: Cluster, pod: str) -> None:
    cluster.crash(pod, oom=True)


def delete(cluster: Cluster, pod: str) -> None:
    cluster.delete(pod)


@pytest.mark.parametrize(
    ("on", "happens", "seen"),
    [
        ("restart", crash, "c was restarted (exit code 3, Error)"),
        ("unready", crash, "is not ready any more"),
        ("oom", run_out_of_memory, "c ran out of memory"),
        (PLAIN, delete, "was deleted"),
    ],
)
def test_what_happens_to_it_brings_its_size_back(
    cluster: Cluster, on: str, happens: Callable[[Cluster, str], None], seen: str
) -> None:
    deploy(cluster)
    run = Started(cluster, on)
    first = run.first()
    cluster.clock.advance(20)
    happens(cluster, first)
    states, told = run.ends()
    assert states == ["done"]
    assert told.rolled_back
    assert first in told.seen
    assert seen in told.seen
    assert 20 < told.watched_for < 100
    assert run.cpus() == ["100m"] * 3
    assert not any(BEFORE in pod.metadata.annotations for pod in run.pods())
    if happens is not delete:
        assert [outcome.state for outcome in told.back] == ["done"]


@pytest.mark.parametrize("on", ["oom", "unready"])
def test_what_nobody_named_does_not_count(cluster: Cluster, on: str) -> None:
    deploy(cluster)
    run = Started(cluster, "restart" if on == "unready" else "oom")
    if on == "oom":
        crash(cluster, run.first())
    cluster.clock.advance(120)
    states, told = run.ends()
    assert (states, told.rolled_back) == (["done"] * 3, False)


def test_a_restart_that_the_resize_asks_for_is_none_of_those(cluster: Cluster) -> None:
    deploy(cluster, restart=True)
    run = Started(cluster)
    cluster.clock.advance(120)
    states, told = run.ends()
    assert (states, told.seen) == (["done"] * 3, "")
    assert [sum(status.restart_count for status in pod.status.container_statuses) for pod in run.pods()] == [1, 1, 1]


def test_throttling_that_may_not_be_read_is_refused(cluster: Cluster) -> None:
    deploy(cluster)
    about = parse_target("deployment/web", *WORKLOADS)
    request = ResizeRequest({"cpu": parse_amount("--cpu", "200m")})
    planned = cluster.run(read_plan(cluster.client, "default", Wanted(about=about, request=request), HERE))
    asks = CanaryOptions(number=1, seconds=120, triggers=triggers("throttled>10%"))
    assert not cluster.run(cannot_watch(cluster.client, planned, asks))
    elsewhere = [replace(pod, spec=replace(pod.spec, node_name="far")) for pod in planned.snapshot.pods]
    far = replace(planned, snapshot=replace(planned.snapshot, pods=tuple(elsewhere)))
    assert cluster.run(cannot_watch(cluster.client, far, asks)).startswith("throttling of node far may not be read: ")
    assert not cluster.run(
        cannot_watch(cluster.client, planned, CanaryOptions(number=1, seconds=1, triggers=triggers("oom")))
    )
