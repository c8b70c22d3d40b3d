"""Which Nodes are played: whose a Node is, and which sizes are taken."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.api.coordination.v1.types import Lease
from podfit.api.core.v1.nodes.types import Node
from podfit.core.quantity import Quantity
from podfit.core.times import format_micro
from podfit.decide.node.simulated import MOST, MOST_PLAYED, Left, Played, judge

NOW = datetime(2026, 1, 1, tzinfo=UTC)
US, UID = "podfit-1", "u-1"


def node(**status: Any) -> Node:
    annotations = {"kwok.x-k8s.io/node": "fake"}
    document = {"metadata": {"name": "n", "uid": UID, "annotations": annotations}, "status": status}
    return msgspec.convert(document, Node, dec_hook=lambda _, text: Quantity.parse(text))


def lease(holder: str, seconds: float = 0.0, *, lasts: int | None = 40, uid: str = UID) -> Lease:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": uid}
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": lasts,
        "renewTime": format_micro(NOW + timedelta(seconds=seconds)),
    }
    return msgspec.convert({"metadata": {"name": "n", "ownerReferences": [owner]}, "spec": spec}, Lease)


def judged(node: Node, lease: Lease | None = None, *, own: tuple[str, ...] = (), others: int = 0) -> Played | Left:
    return judge(node, lease, holder=US, own=own, others=others, now=NOW)


def test_a_node_without_the_annotation_is_nobodys_concern() -> None:
    for annotations in ({}, {"kwok.x-k8s.io/node": "true"}, {"kwok.x-k8s.io/node": ""}):
        other = msgspec.structs.replace(
            node(), metadata=msgspec.structs.replace(node().metadata, annotations=annotations)
        )
        assert judged(other) == Left()


@pytest.mark.parametrize(
    ("held", "plays", "seconds"),
    [
        (None, True, None),
        (lease(US), True, None),
        (lease("kwok-1"), False, 40.0),
        (lease("kwok-1", -39), False, 1.0),
        (lease("kwok-1", -40), True, None),
        (lease("kwok-1", -50, lasts=None), True, None),
        (lease("kwok-1", 10**9), False, 40.0),
        (lease("kwok-1", lasts=10**6), False, 3600.0),
        (lease(""), True, None),
        (lease("n", -(10**6)), False, None),
        (lease("n", -(10**6), uid="of the one before"), True, None),
        (lease("n", uid="of the one before"), False, 40.0),
    ],
)
def test_whose_lease_it_is(held: Lease | None, plays: bool, seconds: float | None) -> None:
    """A kubelet's own Lease, for this very Node, says that there is one; another's counts until it is over, and how
    long it may last is bounded whatever it says."""
    answer = judged(node(), held)
    assert isinstance(answer, Played) is plays
    assert plays or (isinstance(answer, Left) and answer.seconds == seconds)


@pytest.mark.parametrize(
    ("version", "plays"), [("", True), ("fake", True), ("kwok-v0.6.0", True), ("v1.34.0", False), ("Fake", False)]
)
def test_whose_kubelet_has_told_its_version(version: str, plays: bool) -> None:
    assert isinstance(judged(node(nodeInfo={"kubeletVersion": version})), Played) is plays


def test_own_nodes_and_too_many() -> None:
    assert judged(node(), own=("n",)) == Left("n is a node of podfit itself")
    assert isinstance(judged(node(), others=MOST_PLAYED - 1), Played)
    full = judged(node(), others=MOST_PLAYED)
    assert isinstance(full, Left)
    assert full.full


def test_what_a_node_does_not_say_of_its_size() -> None:
    unsaid = judged(node())
    assert isinstance(unsaid, Played)
    assert {name: str(amount) for name, amount in unsaid.capacity.items()} == {
        "cpu": "4",
        "memory": "8Gi",
        "pods": "110",
    }
    one = judged(node(allocatable={"cpu": "2"}))
    assert isinstance(one, Played)
    assert one.capacity["cpu"] == one.allocatable["cpu"] == Quantity.of(2)
    other = judged(node(capacity={"cpu": "2", "nvidia.com/gpu": "1"}))
    assert isinstance(other, Played)
    assert other.allocatable["nvidia.com/gpu"] == Quantity.of(1)


amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi", "example.com/a"]),
    st.integers(-(10**20), 10**20).map(str),
)


@given(amounts, amounts)
def test_what_is_played_is_within_bounds(capacity: dict[str, str], allocatable: dict[str, str]) -> None:
    answer = judged(node(capacity=capacity, allocatable=allocatable))
    if isinstance(answer, Played):
        assert answer.allocatable.keys() == answer.capacity.keys()
        for name, amount in answer.capacity.items():
            assert Quantity.of(0) <= answer.allocatable[name] <= amount <= MOST.get(name, amount)
    else:
        assert answer.why
