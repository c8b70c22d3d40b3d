"""Who is evicted first, and what is said of it."""

from typing import Any

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.node.eviction import Eviction, Load, eviction, ranked, shortages
from podfit.decide.node.pressure import Observation, parse

MI = 1 << 20


def load(name: str, used: int, *, request: str = "", priority: int = 0, **spec: Any) -> Load:
    resources = {"resources": {"requests": {"memory": request}}} if request else {}
    spec = {"containers": [{"name": "c", **resources}], "priority": priority, **spec}
    return Load(convert({"metadata": {"name": name, "namespace": "d"}, "spec": spec}, Pod), {"c": used * MI})


@pytest.mark.parametrize(
    ("loads", "order"),
    [
        ([load("within", 90, request="100Mi"), load("over", 20, request="10Mi")], ["over", "within"]),
        ([load("a-lot", 500, priority=10), load("a-bit", 5)], ["a-bit", "a-lot"]),
        ([load("more", 50, request="10Mi"), load("most", 90, request="10Mi")], ["most", "more"]),
        ([load("near", 90, request="100Mi"), load("far", 10, request="100Mi")], ["near", "far"]),
        ([load("system", 900, priority=2_000_000_000), load("mine", 1)], ["mine"]),
        ([], []),
    ],
)
def test_memory(loads: list[Load], order: list[str]) -> None:
    assert [each.pod.metadata.name for each in ranked(loads, "memory")] == order


def test_process_numbers_go_by_priority() -> None:
    loads = [load("high", 1, priority=5), load("low", 9, priority=1)]
    assert [each.pod.metadata.name for each in ranked(loads, "pids")] == ["low", "high"]


def test_the_message_names_who_uses_more_than_they_asked_for() -> None:
    short = shortages(parse("memory.available<100Mi"), {"memory.available": Observation(50 * MI, 8 << 30)})
    found = eviction(short, [load("web", 20, request="10Mi")])
    assert isinstance(found, Eviction)
    assert found.message == (
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
        "Container c was using 20Mi, request is 10Mi, has larger consumption of memory. "
    )


def test_shortages_that_nobody_is_evicted_for() -> None:
    seen = {"nodefs.available": Observation(1, 1000), "memory.available": Observation(8 << 30, 8 << 30)}
    assert shortages(parse("nodefs.available<10%,memory.available<100Mi"), seen) == ()
    assert eviction((), [load("web", 1)]) is None
