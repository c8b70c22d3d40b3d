"""What the node of a bound pod rules out (R-069 to R-074)."""

import msgspec
import pytest

from podfit.api.core.v1.nodes.types import Node, NodeStatus
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.v1.types import ObjectMeta
from podfit.core.features import DEFAULT_GATES
from podfit.decide.resize.node_support import INIT_FEATURE, LEVEL_FEATURE, check_capacity, check_features
from support.pods import Amounts, amounts, container, needs, pod, sidecar


def node(allocatable: Amounts | None = None, *, system: str = "linux", features: tuple[str, ...] = ()) -> Node:
    return Node(
        metadata=ObjectMeta(name="n1", labels={"kubernetes.io/os": system}),
        status=NodeStatus(
            allocatable=amounts(allocatable or {"cpu": "4", "memory": "8Gi"}), declared_features=features
        ),
    )


def bound(cpu: str, memory: str = "1Gi", generation: int = 2) -> Pod:
    return pod(container("a", {"cpu": cpu, "memory": memory}), node_name="n1", generation=generation)


OLD = bound("1", generation=1)


@pytest.mark.row("R-069")
def test_more_than_the_node_has_is_refused_with_every_offender() -> None:
    verdict = check_capacity(bound("5", "9Gi"), OLD, node(), DEFAULT_GATES)
    assert verdict is not None
    assert verdict.causes == ("NodeCapacity",)
    assert verdict.text == (
        "node didn't have enough allocatable resources: cpu, requested: 5000, allocatable: 4000; "
        "memory, requested: 9663676416, allocatable: 8589934592"
    )
    status = verdict.error("web").status()
    assert status["code"] == 403
    assert status["details"]["causes"] == [{"reason": "NodeCapacity"}]


@pytest.mark.row("R-070")
def test_exactly_the_nodes_allocatable_is_admitted() -> None:
    """R-070."""
    assert check_capacity(bound("4", "8Gi"), OLD, node(), DEFAULT_GATES) is None


@pytest.mark.row("R-071")
def test_another_operating_system_is_refused() -> None:
    verdict = check_capacity(bound("2"), OLD, node(system="windows"), DEFAULT_GATES)
    assert verdict is not None
    assert verdict.causes == ("UnsupportedPlatform",)
    assert verdict.text == 'pod resize is only supported on linux nodes, node "n1" is "windows"'


@pytest.mark.parametrize("check", [check_capacity, check_features])
def test_unbound_and_unchanged_pods_are_nobodys_business(check: object) -> None:
    """R-074."""
    assert callable(check)
    same = bound("50", generation=1)
    assert check(same, OLD, None, DEFAULT_GATES) is None
    unbound = msgspec.structs.replace(bound("50"), spec=msgspec.structs.replace(bound("50").spec, node_name=""))
    assert check(unbound, OLD, None, DEFAULT_GATES) is None
    missing = check(bound("2"), OLD, None, DEFAULT_GATES)
    assert missing.text == 'node "n1" not found'


@pytest.mark.row("R-072")
def test_features_that_the_node_lacks_are_named() -> None:
    """R-072."""

    def made(init: str, level: str, generation: int) -> Pod:
        return pod(
            container("a"),
            init=(container("i", {"cpu": init}), sidecar("s", {"cpu": init})),
            resources=needs({"cpu": level}),
            node_name="n1",
            generation=generation,
        )

    old, new = made("1", "2", 1), made("2", "3", 2)
    verdict = check_features(new, old, node(), DEFAULT_GATES)
    assert verdict is not None
    assert verdict.text == (
        f'pod update requires features {LEVEL_FEATURE}, {INIT_FEATURE} which are not available on node "n1"'
    )
    assert check_features(new, old, node(features=(LEVEL_FEATURE, INIT_FEATURE)), DEFAULT_GATES) is None
    one = check_features(made("1", "3", 2), old, node(features=(INIT_FEATURE,)), DEFAULT_GATES)
    assert one is not None
    assert INIT_FEATURE not in one.text
