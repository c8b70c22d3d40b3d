"""What `why node/NAME` says that the scheduler counts is what the scheduler then acts on: a pod that asks for just the
rest of the node is placed there, one that asks for a little more is not; and what the node has promised is what it lets
pods grow to.
"""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podfit.answers.facts.snapshot import Reader
from podfit.answers.facts.target import NODE, Target
from podfit.answers.why.node import NodeWhy, why_node
from podfit.api.core.v1.pods.types import Pod
from podfit.core.errors import ApiError
from podfit.core.quantity import ZERO, Quantity
from podfit.core.times import parse_time
from podfit.testing.cluster import Cluster

NAME = "simulated-1"
NOW = parse_time("2026-01-01T00:00:00Z")


def pod(name: str, cpu: str, memory: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "memory": memory}}
    container = {"name": "app", "image": "i", "resources": resources}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


class Crowd:
    """Pods of one node, some of which ask for another size, that the node may grant, put off or refuse."""

    def __init__(self, cluster: Cluster, seed: int, node: str = NAME) -> None:
        self.cluster, self.seed, self.pick, self.node = cluster, seed, random.Random(seed), node

    def settled(self) -> None:
        names = [f"p{number}" for number in range(self.pick.randint(2, 6))]
        for name in names:
            self.cluster.apply(pod(name, f"{self.pick.randint(1, 12)}00m", f"{self.pick.randint(1, 12)}00Mi"))
        self.cluster.clock.advance(20)
        for name in names:
            if self.pick.random() < 0.6:
                amounts = {"cpu": f"{self.pick.randint(1, 50)}00m", "memory": f"{self.pick.randint(1, 60)}00Mi"}
                try:
                    self.cluster.resize(name, app={"requests": amounts})
                except ApiError:
                    continue
        self.cluster.clock.advance(20)

    def told(self) -> NodeWhy:
        snapshot = self.cluster.run(Reader(self.cluster.client, "default").read(Target(NODE, self.node)))
        return why_node(self.node, snapshot, NOW)

    def play(self) -> Counter[str]:
        self.settled()
        told = self.told()
        where = f"seed {self.seed}: {told.allocatable}, counted {told.counted}, promised {told.promised}"
        seen = Counter({"waiting": len(told.waiting)})
        for resource, little in (("cpu", Quantity.of_milli(1)), ("memory", Quantity.of_bytes(1 << 20))):
            rest = amount(told.allocatable, resource).nano - amount(told.counted, resource).nano
            if rest > little.nano:
                for more, placed in ((little.nano, False), (0, True)):
                    asked = str(Quantity(rest + more, little.format))
                    assert self.is_placed(resource, asked) is placed, f"{where}, {resource} {asked}"
                    seen["placed" if placed else "kept off"] += 1
        allocated = self.allocated()
        for resource, total in allocated.items():
            assert amount(told.promised, resource) == total, f"{where}, allocated {allocated}"
        return seen

    def is_placed(self, resource: str, asked: str) -> bool:
        """Of a pod that goes again at once."""
        amounts = {"cpu": "0", "memory": "0"} | {resource: asked}
        self.cluster.apply(pod("probe", **amounts))
        self.cluster.clock.advance(5)
        placed = bool(self.cluster.run(self.cluster.client.get(Pod, "probe", "default")).spec.node_name)
        self.cluster.run(self.cluster.client.delete(Pod, "probe", "default", grace=0))
        self.cluster.clock.advance(5)
        return placed

    def allocated(self) -> dict[str, Quantity]:
        """What the node itself reports of each container."""
        pods = self.cluster.run(self.cluster.client.list(Pod, "default")).items
        held = [status.allocated_resources for item in pods for status in item.status.container_statuses]
        return {name: Quantity(sum(amounts.get(name, ZERO).nano for amounts in held)) for name in ("cpu", "memory")}


def amount(listed: dict[str, str], resource: str) -> Quantity:
    return Quantity.parse(listed.get(resource, "0"))


def played(directory: Path, seed: int) -> Counter[str]:
    cluster = Cluster(directory, seed=seed, nodes=[{"cpu": "4", "memory": "4Gi"}])
    try:
        return Crowd(cluster, seed).play()
    finally:
        cluster.close()


def test_the_scheduler_places_what_is_told_to_fit(tmp_path: Path) -> None:
    seen = sum((played(tmp_path / str(seed), seed) for seed in range(2)), Counter[str]())
    assert seen["placed"], seen
    assert seen["kept off"], seen


@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_the_scheduler_places_what_is_told_to_fit_two_hundred_times(
    tmp_path: Path, figure: Callable[[str, object], None]
) -> None:
    """200 nodes with random pods, some of whose resizes wait or are refused: what `why node/NAME` says is counted is
    what the scheduler leaves no new pod, to the millicore and the mebibyte; what is promised is what the node reports.
    """
    seen = sum((played(tmp_path / str(seed), 1000 + seed) for seed in range(200)), Counter[str]())
    for kind in sorted(seen):
        figure(kind, seen[kind])
    assert all(seen[kind] for kind in ("waiting", "placed", "kept off")), seen
