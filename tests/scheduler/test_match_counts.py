"""How many pods of a selector are on each node is the same when kept up as when counted through."""

from random import Random

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.core.selectors import Requirement
from podfit.decide.placement.spread import counts_for
from podfit.scheduler.match_counts import MOST_SELECTORS, MatchCounts
from support.placing import a_pod

WEB, FRONT = Requirement("app", "In", ("web",)), Requirement("tier", "In", ("front",))
SELECTORS = [
    (WEB,),
    (FRONT, WEB),
    (Requirement("app", "In", ("web", "db")),),
    (Requirement("tier", "DoesNotExist"),),
    (WEB, Requirement("tier", "NotIn", ("back",))),
]


def some_pod(random: Random, number: int) -> Pod:
    labels = {"app": random.choice(["web", "db", "x"])} | (
        {"tier": tier} if (tier := random.choice(["", "front"])) else {}
    )
    meta = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if random.random() < 0.1 else {}
    return a_pod(f"p{number}", namespace=random.choice(["n", "m"]), labels=labels, meta=meta).pod


@pytest.mark.parametrize("seed", range(5))
def test_kept_up_as_counted_through(seed: int) -> None:
    random = Random(seed)
    placed: list[tuple[Pod, str]] = []
    counts = MatchCounts(lambda: placed)
    for number in range(120):
        if placed and random.random() < 0.4:
            counts.remove(*placed.pop(random.randrange(len(placed))))
        else:
            placed.append((some_pod(random, number), random.choice("abc")))
            counts.add(*placed[-1])
        namespace, selector = random.choice(["n", "m"]), random.choice(SELECTORS)
        nodes = [node for pod, node in placed if counts_for(pod, namespace, selector)]
        assert counts.of(namespace, selector) == {node: nodes.count(node) for node in nodes}


def test_the_same_mapping_until_it_is_forgotten() -> None:
    counts = MatchCounts(lambda: ())
    first = counts.of("n", (WEB,))
    for number in range(MOST_SELECTORS - 1):
        counts.of("n", (Requirement("app", "In", (f"a{number}",)),))
    assert counts.of("n", (WEB,)) is first
    counts.add(a_pod(namespace="n", labels={"app": "web"}).pod, "a")
    assert first == {"a": 1}
    for number in range(MOST_SELECTORS):
        counts.of("m", (Requirement("app", "In", (f"a{number}",)),))
    assert counts.of("n", (WEB,)) is not first


def test_no_selector_and_an_empty_one_count_nobody() -> None:
    counts = MatchCounts(lambda: [(a_pod(namespace="n").pod, "a")])
    assert counts.of("n", None) == counts.of("n", ()) == {}


def test_a_selector_of_which_nobody_has_the_label_is_not_counted_through() -> None:
    def placed() -> list[tuple[Pod, str]]:
        raise AssertionError("all pods of the cluster are looked at")

    counts = MatchCounts(placed)
    for labels in ({"app": "db"}, {"tier": "front"}):
        counts.add(a_pod(namespace="n", labels=labels).pod, "a")
    counts.add(a_pod(namespace="m", labels={"app": "web"}).pod, "a")
    gone = a_pod("gone", namespace="n", labels={"app": "web"}).pod
    counts.add(gone, "b")
    counts.remove(gone, "b")
    assert counts.of("n", (WEB,)) == {}


@pytest.mark.parametrize(("labels", "same"), [({"app": "web"}, True), ({"app": "web", "zone": "x"}, False)])
def test_pods_count_alike_that_have_the_same_labels(labels: dict[str, str], same: bool) -> None:
    counts = MatchCounts(lambda: ())
    assert counts.same(a_pod(labels={"app": "web"}).pod, a_pod(labels=labels).pod) is same
