"""Rankings answer what `decide.placement.place` answers, whatever happened to the cluster in between."""

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import ContainerImage, Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.core.features import DEFAULT_GATES
from podfit.decide.placement.place import Unschedulable, place
from podfit.decide.placement.score import DEFAULT_WEIGHTS, MOST_ALLOCATED
from podfit.decide.placement.view import Resident
from podfit.scheduler.cache import ClusterCache
from podfit.scheduler.ranking import Rankings
from support.placing import affinity

SOFT = {"key": "slow", "value": "yes", "effect": "PreferNoSchedule"}
HARD = {"key": "only", "value": "us", "effect": "NoSchedule"}


def node(random: Random, name: str) -> Node:
    labels = {"kubernetes.io/hostname": name, "disk": random.choice(["fast", "slow"])}
    images = [ContainerImage(names=("i:latest",), size_bytes=random.choice([100 << 20, 600 << 20]))]
    document = {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": random.choice([[], [], [SOFT], [HARD]]), "unschedulable": random.random() < 0.1},
        "status": {"allocatable": {"cpu": random.choice(["2", "4"]), "memory": "8Gi", "pods": "6"}},
    }
    made = convert(document, Node)
    return replace(made, status=replace(made.status, images=tuple(images) if random.random() < 0.4 else ()))


PREFERS = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 7, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["fast"]}]}}
        ]
    }
}
KINDS: list[dict[str, Any]] = [
    {},
    {"nodeSelector": {"disk": "fast"}},
    {"tolerations": [{"key": "only", "operator": "Exists"}]},
    {"affinity": PREFERS},
    {"priority": 10},
    {"affinity": affinity("podAntiAffinity", "lonely")},
]


def pod(random: Random, number: int) -> Pod:
    cpu = random.choice(["100m", "500m", "1"])
    container: dict[str, Any] = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "256Mi"}}}
    if random.random() < 0.1:
        container["ports"] = [{"containerPort": 80, "hostPort": 80}]
    meta = {"name": f"p{number}", "namespace": "default", "uid": f"u{number}"}
    labels = {"app": random.choice(["web", "web", "lonely"])}
    spec = {"containers": [container], **random.choice(KINDS)}
    return convert({"metadata": {**meta, "labels": labels}, "spec": spec}, Pod)


FULL = {**DEFAULT_WEIGHTS, "NodeResourcesFit": 0, MOST_ALLOCATED: 1}


@pytest.mark.parametrize("seed", range(12))
def test_the_same_answers_in_any_course_of_events(seed: int) -> None:
    random = Random(seed)
    cache, weights = ClusterCache(DEFAULT_GATES), FULL if seed % 3 == 0 else DEFAULT_WEIGHTS
    rankings = Rankings(cache, weights)
    for number in range(9):
        cache.set_node(node(random, f"n{number}"))
    placed: list[tuple[str, str]] = []
    ranked = 0
    for number in range(160):
        event = random.random()
        if event < 0.15 and placed:
            cache.forget(placed.pop(random.randrange(len(placed))))
        elif event < 0.2:
            cache.set_node(node(random, f"n{random.randrange(10)}"))
        elif event < 0.23:
            cache.remove_node(f"n{random.randrange(10)}")
        new = pod(random, number)
        key, subject = ("default", f"p{number}"), Resident.of(new, placed=False)
        wanted = place(subject, cache.views(), namespaces=cache.namespaces, weights=weights)
        found = rankings.place(key, subject)
        if found is not None:
            ranked += 1
            assert found == wanted
        if isinstance(wanted, Unschedulable):
            if random.random() < 0.2 and len(cache):
                cache.nominate(new, cache.views()[0].name)
            continue
        cache.count(new, wanted.node)
        placed.append(key)
    assert ranked > 80


def test_what_is_not_ranked() -> None:
    cache = ClusterCache(DEFAULT_GATES)
    rankings = Rankings(cache, DEFAULT_WEIGHTS)
    random = Random(1)
    assert rankings.place(("default", "p"), Resident.of(pod(random, 1))) is None
    cache.set_node(node(random, "n"))
    choosy = convert(
        {
            "metadata": {"name": "c", "namespace": "default", "labels": {"app": "x"}},
            "spec": {"containers": [{"name": "c"}], "affinity": affinity("podAntiAffinity", "web")},
        },
        Pod,
    )
    assert rankings.place(("default", "c"), Resident.of(choosy)) is None
    cache.count(choosy, "n")
    for app, ranked in (("web", False), ("db", True)):
        meta = {"name": "p", "namespace": "default", "labels": {"app": app}}
        other = convert({"metadata": meta, "spec": {"containers": [{"name": "c"}]}}, Pod)
        assert (rankings.place(("default", "p"), Resident.of(other)) is not None) == ranked
