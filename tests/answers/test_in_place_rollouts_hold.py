"""What a plan tells of a manifest, pod by pod (resized, restarted, replaced, left), is what its rollout then does, on
random workloads that are rolled out in place, under podfit's controllers and under such that act as upstream's.
"""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from podfit.answers.plan import rollout
from podfit.answers.plan.rollout import RolloutPlan, plan_rollouts
from podfit.api.core.v1.pods.types import Pod
from podfit.client.rest import APPLY_PATCH
from podfit.core.clock import Clock
from podfit.testing.cluster import Cluster
from support.clock import FakeClock

KINDS = ("Deployment", "StatefulSet", "DaemonSet")
CPUS, MEMORIES = ("50m", "100m", "150m", "700m", "1500m"), ("32Mi", "64Mi", "96Mi")
RANGE = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "sizes"},
    "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "80m"}, "max": {"memory": "80Mi"}}]},
}


def workload(name: str, pick: random.Random) -> dict[str, Any]:
    kind, labels = pick.choice(KINDS), {"app": name}
    container: dict[str, Any] = {"name": "app", "image": "i", "resources": sizes(pick)}
    if pick.random() < 0.3:
        container["resizePolicy"] = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    pod = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    spec: dict[str, Any] = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    if kind != "DaemonSet":
        spec["replicas"] = pick.randint(1, 4)
    if kind == "StatefulSet":
        spec |= {"serviceName": name, "podManagementPolicy": "Parallel"}
        partition = {"type": "RollingUpdate", "rollingUpdate": {"partition": pick.randint(0, 2)}}
        spec["updateStrategy"] = pick.choice(({"type": "OnDelete"}, partition, partition, partition))
    if kind == "Deployment" and pick.random() < 0.3:
        spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    notes = {"podfit.dev/rollout": "in-place", "podfit.dev/rollout-deadline": "30s"} if pick.random() < 0.9 else {}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "annotations": notes}, "spec": spec}


def sizes(pick: random.Random) -> dict[str, Any]:
    requests = {"memory": pick.choice(MEMORIES[:2])}
    if pick.random() < 0.8:
        requests["cpu"] = pick.choice(CPUS)
    return {"requests": requests}


class Rollouts:
    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster, self.seed, self.pick, self.seen = cluster, seed, random.Random(seed), Counter[str]()

    def play(self, number: int, rounds: int) -> Counter[str]:
        self.cluster.apply(RANGE, namespace="default")
        self.cluster.clock.advance(1)
        made = [self.complete(workload(f"w{self.seed}-{place}", self.pick)) for place in range(number)]
        for document in made:
            self.apply(document)
        self.cluster.clock.advance(30)
        for _ in range(rounds):
            for document in made:
                self.changed(document)
        for document in made:
            self.cluster.delete(
                document["metadata"]["name"], kind=document["kind"], api_version="apps/v1", namespace="default"
            )
        self.cluster.clock.advance(60)
        return self.seen

    def complete(self, document: dict[str, Any]) -> dict[str, Any]:
        """As the node needs it."""
        return document

    def other_image(self) -> str:
        return f"i{self.pick.randint(1, 9)}"

    def now(self) -> Clock:
        """Of the cluster."""
        clock = FakeClock()
        clock.jump((self.cluster.run(_now(self.cluster)) - clock.now()).total_seconds())
        return clock

    def apply(self, document: dict[str, Any]) -> None:
        path = f"/apis/apps/v1/namespaces/default/{document['kind'].lower()}s/{document['metadata']['name']}"
        query = {"fieldManager": "test", "force": "true"}
        body = json.dumps(document).encode()
        self.cluster.run(self.cluster.client.request("PATCH", path, body, query=query, content_type=APPLY_PATCH))

    def changed(self, document: dict[str, Any]) -> None:
        (container,) = document["spec"]["template"]["spec"]["containers"]
        requests = container["resources"]["requests"]
        if self.pick.random() < 0.1:
            container["image"] = self.other_image()
        elif self.pick.random() < 0.5 and "cpu" in requests:
            requests["cpu"] = self.pick.choice(CPUS)
        else:
            requests["memory"] = self.pick.choice(MEMORIES)
        told = self.cluster.run(plan_rollouts(self.cluster.client, [document], "default", self.now()))
        before = self.pods(document)
        self.apply(document)
        self.cluster.clock.advance(150)
        after = self.pods(document)
        for plan in told:
            where = f"seed {self.seed}, {document}: {plan}"
            self.seen[plan.how] += 1
            self.held(plan, before, after, where)
        if not told and not stops(before) and "updateStrategy" not in document["spec"]:  # that would end a hold
            assert {pod.metadata.uid for pod in before.values()} == {pod.metadata.uid for pod in after.values()}

    def held(self, plan: RolloutPlan, before: dict[str, Pod], after: dict[str, Pod], where: str) -> None:
        now = {pod.metadata.uid: pod for pod in after.values()}
        if plan.how == rollout.UNKNOWN:
            assert "would not make a new pod" in plan.text, where
            return
        assert {pod.pod for pod in plan.pods} == before.keys(), where
        if plan.text in (rollout.UNDER_WAY, rollout.ENDS_HOLD):
            return
        for told in plan.pods:
            pod, self.seen[told.fate] = before[told.pod], self.seen[told.fate] + 1
            there = now.get(pod.metadata.uid)
            if told.fate == rollout.WAITS or (told.fate == rollout.REPLACED and there is not None and stops(after)):
                continue
            assert (there is None) == (told.fate == rollout.REPLACED), (told, where)
            if there is not None:
                began = starts(there) - starts(pod)
                assert (began > 0) == (told.fate == rollout.RESTARTED), (told, where)
                assert told.fate != rollout.LEFT or there.spec == pod.spec, (told, where)

    def pods(self, document: dict[str, Any]) -> dict[str, Pod]:
        views = self.cluster.pods("default")
        mine = [view.pod for view in views if view.pod.metadata.labels["app"] == document["metadata"]["name"]]
        return {pod.metadata.name: pod for pod in mine if not pod.metadata.deletion_timestamp}


async def _now(cluster: Cluster) -> Any:
    return cluster._virtual.now()


def stops(pods: dict[str, Pod]) -> bool:
    """Whether a rollout has found no room for a new pod, and goes no further."""
    return any(not pod.spec.node_name for pod in pods.values())


def starts(pod: Pod) -> int:
    return sum(status.restart_count for status in pod.status.container_statuses)


@pytest.fixture(scope="module", params=[("*",), ("*", "in-place-rollout")], ids=["podfit", "as-upstream"])
def cluster(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    nodes = [{"cpu": "4", "memory": "8Gi"}, {"cpu": "2", "memory": "8Gi"}]
    made = Cluster(Path(tmp_path_factory.mktemp("told")), nodes=nodes, controllers=request.param)
    yield made
    made.close()


def test_what_is_told_of_a_rollout_is_what_happens(cluster: Cluster) -> None:
    seen = Rollouts(cluster, 31).play(6, 2)
    assert seen["in place"] > 3
    assert seen["resized"] > 3


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_what_is_told_of_a_rollout_is_what_happens_many_times(
    cluster: Cluster, figure: Callable[[str, object], None]
) -> None:
    """10 seeds of 6 random Deployments, StatefulSets and DaemonSets with podfit.dev/rollout, four changes of the
    manifest of each: which pods are resized, restarted, replaced or left is what `podfit plan -f` told."""
    seen = Counter[str]()
    for seed in range(100, 110):
        seen += Rollouts(cluster, seed).play(6, 4)
    for name, count in sorted(seen.items()):
        figure(name, count)
