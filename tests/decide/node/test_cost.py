"""A step of the node machine costs as much on a full node as on an empty one: counted in calls, not in time."""

import sys
from datetime import UTC, datetime
from types import FrameType

import pytest

from podfit.core.quantity import Quantity
from podfit.decide.cgroup.container_resources import Machine
from podfit.decide.node import events as on
from podfit.decide.node.machine import step
from podfit.decide.node.settled import settled_status
from podfit.decide.node.state import NodeState
from podfit.decide.resize.verdict import NodeView
from support.placed import placed, resized
from support.pods import container, needs, pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def full(pods: int) -> NodeState:
    allocatable = {"cpu": Quantity.of(1000), "memory": Quantity.parse("1000Gi")}
    state = NodeState(view=NodeView(allocatable=allocatable, machine=Machine(memory=8 << 30)), sources_ready=True)
    new = tuple(placed(pod(container("c", {"cpu": "100m"}), name=f"p{number}")) for number in range(pods))
    return step(state, on.PodsAdded(new), now=NOW)[0]


def calls(state: NodeState) -> int:
    """Functions called, ours and built-in ones, for one resize that is granted and reported."""
    desired = resized(state.pods["p1"].pod, c=needs({"cpu": "150m"}))
    counted = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        state, _ = step(state, on.PodsUpdated((desired,)), now=NOW)
        status = settled_status(state.allocated_pod(state.pods["p1"].pod))
        state, _ = step(state, on.StatusGenerated("p1", status), now=NOW)
    finally:
        sys.setprofile(before)
    assert state.allocated["p1"].containers["c"].requests["cpu"] == Quantity.parse("150m")
    return counted


@pytest.mark.parametrize("pods", [20, 400])
def test_a_resize_costs_no_more_where_many_are(pods: int) -> None:
    calls(full(2))  # what is remembered between two steps is made
    assert calls(full(pods)) == calls(full(2))
