"""Several resizes planned together, on up to three simulated nodes: verdicts, order and restarts come true."""

from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from answers.shop import Shop, classes, play
from podfit.answers.plan.amounts import Amount
from podfit.answers.plan.plan import PodRequest, plan_requests
from podfit.answers.plan.resize_request import ResizeRequest
from podfit.answers.plan.result import DEFERRED, FITS, INFEASIBLE, REFUSED, UNCHANGED
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.meta.codec import convert
from podfit.client.rest import Client
from podfit.core.quantity import Quantity
from podfit.testing.cluster import Cluster

NODES = 3
COMPARED = (FITS, DEFERRED, INFEASIBLE, REFUSED, UNCHANGED)
T = TypeVar("T")


class Simulated:
    """The pytest cluster, with so many nodes."""

    def __init__(self, directory: Path, nodes: int = NODES) -> None:
        self.cluster = Cluster(directory, nodes=nodes)
        self.nodes = [node.metadata.name for node in self.cluster.nodes()]
        self.container: dict[str, Any] = {"image": "busybox:1.36"}
        self.client: Client = self.cluster.client

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.cluster.run(work)

    def settle(self, namespace: str) -> None:
        """Of every namespace."""
        self.cluster.settle()


@pytest.fixture
def shops(tmp_path: Path) -> Iterator[Callable[[int], list[str]]]:
    """Plays a situation; a cluster serves a hundred of them."""
    made: list[Simulated] = []

    def played(seed: int) -> list[str]:
        if seed % 100 == 0 or not made:
            while made:
                made.pop().cluster.close()
            made.append(Simulated(tmp_path / str(seed)))
            classes(made[0])
        return list(play(seed, made[0]))

    yield played
    for world in made:
        world.cluster.close()


def test_what_is_planned_together_happens(shops: Callable[[int], list[str]]) -> None:
    seen = [verdict for seed in range(60) for verdict in shops(seed)]
    assert {FITS, DEFERRED, REFUSED, UNCHANGED} <= set(seen)


def test_two_pods_that_trade_sizes(tmp_path: Path) -> None:
    """a goes from 3 CPUs to 1, b from 1 to 3 on a node of 4: b waits for a moment, then both are done."""
    world = Simulated(tmp_path, nodes=1)
    cluster = world.cluster
    try:
        shop = Shop(0, world)
        cluster.run(cluster.client.create(convert({"metadata": {"name": shop.namespace}}, Namespace)))
        cluster.settle()
        for name, cpu in (("a", "3"), ("b", "1")):
            resources = {"requests": {"cpu": cpu}}
            spec = {
                "containers": [{"name": "c", "image": "busybox:1.36", "resources": resources}],
                "nodeName": world.nodes[0],
                "automountServiceAccountToken": False,
            }
            cluster.apply(
                {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}, namespace=shop.namespace
            )
            shop.names.append(name)
        snapshot = shop.look()
        a, b = snapshot.pods
        requests = {
            "b": ResizeRequest({"cpu": Amount(Quantity.of(3))}),
            "a": ResizeRequest({"cpu": Amount(Quantity.of(1))}),
        }
        promised = plan_requests(snapshot, [PodRequest(b, requests["b"]), PodRequest(a, requests["a"])])
        assert [(pod.pod, pod.verdict, pod.text) for pod in promised.pods] == [("a", FITS, ""), ("b", FITS, "")]
        for name, request in requests.items():  # at once, and the other way round
            assert shop.deed(name, request) == ""
        cluster.settle()
        assert shop.granted() == ["a", "b"]
    finally:
        cluster.close()


@pytest.mark.campaign
@pytest.mark.timeout(3000)
def test_what_is_planned_together_happens_a_thousand_times(
    shops: Callable[[int], list[str]], figure: Callable[[str, object], None]
) -> None:
    """1,000 random situations with up to 12 pods on up to 3 simulated nodes: several resizes in a planned order, with
    growth and shrink mixed, then departures given to both sides. Verdicts, texts, order and restarts of the plan equal
    what the nodes then do.
    """
    seen = [verdict for seed in range(1000, 2000) for verdict in shops(seed)]
    for verdict in COMPARED:
        figure(verdict, seen.count(verdict))
