"""What a node scores for its resources, by each of upstream's strategies."""

from typing import Any

import pytest
from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.placement.fit_score import FitScoring, Strategy, fit_score
from podfit.decide.placement.view import NodeInfo, Resident

GPU = "example.com/gpu"
LEAST, MOST, RATIO = Strategy.LEAST_ALLOCATED, Strategy.MOST_ALLOCATED, Strategy.REQUESTED_TO_CAPACITY_RATIO
FULLER_IS_BETTER = ((0, 0), (100, 10))


def pod(**requests: str) -> Resident:
    named = {{"gpu": GPU, "storage": "ephemeral-storage"}.get(name, name): amount for name, amount in requests.items()}
    spec = {"containers": [{"name": "c", "resources": {"requests": named}}]}
    return Resident.of(convert({"metadata": {"name": "p", "namespace": "default"}, "spec": spec}, Pod))


def node(*residents: Resident, **others: str) -> NodeInfo:
    """Of 4 CPUs and 8 GiB; `others` by resource."""
    room = {"cpu": "4", "memory": "8Gi", "pods": "110", **others}
    return NodeInfo.of(convert({"metadata": {"name": "n"}, "status": {"allocatable": room}}, Node), residents)


RICH = {"ephemeral-storage": "100Gi", GPU: "4"}


@pytest.mark.parametrize(
    ("strategy", "resources", "subject", "view", "expected"),
    [
        # cpu 25 %, memory 50 %
        (LEAST, {"cpu": 1, "memory": 1}, pod(cpu="1", memory="4Gi"), node(), 62),
        (LEAST, {"cpu": 3, "memory": 1}, pod(cpu="1", memory="4Gi"), node(), 68),
        (MOST, {"cpu": 1, "memory": 1}, pod(cpu="1", memory="4Gi"), node(), 37),
        (MOST, {"cpu": 3, "memory": 1}, pod(cpu="1", memory="4Gi"), node(), 31),
        (RATIO, {"cpu": 1, "memory": 1}, pod(cpu="1", memory="4Gi"), node(), 38),  # 37.5, rounded
        # a container without requests counts as 100m and 200Mi
        (MOST, {"cpu": 1}, pod(), node(pod(), pod()), 7),
        (MOST, {"memory": 1}, pod(), node(pod(), pod()), 7),
        # more is taken than there is, by such containers: full
        (LEAST, {"cpu": 1}, pod(), node(*[pod()] * 40), 0),
        (MOST, {"cpu": 1}, pod(), node(*[pod()] * 40), 100),
        (RATIO, {"cpu": 1}, pod(), node(*[pod()] * 40), 100),
        # storage counts also for pods that ask for none; a special resource only for those that ask
        (LEAST, {"ephemeral-storage": 1}, pod(), node(pod(storage="30Gi"), **RICH), 70),
        (LEAST, {"ephemeral-storage": 1}, pod(storage="10Gi"), node(pod(storage="30Gi"), **RICH), 60),
        (LEAST, {GPU: 1}, pod(), node(pod(gpu="2"), **RICH), 0),
        (LEAST, {GPU: 1}, pod(gpu="1"), node(pod(gpu="2"), **RICH), 25),
        (MOST, {GPU: 3, "cpu": 1}, pod(gpu="1", cpu="1"), node(pod(gpu="2", cpu="1"), **RICH), 68),
        (MOST, {GPU: 3, "cpu": 1}, pod(cpu="1"), node(pod(gpu="2", cpu="1"), **RICH), 50),
        (RATIO, {GPU: 3, "cpu": 1}, pod(gpu="1", cpu="1"), node(pod(gpu="2", cpu="1"), **RICH), 69),
        # what the node has none of is left out
        (LEAST, {GPU: 9, "cpu": 1}, pod(gpu="1", cpu="1"), node(), 75),
        (LEAST, {GPU: 9}, pod(gpu="1"), node(), 0),
        (LEAST, {"hugepages-2Mi": 1}, pod(**{"hugepages-2Mi": "2Mi"}), node(**{"hugepages-2Mi": "8Mi"}), 75),
    ],
)
def test_strategies(
    strategy: Strategy, resources: dict[str, int], subject: Resident, view: NodeInfo, expected: int
) -> None:
    scoring = FitScoring(strategy, tuple(resources.items()), FULLER_IS_BETTER if strategy is RATIO else ())
    assert fit_score(subject, view, scoring) == expected


@pytest.mark.parametrize(
    ("shape", "by_cpu"),
    [
        (((0, 0), (100, 10)), {"0": 0, "1": 25, "2": 50, "4": 100}),
        (((0, 10), (100, 0)), {"0": 100, "1": 75, "2": 50, "4": 0}),
        (((50, 2),), {"0": 20, "2": 20, "4": 20}),
        (((25, 0), (75, 10)), {"0": 0, "1": 0, "2": 50, "3": 100, "4": 100}),
        (((0, 0), (50, 10), (100, 5)), {"1": 50, "2": 100, "3": 75, "4": 50}),
        # 82 % of a line that falls by 10 on 3: cut off towards 0, so -6 rather than -7
        (((80, 1), (83, 0)), {"3280m": 4}),
    ],
)
def test_points_between_which_the_line_is_straight(shape: tuple[tuple[int, int], ...], by_cpu: dict[str, int]) -> None:
    scoring = FitScoring(RATIO, (("cpu", 1),), shape)
    found = {cpu: fit_score(pod(cpu=cpu), node(), scoring) for cpu in by_cpu}
    assert found == by_cpu


def test_a_resource_that_scores_nothing_has_no_weight_in_a_ratio() -> None:
    """Upstream's quirk: the mean is over the others."""
    scoring = FitScoring(RATIO, (("cpu", 1), ("memory", 3)), ((0, 0), (50, 0), (100, 10)))
    assert fit_score(pod(cpu="3", memory="1Gi"), node(), scoring) == 50


def test_the_default_is_least_allocated_of_cpu_and_memory() -> None:
    subject: Any = pod(cpu="1", memory="4Gi")
    assert fit_score(subject, node()) == fit_score(subject, node(), replace(FitScoring(), strategy=LEAST)) == 62
