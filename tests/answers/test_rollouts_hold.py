"""What a plan says of a template (no rollout, from which pod on, refused) is what the controllers then do, on random
workloads of a cluster.
"""

import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podfit.actions.change_template import retemplate
from podfit.actions.resize_pods import Options
from podfit.answers.facts.target import WORKLOADS, parse_target
from podfit.answers.plan.amounts import parse_amount
from podfit.answers.plan.resize_request import ResizeRequest
from podfit.answers.plan.template import REFUSED, ROLLS_OUT, STORED, UNCHANGED, read_workload, template_plan
from podfit.api.core.v1.pods.types import Pod
from podfit.testing.cluster import Cluster

AMOUNTS = ("50m", "60m", "70m")
KINDS = ("Deployment", "Deployment", "Deployment", "StatefulSet", "StatefulSet", "DaemonSet", "ReplicaSet")


def workload(name: str, pick: random.Random) -> dict[str, Any]:
    kind = pick.choice(KINDS)
    labels = {"app": name}
    container = {"name": "app", "image": "i", "resources": {"requests": {"cpu": AMOUNTS[0]}}}
    spec: dict[str, Any] = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    if kind != "DaemonSet":
        spec["replicas"] = pick.randint(0, 3)
    if kind == "StatefulSet":
        spec["serviceName"] = name
        spec["podManagementPolicy"] = pick.choice(("OrderedReady", "Parallel"))
        if pick.random() < 0.5:
            spec["ordinals"] = {"start": pick.randint(0, 3)}
        partition = {"type": "RollingUpdate", "rollingUpdate": {"partition": pick.randint(0, 4)}}
        spec["updateStrategy"] = pick.choice(({"type": "OnDelete"}, {"type": "RollingUpdate"}, partition, partition))
    if kind == "DaemonSet":
        spec["updateStrategy"] = {"type": pick.choice(("OnDelete", "RollingUpdate"))}
    if kind == "Deployment":
        spec["strategy"] = {"type": pick.choice(("Recreate", "RollingUpdate"))}
        spec["paused"] = pick.random() < 0.15
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


class Rollouts:
    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster, self.seed, self.pick = cluster, seed, random.Random(seed)

    def play(self, number: int, *, rounds: int = 3) -> Counter[str]:
        seen = Counter[str]()
        made = [workload(f"w{place}", self.pick) for place in range(number)]
        self.cluster.apply(*made)
        self.cluster.clock.advance(minutes=3)
        for _ in range(rounds):
            for document in made:
                seen[self.changed(document)] += 1
        return seen

    def changed(self, document: dict[str, Any]) -> str:
        """Change the template of one workload, as planned: the verdict. AssertionError where otherwise happened."""
        name, kind = document["metadata"]["name"], document["kind"]
        request = ResizeRequest({"cpu": parse_amount("--cpu", self.pick.choice(AMOUNTS))})
        target, client = parse_target(f"{kind.lower()}/{name}", *WORKLOADS), self.cluster.client
        found = self.cluster.run(read_workload(client, target, "default"))
        plan = template_plan(found, request)
        before = self.pods(name)
        done = self.cluster.run(retemplate(client, found, request, plan, "default", Options(disrupt=True)))
        self.cluster.clock.advance(minutes=4)
        after = self.pods(name)
        where = f"seed {self.seed}, {kind} {name} {document['spec']}: {plan.verdict} {plan.text}, then {done}"
        if plan.verdict in (REFUSED, UNCHANGED):
            assert done.state == plan.verdict, where
        else:
            assert done.state == "done", where
        replaced = {pod for pod, uid in before.items() if after.get(pod) != uid}
        assert replaced == self.told(plan.verdict, plan.text, set(before)), f"{where}: replaced {replaced}"
        return f"{kind} {plan.verdict}"

    def told(self, verdict: str, text: str, pods: set[str]) -> set[str]:
        """Which pods are to be replaced."""
        if verdict != ROLLS_OUT:
            return set()
        begin = re.search(r"from ordinal (\d+) on", text)
        return {pod for pod in pods if begin is None or int(pod.rpartition("-")[2]) >= int(begin[1])}

    def pods(self, name: str) -> dict[str, str]:
        pods = self.cluster.run(self.cluster.client.list(Pod, "default", labels=f"app={name}")).items
        return {pod.metadata.name: pod.metadata.uid for pod in pods if pod.metadata.deletion_timestamp is None}


def played(directory: Path, seed: int, number: int) -> Counter[str]:
    cluster = Cluster(directory, seed=seed)
    try:
        return Rollouts(cluster, seed).play(number)
    finally:
        cluster.close()


def test_what_is_told_of_a_template_is_what_controllers_do(tmp_path: Path) -> None:
    seen = played(tmp_path, 7, 7)
    assert {f"Deployment {STORED}", f"StatefulSet {STORED}"} <= seen.keys(), seen


@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_what_is_told_of_a_template_holds_six_hundred_times(
    tmp_path: Path, figure: Callable[[str, object], None]
) -> None:
    """600 changes of the templates of 200 random Deployments, StatefulSets, DaemonSets and ReplicaSets: whether there
    is a rollout, and which pods it replaces, is what was told; each change follows on those before.
    """
    seen = Counter[str]()
    for seed in range(10):
        seen += played(tmp_path / str(seed), 100 + seed, 20)
    assert {f"Deployment {ROLLS_OUT}", f"StatefulSet {STORED}", f"DaemonSet {STORED}"} <= seen.keys(), seen
    for kind in sorted(seen):
        figure(kind, seen[kind])
