"""When a node is tainted, and when its pods are sent away for it."""

import pytest

from podfit.api.core.v1.nodes.types import Node
from podfit.api.meta.codec import convert
from podfit.decide.workload.nodes.health import GRACE, tainting

STAMP = "2026-01-01T00:00:00Z"
AWAY = "node.kubernetes.io/unreachable:NoExecute"
NO_MORE = "node.kubernetes.io/unreachable:NoSchedule"


def node(name: str, ready: str = "True", *taints: str) -> Node:
    marks = [{"key": taint.partition(":")[0], "effect": taint.partition(":")[2]} for taint in taints]
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    return convert({"metadata": {"name": name}, "spec": {"taints": marks}, "status": status}, Node)


FINE = [node(name) for name in "bcd"]
LOST = [node(name, "Unknown") for name in "bcd"]


@pytest.mark.parametrize(
    ("found", "others", "since", "taints", "evicts", "again"),
    [
        (node("a"), FINE, 0, [], False, None),
        (node("a", "True", NO_MORE, AWAY), FINE, 0, [], False, None),
        (node("a", "Unknown"), FINE, 20, [NO_MORE, AWAY], True, None),
        (node("a", "Unknown"), FINE, 4, [NO_MORE], False, None),
        (node("a", "Unknown", NO_MORE), FINE, 4, [NO_MORE], False, 6.0),  # another's went four seconds ago
        (node("a", "Unknown", NO_MORE), FINE, 10, [NO_MORE, AWAY], True, None),
        (node("a", "Unknown", NO_MORE, AWAY), FINE, 4, [NO_MORE, AWAY], False, 6.0),
        (node("a", "Unknown", NO_MORE), LOST, 100, [NO_MORE], False, GRACE),  # it is the network: nobody goes
        (node("a", "Unknown", NO_MORE, AWAY), LOST, 100, [NO_MORE], False, None),
        (node("a", "Unknown", NO_MORE), [*LOST[:2], *FINE[:1]], 100, [NO_MORE], False, GRACE),  # most of a small zone
    ],
)
def test_taints(
    found: Node, others: list[Node], since: float, taints: list[str], evicts: bool, again: float | None
) -> None:
    wanted = tainting(found, [found, *others], last=1000 - since, now=1000, stamp=STAMP)
    assert {f"{taint.key}:{taint.effect}" for taint in wanted.taints} == set(taints)
    assert (wanted.evicts, wanted.again) == (evicts, again)
