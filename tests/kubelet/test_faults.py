"""Whatever the runtime, the clock or the containers do, the node ends where it was asked to be.

Each test lets faults happen, takes them away, and has `FaultyNode.problems` look: desired = allocated = actual where it
fits, Deferred with a true reason where not, no restart that was not needed, nothing left behind.
"""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from kubelet.faulty import CAPACITY, KINDS, READS, WRITES, FaultyNode, Kind
from kubelet.harness import MACHINE

Figure = Callable[[str, object], None]


ACTUATION = {"kernel-first": True, "runtime": False}
"""Whether the kernel is told first."""


@pytest.fixture(params=list(ACTUATION.values()), ids=list(ACTUATION))
async def node(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[FaultyNode]:
    made = FaultyNode(tmp_path / "node", machine=replace(MACHINE, kernel_first=request.param))
    await made.start()
    yield made
    await made.kubelet.stop(stop_pods=False)


async def _running(node: FaultyNode, **sizes: str) -> None:
    for name, cpu in sizes.items():
        node.give(name, cpu)
    for name in sizes:
        await node.runs(name)


# ---------------------------------------------------------------------- calls


@pytest.mark.row("R-174")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("call", "node"),
    [(call, True) for call in READS] + [(call, first) for call in WRITES for first in ACTUATION.values()],
    indirect=["node"],  # a question is the same however sizes are actuated
)
async def test_a_call_that_fails_is_made_up_for(node: FaultyNode, call: str, kind: Kind) -> None:
    """One call fails in one way while pods are made, resized both ways, restarted and deleted."""
    await _running(node, web="1", other="500m")
    node.runtime.kinds[call] = kind
    node.give("web", "2", "96Mi")
    node.give("other", "250m", "32Mi")
    node.give("late", "1")
    await node.advance(3)
    node.give("web", "1500m", "80Mi")
    node.end("other")
    await node.advance(45)
    await node.settle()
    node.runtime.kinds[call] = kind
    node.api.delete("late", 1)
    await node.advance(45)
    await node.settle()
    assert node.api.get("pods", "late") is None


@pytest.mark.row("R-141", "R-174")
async def test_a_resize_without_an_answer_says_so_and_completes(node: FaultyNode) -> None:
    await _running(node, web="1")
    node.runtime.kinds["update_container_resources"] = "hung"
    node.give("web", "2")
    await node.rest()
    await node.advance(29)
    node.runtime.kinds.clear()
    await node.advance(3)
    assert not node.problems(), "an outage is over when the next try works, not ten seconds later"
    said = next(event for event in node.api.events() if event.startswith("ResizeError"))
    assert "update_container_resources: the runtime did not answer within 30 s" in said


# ---------------------------------------------------------------------- crashes and OOM in every phase


async def _before(node: FaultyNode) -> None:
    """No resize has been asked for."""


async def _deferred(node: FaultyNode) -> None:
    node.give("web", "3500m")
    await node.rest()


async def _promised(node: FaultyNode) -> None:
    node.runtime.kinds["update_container_resources"] = "refused"
    node.give("web", "2", "96Mi")
    await node.rest()


async def _under_way(node: FaultyNode) -> None:
    node.runtime.kinds["update_container_resources"] = "late"
    node.give("web", "2", "96Mi")
    await node.rest()


async def _unanswered(node: FaultyNode) -> None:
    node.runtime.kinds["update_container_resources"] = "lost"
    node.give("web", "2", "96Mi")
    await node.rest()


async def _done(node: FaultyNode) -> None:
    node.give("web", "2", "96Mi")
    await node.rest()


PHASES = {
    "before": _before,
    "deferred": _deferred,
    "promised": _promised,
    "under way": _under_way,
    "unanswered": _unanswered,
    "done": _done,
}


