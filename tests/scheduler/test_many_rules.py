"""Pods with thousands of rules about nodes and others: placed as any other, and nobody waits for them."""

from typing import Any

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.client.informers import Informers
from podfit.core.features import DEFAULT_GATES
from podfit.decide.placement import rules
from podfit.decide.placement.place import Placed, Unschedulable
from podfit.decide.placement.requeue import PodCame, Waiting, worth_retrying
from podfit.decide.placement.rules import MANY, rules_of
from podfit.decide.placement.view import Refusal, Resident
from podfit.scheduler import scheduler as scheduler_module
from podfit.scheduler.scheduler import NAME, Profile, Scheduler
from support.clock import FakeClock
from support.placing import HOSTNAME, a_node, a_pod
from support.scheduling import World
from support.turns import turns

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TERMS = 200


def apart(app: str, number: int) -> dict[str, Any]:
    """Not beside pods of the application, said so often."""
    terms = [
        {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOSTNAME if index == 0 else f"k{index}"}
        for index in range(number)
    ]
    return {"podAntiAffinity": {REQUIRED: terms}}


@pytest.mark.parametrize(
    ("spec", "number"),
    [
        ({}, 0),
        ({"affinity": apart("x", 3)}, 6),
        (
            {
                "affinity": {
                    "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a"}] * 4}]}}
                }
            },
            5,
        ),
        ({"topologySpreadConstraints": [{"labelSelector": {"matchExpressions": [{"key": "a"}] * 7}}] * 2}, 16),
        (
            {
                "topologySpreadConstraints": [
                    {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["v"] * 80}]}}
                ]
            },
            12,
        ),
    ],
)
def test_rules_are_counted(spec: dict[str, Any], number: int) -> None:
    assert rules_of(a_pod(**spec).pod) == number


async def test_a_pod_of_many_rules_goes_where_they_say(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler_module, "MOST_AT_ONCE", 0)
    for name in ("n1", "n2"):
        await world.node(name, labels={HOSTNAME: name})
    await world.pod("first", "100m", labels={"app": "x"}, nodeSelector={HOSTNAME: "n1"})
    await world.until("first", lambda pod: bool(pod.spec.node_name))
    await world.pod("many", "100m", affinity=apart("x", TERMS))
    await world.until("many", lambda pod: pod.spec.node_name == "n2")
    await world.pod("none", "100m", affinity=apart("x", TERMS), nodeSelector={HOSTNAME: "n1"})
    assert "didn't match pod anti-affinity rules" in await world.waits("none")
    await world.pod("plain", "100m")
    await world.until("plain", lambda pod: bool(pod.spec.node_name))


class Nobody:
    """What is not asked."""

    random: Any = None
    near = True


async def test_an_attempt_of_many_rules_holds_nobody_up() -> None:
    """200 nodes and 200 terms took a second in one turn; a plain pod waits as little beside pods of many rules."""
    nobody: Any = Nobody()
    clock = FakeClock()
    informers = Informers(nobody, clock)
    scheduler = Scheduler(nobody, informers, profiles=(Profile(nobody, NAME),), clock=clock, gates=DEFAULT_GATES)
    nodes = [f"n{number}" for number in range(200)]
    for name in nodes:
        scheduler._cache.set_node(a_node(name).node)
    for number, name in enumerate(nodes):
        labels = {"app": "y"}
        scheduler._cache.count(a_pod(f"p{number}", labels=labels, affinity=apart("z", TERMS)).pod, name)
    bound: list[Resident] = []

    def accept(_: object, __: object, subject: Resident, verdict: Placed, began: float) -> None:
        bound.append(subject)

    scheduler._accept = accept  # type: ignore[assignment, method-assign]  # what is bound
    group: Any = None
    with turns() as measured:
        for pod in (a_pod("many", affinity=apart("x", TERMS)).pod, a_pod("plain").pod):
            key = pod.metadata.namespace, pod.metadata.name
            scheduler._queue.add(key, pod)
            await scheduler._guarded(group, key, pod)
    assert [subject.pod.metadata.name for subject in bound] == ["many", "plain"]
    assert measured.worst < 0.05


def test_a_pod_of_many_claims_is_placed_beside_the_loop() -> None:
    """Each claim is asked of each volume and each node. An ordinary pod is placed in the loop, however many there
    are."""

    def mounting(number: int) -> Pod:
        mounted = [{"name": f"v{n}", "persistentVolumeClaim": {"claimName": f"c{n}"}} for n in range(number)]
        return a_pod("p", volumes=mounted).pod

    assert rules.questions_of(mounting(1_000), nodes=1, volumes=2_000) > rules.MOST_AT_ONCE
    assert rules.questions_of(mounting(1_000), nodes=1_000, volumes=1) > rules.MOST_AT_ONCE
    assert rules.questions_of(mounting(3), nodes=5_000, volumes=5_000) == 0


def test_a_pod_of_many_rules_is_tried_again_rather_than_asked() -> None:
    subject = a_pod(affinity=apart("x", MANY))
    assert rules.has_many_rules(subject.pod)
    refused = Unschedulable("no", {"n1": Refusal("InterPodAffinity", ("no",))})
    assert worth_retrying(Waiting(subject, refused), PodCame(a_pod("other").pod))
    few = Waiting(a_pod(affinity=apart("x", 3)), refused)
    assert not worth_retrying(few, PodCame(a_pod("other").pod))
