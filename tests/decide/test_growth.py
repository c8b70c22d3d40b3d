"""By how much pods could grow where they are, as their nodes would grant it."""

from typing import Any

import pytest

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.core.features import DEFAULT_GATES
from podfit.decide.node.room.growth import growth, levelled


def node(name: str = "n1", **more: Any) -> Node:
    has = {"cpu": "1", "memory": "1Gi", "pods": "10"}
    return convert({"metadata": {"name": name}, "status": {"capacity": has, "allocatable": has, **more}}, Node)


def pod(name: str, cpu: str, on: str = "n1", **more: Any) -> Pod:
    resources = {"requests": {"cpu": cpu, "memory": "128Mi"}}
    status = {"phase": "Running", "qosClass": "Burstable", **more.pop("status", {})}
    spec = {"nodeName": on, "containers": [{"name": "app", "image": "i", "resources": resources}], **more}
    return convert({"metadata": {"name": name, "namespace": "shop", "uid": name}, "spec": spec, "status": status}, Pod)


def grows(*pods: Pod, beside: tuple[Pod, ...] = (), nodes: tuple[Node, ...] | None = None) -> dict[str, int]:
    every = {one.metadata.name: one for one in nodes or (node(), node("n2"))}
    on_node = {name: [one for one in (*pods, *beside) if one.spec.node_name == name] for name in every}
    found = growth(pods, every, on_node, ("cpu",), DEFAULT_GATES)
    return {name: room["cpu"] for name, room in found.items()}


def test_pods_of_a_node_share_what_it_has_left() -> None:
    assert grows(pod("a", "200m"), pod("b", "200m"), pod("c", "300m", on="n2"), beside=(pod("x", "100m"),)) == {
        "a": 250,
        "b": 250,
        "c": 700,
    }


def test_a_pod_that_has_grown_leaves_the_room_to_those_that_have_not() -> None:
    """All of them can be of the size of which the smallest can be."""
    assert grows(pod("a", "400m"), pod("b", "200m")) == {"a": 100, "b": 300}
    assert grows(pod("a", "700m"), pod("b", "100m"), pod("c", "100m")) == {"a": 0, "b": 50, "c": 50}


@pytest.mark.parametrize(
    ("held", "most", "shares"),
    [
        ([], [], []),
        ([200], [300], [300]),
        ([200, 400], [400, 400], [300, 100]),
        ([100, 900], [300, 300], [300, 0]),
        ([100, 100, 900], [300, 300, 300], [150, 150, 0]),
        ([100, 100], [0, 300], [0, 300]),
        ([100, 100], [0, 0], [0, 0]),
    ],
)
def test_room_is_shared_up_to_one_size(held: list[int], most: list[int], shares: list[int]) -> None:
    assert levelled(held, most) == shares


def test_pods_without_a_node_are_left_out() -> None:
    assert grows(pod("a", "200m", on=""), pod("b", "200m", on="gone")) == {"b": 0}


def test_pods_that_have_ended_hold_nothing() -> None:
    over = pod("x", "700m", status={"phase": "Succeeded"})
    assert grows(pod("a", "200m"), beside=(over,)) == {"a": 800}


@pytest.mark.parametrize("reason", ["Deferred", "Infeasible"])
def test_a_pod_whose_resize_its_node_turned_down_does_not_grow(reason: str) -> None:
    waits = {"type": "PodResizePending", "status": "True", "reason": reason, "message": "no"}
    has = {"cpu": "200m", "memory": "128Mi"}
    app = {"name": "app", "image": "i", "imageID": "", "ready": True, "restartCount": 0, "allocatedResources": has}
    status = {"conditions": [waits], "containerStatuses": [{**app, "resources": {"requests": has}}]}
    assert grows(pod("a", "300m", status=status)) == {"a": 0}
    assert grows(pod("a", "200m", status={"containerStatuses": status["containerStatuses"]})) == {"a": 800}


def test_what_the_node_refuses_for_another_reason_is_no_room() -> None:
    pressed = node(
        conditions=[{"type": "MemoryPressure", "status": "True"}, {"type": "DiskPressure", "status": "True"}]
    )
    assert grows(pod("a", "200m"), nodes=(pressed,)) == {"a": 0}
    full = node(allocatable={"cpu": "1", "memory": "64Mi", "pods": "10"})
    assert grows(pod("a", "200m"), nodes=(full,)) == {"a": 0}
    as_a_whole = pod("a", "200m", resources={"requests": {"cpu": "300m"}})
    assert grows(as_a_whole) == {"a": 0}