@pytest.mark.row("R-166", "R-167", "R-168")
@pytest.mark.parametrize("oom", [False, True], ids=["crash", "oom"])
@pytest.mark.parametrize("phase", PHASES)
async def test_a_container_that_ends_during_a_resize_starts_with_what_was_promised(
    node: FaultyNode, phase: str, oom: bool
) -> None:
    await _running(node, web="1", hog="1")
    await PHASES[phase](node)
    promised = "1" if phase in ("before", "deferred") else "2"
    assert node.end("web", oom=oom)
    await node.advance(12)
    await node.until(lambda: node.live() is not None)
    live = node.live()
    assert live is not None
    assert live.resources is not None
    assert live.resources.cpu_quota == int(promised) * 100_000, "never the desired size, never the one before"
    await node.settle()
    assert node.state()["allocatedResources"]["cpu"] == promised
    assert node.state()["restartCount"] == 1


@pytest.mark.row("R-168")
async def test_a_container_that_was_killed_for_memory_comes_back_with_more(node: FaultyNode) -> None:
    """The raise arrives while the container is down: the pod's cgroup is raised all the same."""
    await _running(node, web="1")
    node.runtime.kinds["start_container"] = "refused"
    live = node.live()
    assert live is not None
    node.runtime.real.use(live.id, 65 << 20)
    node.exits[node.uid("web")] += 1
    await node.rest()
    node.give("web", "1", "128Mi")
    await node.rest()
    assert node.cgroups.read_memory(node.cgroups.layout.pod(node.uid("web"), "Burstable")) == 128 << 20
    node.exits[node.uid("web")] += node.state()["restartCount"] - 1
    node.runtime.kinds.clear()
    await node.until(lambda: True)
    await node.advance(30)
    live = node.live()
    assert live is not None
    assert live.resources is not None
    assert live.resources.memory_limit == 128 << 20


# ---------------------------------------------------------------------- contradictions and the kubelet's own death


@pytest.mark.row("R-110", "R-122")
async def test_contradictory_resizes_in_quick_succession_end_at_the_last(node: FaultyNode) -> None:
    await _running(node, web="1", hog="1")
    node.runtime.kinds["update_container_resources"] = "late"
    for cpu in ("2", "100m", "3500m", "2500m", "1", "200m", "3", "500m"):
        node.give("web", cpu)
        await node.advance(0.4)
    await node.settle()
    assert node.state()["resources"]["limits"]["cpu"] == "500m"


@pytest.mark.row("R-169", "R-170", "R-171", "R-172")
@pytest.mark.parametrize("phase", PHASES)
async def test_the_kubelet_dies_in_any_phase(node: FaultyNode, phase: str) -> None:
    await _running(node, web="1", hog="1")
    await PHASES[phase](node)
    await node.crash()
    node.runtime.kinds.clear()
    await node.start()
    await node.settle()
    assert node.state()["restartCount"] == 0
    pending = node.condition("PodResizePending")
    assert (pending is not None) is (phase == "deferred")
    node.api.delete("hog", 1)
    await node.settle()
    assert node.condition("PodResizePending") is None


@pytest.mark.row("R-175")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_pod_that_is_deleted_during_its_resize_goes(node: FaultyNode, kind: Kind) -> None:
    await _running(node, web="1")
    node.runtime.kinds["update_container_resources"] = kind
    node.give("web", "2")
    await node.rest()
    node.api.delete("web", 1)
    await node.until(lambda: node.api.get("pods", "web") is None)
    assert not node.problems()


# ---------------------------------------------------------------------- clocks


@pytest.mark.parametrize("seconds", [-7200.0, -30.0, 30.0, 7200.0, 40 * 365 * 86400.0])
async def test_the_time_of_day_is_set_during_a_resize(node: FaultyNode, seconds: float) -> None:
    await _running(node, web="1", hog="2")
    node.give("web", "3")
    await node.until(lambda: node.condition("PodResizePending"))
    node.clock.jump(seconds)
    node.give("hog", "500m")
    await node.until(lambda: node.state()["resources"]["limits"]["cpu"] == "3")
    node.end("web")
    await node.settle()
    node.clock.jump(-seconds)
    node.end("web")
    await node.advance(11)
    await node.settle(longest=30)


