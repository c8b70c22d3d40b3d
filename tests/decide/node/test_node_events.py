"""What a kubelet says of its node."""

from collections.abc import Mapping
from typing import Any

from podfit.api.core.v1.nodes.types import Node
from podfit.api.meta.codec import convert
from podfit.decide.node.node_events import NodeEvent, of_cordon, of_status, of_takeover


def node(conditions: Mapping[str, str] | None = None, *, boot: str = "b1", unschedulable: bool = False) -> Node:
    rows = [{"type": kind, "status": status} for kind, status in (conditions or {}).items()]
    document: dict[str, Any] = {
        "metadata": {"name": "n1"},
        "spec": {"unschedulable": unschedulable},
        "status": {"conditions": rows, "nodeInfo": {"bootID": boot}},
    }
    return convert(document, Node)


WELL = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}


def test_at_first_it_says_how_it_is() -> None:
    assert of_status("n1", None, node(WELL).status) == [
        NodeEvent("Normal", reason, f"Node n1 status is now: {reason}")
        for reason in ("NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeReady")
    ]


def test_then_what_changed() -> None:
    before, after = node(WELL).status, node(WELL | {"DiskPressure": "True", "Ready": "False"}).status
    assert [event.reason for event in of_status("n1", before, after)] == ["NodeHasDiskPressure", "NodeNotReady"]
    assert of_status("n1", before, before) == []
    assert of_status("n1", before, node(WELL | {"UnresponsiveDisk": "True"}).status) == [], "that has events of its own"


def test_a_machine_that_was_started_anew() -> None:
    assert of_takeover("n1", node(boot="b1"), node(boot="b2").status) == [
        NodeEvent("Warning", "Rebooted", "Node n1 has been rebooted, boot id: b2")
    ]
    assert of_takeover("n1", node(boot=""), node(boot="b2").status) == []
    assert of_takeover("n1", node(boot="b2"), node(boot="b2").status) == []
    told = of_takeover("n1", node(unschedulable=True), node().status)
    assert [event.reason for event in told] == ["NodeNotSchedulable"]


def test_a_node_that_is_cordoned() -> None:
    free, cordoned = node(), node(unschedulable=True)
    assert [event.reason for event in of_cordon("n1", free, cordoned)] == ["NodeNotSchedulable"]
    assert [event.reason for event in of_cordon("n1", cordoned, free)] == ["NodeSchedulable"]
    assert of_cordon("n1", free, free) == []
