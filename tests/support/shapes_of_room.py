"""A node's pods in any number, for `support.doubling`: what the controller that makes room looks through."""

from collections.abc import Callable, Mapping
from typing import Any

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.apiserver.request.documents import MOST_OF_POD
from podfit.controllers.make_room import _BY_NODE, _WAITING, RoomController, _Made
from podfit.core.features import DEFAULT_GATES
from podfit.decide.node.room.minimum import LONGEST, MINIMUM, BadMinimum, minimums
from podfit.decide.node.room.plan import RoomPlan
from support.clock import FakeClock
from support.shapes import Shape, Work

MOST_PODS = 110
"""Of a node, where nobody has said otherwise."""
MOST_CONTAINERS = MOST_OF_POD // 8


def _pod(name: str, milli: int, *, priority: int = 0, containers: int = 1, minimum: str = "") -> Pod:
    """It has what it asks for."""
    requests = {"cpu": f"{milli}m"}
    spec = {
        "nodeName": "n",
        "priority": priority,
        "containers": [{"name": f"c{n}", "image": "x", "resources": {"requests": requests}} for n in range(containers)],
    }
    statuses = [
        {"name": f"c{n}", "allocatedResources": requests, "resources": {"requests": requests}}
        for n in range(containers)
    ]
    meta = {"name": name, "uid": name, "namespace": "d", "annotations": {MINIMUM: minimum} if minimum else {}}
    return codec.convert(
        {"metadata": meta, "spec": spec, "status": {"phase": "Running", "containerStatuses": statuses}}, Pod
    )


def _annotation(entry: Callable[[int], str]) -> Callable[[int], Work]:
    def make(size: int) -> Work:
        number = size // len(entry(size // 10))
        text = ",".join(entry(n) for n in range(number))[:LONGEST].rpartition(",")[0]
        pod = _pod("a", 100, containers=MOST_CONTAINERS, minimum=text)

        def read() -> None:
            try:
                minimums(pod)
            except BadMinimum:
                return

        return read

    return make


class _Cluster:
    """The informers of nodes and pods of one node, as the controller asks them."""

    def __init__(self, milli: int, pods: list[Pod], waiting: list[Pod]) -> None:
        self.node = codec.convert({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": f"{milli}m"}}}, Node)
        self.pods = {_BY_NODE: pods, _WAITING: waiting}

    def of(self, _: object) -> "_Cluster":
        return self

    def get(self, _: str) -> Node:
        return self.node

    def by_index(self, index: str, _: object) -> list[Pod]:
        return self.pods[index]

    def add_index(self, *_: object) -> None: ...

    def add_handler(self, **_: object) -> None: ...


class _Planning(RoomController):
    """It does and tells nothing."""

    async def make(self, waiting: Pod, made: RoomPlan) -> _Made:
        return _Made.UNDER_WAY

    def _tell(self, pod: Pod, kind: str, reason: str, message: str) -> None: ...


def _node(size: int, *, containers: int = 1, evict: bool = False, waiting: int = 1) -> Work:
    """Everybody who is there has to give or to go, each at a priority of their own."""
    others = [_pod(f"p{n}", 100, priority=n, containers=containers, minimum="cpu=50m") for n in range(size)]
    held = size * containers * 100
    asks = [_pod(f"asks{n}", held if evict else 100 + held // 2, priority=2 * size) for n in range(waiting)]
    cluster: Any = _Cluster(held + 100, [*others, *asks[:1]], asks)
    controller = _Planning(
        cluster, informers=cluster, recorder=cluster, clock=FakeClock(), gates=DEFAULT_GATES, evict=evict
    )
    return lambda: controller.reconcile("n")


ROOM: Mapping[str, tuple[Shape, ...]] = {
    "decide.node.room.minimum:minimums": (
        Shape("entries of the last container", LONGEST, _annotation(lambda n: f"c99:a{n}=1")),
        Shape("entries of every container", LONGEST, _annotation(lambda n: f"c{n % 600}:cpu=1m")),
        Shape("long entries", LONGEST, _annotation(lambda _: "cpu=" + "9" * 1000)),
    ),
    "controllers.make_room:RoomController.reconcile": (
        Shape("neighbours that shrink", MOST_PODS, _node),
        Shape("neighbours that go", MOST_PODS, lambda n: _node(n, evict=True)),
        Shape("containers that shrink", MOST_CONTAINERS, lambda n: _node(MOST_PODS // 10, containers=n)),
        Shape("pods that wait", MOST_PODS, lambda n: _node(n, evict=True, waiting=n)),
    ),
}
