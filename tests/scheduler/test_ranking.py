"""Rankings answer what `decide.placement.place` answers, whatever happened to the cluster in between."""

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import ContainerImage, Node
from podfit.api.core.v1.pods.affinity import TopologySpreadConstraint
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.core.features import DEFAULT_GATES
from podfit.core.selectors import Requirement
from podfit.decide.placement.default_spread import SYSTEM_DEFAULTING, DefaultSpread, SpreadDefaulting
from podfit.decide.placement.fit_score import LEAST_ALLOCATED, FitScoring, Strategy
from podfit.decide.placement.place import Unschedulable, place
from podfit.decide.placement.score import DEFAULT_WEIGHTS
from podfit.decide.placement.soft_spread import soft_constraints
from podfit.decide.placement.view import Resident
from podfit.scheduler.cache import ClusterCache
from podfit.scheduler.ranking import Rankings
from support.placing import HOSTNAME, ZONE, affinity, spreading

SOFT = {"key": "slow", "value": "yes", "effect": "PreferNoSchedule"}
HARD = {"key": "only", "value": "us", "effect": "NoSchedule"}


def node(random: Random, name: str) -> Node:
    labels = {"disk": random.choice(["fast", "slow"])}
    labels |= {HOSTNAME: name} if random.random() < 0.9 else {}
    labels |= {ZONE: zone} if (zone := random.choice(["x", "y", "z", ""])) else {}
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
    {"topologySpreadConstraints": spreading("web", key=ZONE, whenUnsatisfiable="ScheduleAnyway")},
    {
        "topologySpreadConstraints": [
            *spreading("db", key=ZONE, whenUnsatisfiable="ScheduleAnyway", nodeTaintsPolicy="Honor"),
            *spreading("db", key=HOSTNAME, skew=2, whenUnsatisfiable="ScheduleAnyway", nodeAffinityPolicy="Ignore"),
        ]
    },
]
LISTED = SpreadDefaulting(
    (TopologySpreadConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable="ScheduleAnyway"),), of_system=False
)
WEB = (Requirement("app", "In", ("web",)),)
DB = (Requirement("app", "In", ("db",)), Requirement("tier", "DoesNotExist"))


def default_spread(random: Random, pod: Pod) -> DefaultSpread | None:
    """As if some pods had a Service or a ReplicaSet."""
    if pod.spec.topology_spread_constraints or random.random() < 0.3:
        return None
    return DefaultSpread(random.choice([SYSTEM_DEFAULTING, SYSTEM_DEFAULTING, LISTED]), random.choice([WEB, DB]))


def pod(random: Random, number: int) -> Pod:
    cpu = random.choice(["100m", "500m", "1"])
    container: dict[str, Any] = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "256Mi"}}}
    if random.random() < 0.1:
        container["ports"] = [{"containerPort": 80, "hostPort": 80}]
    meta = {"name": f"p{number}", "namespace": "default", "uid": f"u{number}"}
    labels = {"app": random.choice(["web", "web", "db", "lonely"])}
    spec = {"containers": [container], **random.choice(KINDS)}
    return convert({"metadata": {**meta, "labels": labels}, "spec": spec}, Pod)


FULL = FitScoring(Strategy.MOST_ALLOCATED, (("cpu", 2), ("ephemeral-storage", 1)))


def something_happens(random: Random, cache: ClusterCache, placed: list[tuple[Pod, str]]) -> None:
    """To a pod that was placed, or to a node."""
    event = random.random()
    if event < 0.4 and placed:
        gone, _ = placed.pop(random.randrange(len(placed)))
        cache.forget((gone.metadata.namespace, gone.metadata.name))
    elif event < 0.5 and placed:
        leaving, there = placed[random.randrange(len(placed))]
        meta = replace(leaving.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        cache.count(replace(leaving, metadata=meta), there)
    elif event < 0.53 and placed:
        index = random.randrange(len(placed))
        changed, there = placed[index]
        labels = {"app": random.choice(["web", "db"]), "about": "nothing"}
        changed = replace(changed, metadata=replace(changed.metadata, labels=labels))
        cache.count(changed, there)
        placed[index] = changed, there
    elif event < 0.56:
        cache.set_node(node(random, f"n{random.randrange(10)}"))
    elif event < 0.59:
        cache.remove_node(f"n{random.randrange(10)}")


@pytest.mark.parametrize("seed", range(12))
def test_the_same_answers_in_any_course_of_events(seed: int) -> None:
    random = Random(seed)
    cache, fit = ClusterCache(DEFAULT_GATES), FULL if seed % 3 == 0 else LEAST_ALLOCATED
    rankings = Rankings(cache, DEFAULT_WEIGHTS, fit)
    for number in range(9):
        cache.set_node(node(random, f"n{number}"))
    placed: list[tuple[Pod, str]] = []
    ranked = spread = 0
    for number in range(160):
        something_happens(random, cache, placed)
        new = pod(random, number)
        key = "default", f"p{number}"
        subject = Resident.of(new, placed=False, default_spread=default_spread(random, new))
        wanted = place(subject, cache.views(), namespaces=cache.namespaces, fit=fit)
        found = rankings.place(key, subject)
        if found is not None:
            ranked += 1
            spread += soft_constraints(subject) is not None
            assert found == wanted
        if isinstance(wanted, Unschedulable):
            if random.random() < 0.2 and len(cache):
                cache.nominate(new, cache.views()[0].name)
            continue
        cache.count(new, wanted.node)
        placed.append((new, wanted.node))
    assert ranked > 80
    assert spread > 30


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
