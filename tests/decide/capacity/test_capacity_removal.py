"""The removal of a node beyond upstream's rules: resizes under way, room that is spoken for, and who goes first."""

from typing import Any

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.core.times import parse_time
from podfit.decide.capacity.drain import DrainContext
from podfit.decide.capacity.removal import Removal, Surroundings, removal
from podfit.decide.placement.view import NodeInfo, Resident

CONTEXT = DrainContext(now=parse_time("2026-01-01T00:00:00Z"))


def node(name: str, cpu: str = "4") -> Node:
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    return convert({"metadata": meta, "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "9"}}}, Node)


def pod(name: str, where: str, cpu: str = "1", *, held: str = "", condition: str = "", **spec: Any) -> Pod:
    """`held` is the CPU that its node has set aside where that is not what it desires."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    requests = {"cpu": cpu, "memory": "64Mi"}
    resources = {"requests": {**requests, "cpu": held or cpu}}
    status = {"name": "c", "resources": resources, "allocatedResources": resources["requests"]}
    conditions = [{"type": condition, "status": "True", "reason": "Deferred"}] if condition else []
    return convert(
        {
            "metadata": {"name": name, "namespace": "shop", "uid": name, "ownerReferences": [owner]},
            "spec": {"nodeName": where, "containers": [{"name": "c", "resources": {"requests": requests}}], **spec},
            "status": {"phase": "Running", "containerStatuses": [status], "conditions": conditions},
        },
        Pod,
    )


def asked(*pods: Pod, nodes: tuple[str, ...] = ("n1", "n2"), **templates: Pod) -> Removal:
    """Whether n1 could go."""
    views = [
        NodeInfo.of(node(name), (Resident.of(pod) for pod in pods if pod.spec.node_name == name)) for name in nodes
    ]
    here = [pod for pod in pods if pod.spec.node_name == "n1"]
    known = {("shop", name): made.spec for name, made in templates.items()}
    return removal(node("n1"), here, CONTEXT, Surroundings(views=views), known)


def reasons(found: Removal) -> list[str]:
    return [obstacle.reason for obstacle in found.obstacles]


def test_capacity_keeps_a_node_whose_pod_is_being_resized() -> None:
    assert reasons(asked(pod("web", "n1", condition="PodResizeInProgress"))) == ["ResizeInProgress"]
    assert reasons(asked(pod("web", "n1"))) == []


def test_capacity_does_not_give_away_what_a_waiting_resize_asks_for() -> None:
    waits = pod("big", "n2", "3500m", held="1", condition="PodResizePending")
    assert reasons(asked(pod("web", "n1"), waits)) == ["NoPlaceToMovePods"]
    assert reasons(asked(pod("web", "n1"), pod("big", "n2"))) == []


def test_capacity_counts_a_successor_by_the_larger_of_template_and_present_size() -> None:
    other = pod("other", "n2", "2500m")
    assert reasons(asked(pod("web", "n1", "500m"), other, web=pod("t", "", "2"))) == ["NoPlaceToMovePods"]
    assert reasons(asked(pod("web", "n1", "1800m"), other, web=pod("t", "", "100m"))) == ["NoPlaceToMovePods"]
    assert reasons(asked(pod("web", "n1", "500m"), other, web=pod("t", "", "1"))) == []


def test_capacity_moves_the_highest_priority_first_then_the_largest() -> None:
    found = asked(
        pod("small", "n1", "100m"), pod("large", "n1", "1"), pod("urgent", "n1", "200m", priority=9), nodes=("n1", "n2")
    )
    assert [move.pod.metadata.name for move in found.moves] == ["urgent", "large", "small"]


def test_capacity_counts_one_move_for_the_next() -> None:
    """Each of the two would fit, and not both."""
    found = asked(pod("a", "n1", "1"), pod("b", "n1", "1"), pod("other", "n2", "2500m"))
    assert (len(found.moves), reasons(found)) == (1, ["NoPlaceToMovePods"])


def test_capacity_does_not_move_a_pod_back_to_the_node_that_goes() -> None:
    tolerant = pod("web", "n1", tolerations=[{"operator": "Exists"}])
    (obstacle,) = asked(tolerant, nodes=("n1",)).obstacles
    assert obstacle.text == "it tolerates the cordon and would come back"


def test_capacity_keeps_a_node_that_does_not_say_its_size() -> None:
    nameless = convert({"metadata": {"name": "n1"}}, Node)
    found = removal(nameless, (), CONTEXT, None, {})
    assert [(obstacle.reason, obstacle.text) for obstacle in found.obstacles] == [
        ("UnexpectedError", "failed to get cpu from n1")
    ]