# ---------------------------------------------------------------------- all of it, at random


@pytest.mark.parametrize("seed", range(6))
async def test_anything_in_any_order(tmp_path: Path, seed: int) -> None:
    await Chaos(FaultyNode(tmp_path / "node"), seed).run(40)


@pytest.mark.campaign
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kernel_first", [False, True], ids=["runtime", "kernel-first"])
async def test_anything_in_any_order_many_times(tmp_path: Path, figure: Figure, *, kernel_first: bool) -> None:
    """100 nodes on a simulated runtime for each --actuation: 60 steps each at random of resizes, crashes, OOM kills,
    calls refused, lost, hung or late, clock jumps, deaths of the kubelet, an API that is away, pods deleted and made.
    At the end each pod is at its desired size in status, runtime and cgroups, or Deferred with a true reason; nothing
    restarted that need not, nothing is left over.
    """
    steps = 0
    for seed in range(1000, 1100):
        machine = replace(MACHINE, kernel_first=kernel_first)
        steps += await Chaos(FaultyNode(tmp_path / f"node{seed}", machine=machine), seed).run(60)
    figure("nodes", 100)
    figure("steps", steps)


class Chaos:
    """One node to which things happen, the same ones for the same seed."""

    def __init__(self, node: FaultyNode, seed: int) -> None:
        self.node = node
        self._random = random.Random(seed)
        self._names = ["a", "b", "c"]
        self._steps: tuple[Callable[[], Awaitable[object]], ...] = (
            self._resize,
            self._resize,
            self._resize,
            self._pass,
            self._pass,
            self._pass,
            self._pass,
            self._crash,
            self._fault,
            self._fault,
            self._mend,
            self._jump,
            self._die,
            self._delete,
            self._api,
        )

    async def run(self, steps: int) -> int:
        await self.node.start()
        for name in self._names:
            self.node.give(name, "500m")
        await self.node.settle()
        for _ in range(steps):
            await self._random.choice(self._steps)()
        await self.node.settle()
        await self.node.kubelet.stop(stop_pods=False)
        return steps

    def _one(self) -> str:
        return self._random.choice(self._names)

    async def _resize(self) -> None:
        cpu = self._random.randrange(100, CAPACITY + 1, 100)
        name = self._one()
        if self.node.api.get("pods", name) is not None:
            self.node.give(name, f"{cpu}m", f"{self._random.randrange(32, 128)}Mi")

    async def _pass(self) -> None:
        await self.node.advance(self._random.choice([0.0, 0.3, 2.0, 12.0, 31.0]))

    async def _crash(self) -> None:
        name = self._one()
        if self.node.api.get("pods", name) is not None and not self._deleting(name):
            self.node.end(name, oom=self._random.random() < 0.5)

    async def _fault(self) -> None:
        self.node.runtime.kinds[self._random.choice([*READS, *WRITES])] = self._random.choice(KINDS)

    async def _mend(self) -> None:
        self.node.runtime.kinds.clear()

    async def _jump(self) -> None:
        self.node.clock.jump(self._random.choice([-86400.0, -60.0, 60.0, 86400.0]))

    async def _die(self) -> None:
        await self.node.crash()
        self.node.api.down = False
        await self.node.start()

    async def _delete(self) -> None:
        name = self._one()
        if self.node.api.get("pods", name) is None:
            self.node.give(name, "300m")
        elif self._random.random() < 0.3:
            self.node.api.delete(name, 1)

    async def _api(self) -> None:
        self.node.api.down = not self.node.api.down

    def _deleting(self, name: str) -> bool:
        return "deletionTimestamp" in (self.node.api.get("pods", name) or {"metadata": {}})["metadata"]
