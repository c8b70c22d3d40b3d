"""What a pod needs next, told as tables: containers and their states in, what to start and stop out."""

import pytest

from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod, PodSpec
from podfit.api.meta.v1.types import ObjectMeta
from podfit.decide.lifecycle.actions import CONTAINER_HASH, definition_hash, plan
from podfit.decide.lifecycle.facts import ContainerState, ContainerStatus, PodFacts, Sandbox, SandboxState

STATES = {
    "running": (ContainerState.RUNNING, 0),
    "created": (ContainerState.CREATED, 0),
    "ok": (ContainerState.EXITED, 0),
    "failed": (ContainerState.EXITED, 1),
    "unknown": (ContainerState.UNKNOWN, 0),
}


def a_pod(names: str, policy: str = "Always") -> Pod:
    """`i1 s1* c1`: i… are init containers, a star makes a sidecar, the rest are regular."""
    init: list[Container] = []
    regular: list[Container] = []
    for name in names.split():
        container = Container(
            name=name.rstrip("*"), image="app:1", restart_policy="Always" if name.endswith("*") else ""
        )
        (init if name[0] in "is" else regular).append(container)
    spec = PodSpec(containers=tuple(regular), init_containers=tuple(init), restart_policy=policy)
    return Pod(metadata=ObjectMeta(name="p", namespace="default", uid="u"), spec=spec)


def instance(name: str, state: str, *, image: str = "app:1") -> ContainerStatus:
    kind, code = STATES[state]
    annotations = {CONTAINER_HASH: definition_hash(Container(name=name, image=image))}
    return ContainerStatus(
        id=f"id-{name}", name=name, attempt=0, state=kind, created_at=1, exit_code=code, annotations=annotations
    )


def facts_of(states: dict[str, str], *, ready: bool = True) -> PodFacts:
    sandbox = Sandbox(
        id="box",
        name="p",
        namespace="default",
        uid="u",
        attempt=0,
        created_at=1,
        state=SandboxState.READY if ready else SandboxState.NOT_READY,
    )
    containers = tuple(instance(name, state) for name, state in states.items())
    return PodFacts("u", (sandbox,), None, containers, tuple((container.id, "box") for container in containers))


@pytest.mark.parametrize(
    ("names", "policy", "states", "start"),
    [
        ("c1 c2", "Always", {}, "c1 c2"),
        ("c1 c2", "Always", {"c1": "running"}, "c2"),
        ("c1 c2", "Always", {"c1": "running", "c2": "running"}, ""),
        ("c1", "Always", {"c1": "ok"}, "c1"),
        ("c1 c2", "OnFailure", {"c1": "ok", "c2": "failed"}, "c2"),
        ("c1 c2", "Never", {"c1": "failed", "c2": "running"}, ""),
        ("c1", "Never", {"c1": "created"}, "c1"),  # a crash between create and start
        ("i1 i2 c1", "Always", {}, "i1"),
        ("i1 i2 c1", "Always", {"i1": "running"}, ""),
        ("i1 i2 c1", "Always", {"i1": "ok"}, "i2"),
        ("i1 i2 c1", "Always", {"i1": "failed"}, "i1"),
        ("i1 i2 c1", "Always", {"i1": "ok", "i2": "ok"}, "c1"),
        ("s1* i1 c1", "Always", {"s1": "running"}, "i1"),
        ("s1* i1 c1", "Always", {"s1": "failed", "i1": "running"}, "s1"),
        ("s1* c1", "Always", {"s1": "running"}, "c1"),
        ("s1* c1", "Never", {"s1": "failed", "c1": "running"}, "s1"),
        ("s1* c1 c2", "Always", {"s1": "failed", "c1": "running"}, "s1 c2"),
        ("i1 c1", "Always", {"i1": "failed", "c1": "running"}, ""),  # initialised once and for all
    ],
)
def test_what_is_started(names: str, policy: str, states: dict[str, str], start: str) -> None:
    found = plan(a_pod(names, policy), facts_of(states))
    assert [container.name for container in found.start] == start.split()
    assert not found.over
    assert not found.kill


@pytest.mark.parametrize(
    ("names", "policy", "states"),
    [
        ("c1", "Never", {"c1": "ok"}),
        ("c1", "Never", {"c1": "failed"}),
        ("c1 c2", "OnFailure", {"c1": "ok", "c2": "ok"}),
        ("s1* c1", "Never", {"s1": "running", "c1": "ok"}),  # the sidecar alone keeps no pod alive
        ("i1 c1", "Never", {"i1": "failed"}),
    ],
)
def test_when_a_pod_is_over(names: str, policy: str, states: dict[str, str]) -> None:
    assert plan(a_pod(names, policy), facts_of(states)).over


def test_a_new_image_replaces_a_running_container_whatever_the_restart_policy() -> None:
    facts = facts_of({"c2": "running"})
    changed = instance("c1", "running", image="app:0")
    facts = PodFacts("u", facts.sandboxes, None, (changed, *facts.containers), (("id-c1", "box"), ("id-c2", "box")))
    found = plan(a_pod("c1 c2", "Never"), facts)
    assert [(killed.container.name, killed.message) for killed in found.kill] == [
        ("c1", "Container c1 definition changed, will be restarted")
    ]
    assert [container.name for container in found.start] == ["c1"]


def test_a_lost_sandbox_is_made_anew_and_initialisation_begins_again() -> None:
    found = plan(a_pod("i1 c1"), facts_of({"i1": "ok", "c1": "failed"}, ready=False))
    assert found.new_sandbox
    assert [container.name for container in found.start] == ["i1"]


@pytest.mark.parametrize("states", [{"c1": "failed"}, {"c1": "ok"}])
def test_a_pod_that_never_restarts_is_over_when_its_sandbox_is_lost(states: dict[str, str]) -> None:
    assert plan(a_pod("c1", "Never"), facts_of(states, ready=False)).over
