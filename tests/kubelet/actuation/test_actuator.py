"""The steps carried out on a runtime and a cgroup that write down what they are told."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod
from podfit.core.shared_map import SharedMap
from podfit.decide.cgroup.container_resources import Machine
from podfit.decide.lifecycle.facts import LinuxResources
from podfit.decide.node.drive import drive
from podfit.decide.node.effects import Effect, RecordEvent
from podfit.decide.node.events import Event
from podfit.decide.node.machine import step
from podfit.decide.node.state import NodeState
from podfit.decide.pod.allocated import PodResources
from podfit.decide.pod.resize_state import IN_PROGRESS
from podfit.decide.resize.verdict import NodeView
from podfit.kubelet.actuation.actuation import Actuation
from podfit.kubelet.actuation.actuator import Actuator, LivePod
from podfit.kubelet.actuation.guarded_shrink import Guard
from podfit.kubelet.cgroup.protocol import (
    CgroupConfig,
    CgroupError,
    Cgroups,
    ContainerValues,
    CPUValues,
    Invalid,
    Layout,
    Missing,
)
from podfit.kubelet.checkpoints.checkpoint import Checkpoint
from podfit.kubelet.disk.writer import DiskWriter
from podfit.kubelet.managers.config import ManagersConfig
from podfit.kubelet.managers.manager import ResourceManagers
from podfit.kubelet.runtime.errors import CRIError, Unimplemented
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.runtime.types import ContainerStats
from podfit.net.metrics import Metrics
from support.clock import FakeClock
from support.placed import placed, resized
from support.pods import amounts, container, needs, pod

MI = 1 << 20
LIVE = LivePod(sandbox_id="box", containers={"c1": "id1"})
SMALL = needs({"cpu": "100m", "memory": "64Mi"}, {"cpu": "200m", "memory": "128Mi"})
LARGE = needs({"cpu": "200m", "memory": "128Mi"}, {"cpu": "400m", "memory": "256Mi"})
WEB = placed(pod(container("c1", {"cpu": "100m", "memory": "64Mi"}, {"cpu": "200m", "memory": "128Mi"})))


class Resized(NamedTuple):
    error: str
    changed: bool


class OnePod:
    """The machine of a node that has nothing else to decide."""

    def __init__(self, record: Checkpoint) -> None:
        view = NodeView(allocatable={}, machine=Machine(memory=8 << 30))
        self.state = NodeState(view=view, actuated=SharedMap(record.entries))
        record.on_put = self._noted

    def _noted(self, changes: Mapping[str, PodResources]) -> None:
        for uid, resources in changes.items():
            self.state = self.state.with_actuated(uid, resources)

    async def take(self, event: Event) -> tuple[Effect, ...]:
        self.state, effects = step(self.state, event, now=FakeClock().now())
        return effects

    async def carry_out(self, effect: Effect) -> tuple[Event, ...]:
        assert isinstance(effect, RecordEvent), effect
        return ()

    def error(self, pod: Pod) -> str:
        condition = self.state.conditions.get(IN_PROGRESS, pod.metadata.uid)
        return condition.message if condition else ""


class Node:
    """The runtime and the cgroup tree in one, so that their calls come in one list."""

    def __init__(self, folder: Path) -> None:
        self.said: list[str] = []
        self.refuse: dict[str, Exception] = {}
        self.usage: dict[str, int | None] = {}
        self.held: dict[str, dict[str, int | None]] = {}
        self.layout = Layout()
        self.version = "v1"
        self.record = Checkpoint(folder / "actuated_pods_state", DiskWriter(FakeClock()))
        self.metrics = Metrics()
        self.actuator = self.restarted()

    def restarted(self) -> Actuator:
        """The kubelet is new, the files are not."""
        self.record = Checkpoint(self.record.path, DiskWriter(FakeClock()))
        self.metrics = Metrics()
        return Actuator(
            runtime=cast(Runtime, self),
            cgroups=cast(Cgroups, self),
            machine=Machine(memory=8 << 30),
            record=self.record,
            clock=FakeClock(),
            metrics=self.metrics,
            managers=ResourceManagers(ManagersConfig(), self.record.path.parent, DiskWriter(FakeClock())),
            guard=Guard(cast(Cgroups, self), FakeClock(), self.record.path.parent / "notes"),
        )

    async def runs(self, pod: Pod) -> None:
        """The pod runs at its size; what led to it is forgotten."""
        await self.actuator.ensure_pod_cgroup(pod, [pod])
        for member in pod.spec.containers:
            await self.actuator.before_create(pod, member.name)
        self.said.clear()

    async def resize(self, pod: Pod, live: LivePod) -> "Resized":
        """One round of a sync with a machine that knows of this pod what the record says."""
        machine = OnePod(self.record)

        async def stop(_restarting: Collection[str]) -> None:
            raise AssertionError("nothing restarts here")

        async with Actuation(self.actuator, pod, live, node=machine, stop=stop) as actuation:
            await drive(machine, actuation, actuation.due())
        return Resized(machine.error(pod), actuation.changed)

    def _say(self, line: str) -> None:
        self.said.append(line)
        for beginning, error in self.refuse.items():
            if line.startswith(beginning):
                raise error

    # ------------------------------------------------------------------ runtime

    async def update_sandbox_resources(
        self, sandbox_id: str, *, resources: LinuxResources, overhead: LinuxResources | None = None
    ) -> None:
        extra = f" overhead={overhead.cpu_shares}/{overhead.memory_limit}" if overhead else ""
        self._say(f"tell {resources.cpu_shares}/{resources.cpu_quota}/{resources.memory_limit}{extra}")

    async def update_container_resources(self, container_id: str, resources: LinuxResources) -> None:
        self._say(f"update {container_id} {resources.cpu_shares}/{resources.cpu_quota}/{resources.memory_limit}")

    async def container_stats(self, container_id: str) -> ContainerStats:
        return ContainerStats(id=container_id, timestamp=0, memory_usage=self.usage.get("stats"))

    # ------------------------------------------------------------------ cgroups

    def exists(self, path: str) -> bool:
        return path in self.held

    def create(self, path: str, config: CgroupConfig) -> None:
        self._say(f"create {path} {config.cpu_shares}/{config.cpu_quota}/{config.memory_limit}")
        self.held[path] = {"shares": config.cpu_shares, "quota": config.cpu_quota, "memory": config.memory_limit}

    def read_cpu(self, path: str) -> CPUValues:
        if "read" in self.refuse:
            raise self.refuse["read"]
        return CPUValues(shares=self.held[path]["shares"] or 2, quota=self.held[path]["quota"], period=100_000)

    def read_memory(self, path: str) -> int | None:
        return self.held[path]["memory"]

    def set_cpu_shares(self, path: str, shares: int) -> None:
        self._say(f"pod shares {shares}")
        self.held[path]["shares"] = shares

    def set_cpu_limit(self, path: str, *, quota: int, period: int) -> None:
        self._say(f"pod quota {quota}")
        self.held[path]["quota"] = quota

    def set_memory_limit(self, path: str, limit: int) -> None:
        self._say(f"pod memory {limit}")
        self.held[path]["memory"] = limit

    def memory_usage(self, path: str) -> int | None:
        return self.usage.get("pod")

    def read_container(self, path: str) -> ContainerValues:
        if "stats" in self.usage:
            raise Missing(path)
        name = path.rsplit("/", 1)[1]
        return ContainerValues(
            cpu=CPUValues(shares=2, quota=None, period=100_000), memory_limit=None, memory_usage=self.usage.get(name)
        )


@pytest.fixture
def node(tmp_path: Path) -> Node:
    fake = Node(tmp_path)
    fake.refuse["tell"] = Unimplemented("unknown method UpdatePodSandboxResources")
    return fake


def without_tells(said: Sequence[str]) -> list[str]:
    return [line for line in said if not line.startswith("tell")]


@pytest.mark.row("R-135", "R-161")
async def test_the_cgroup_comes_with_its_values_and_a_record(node: Node) -> None:
    level = needs({"cpu": "1"}, {"cpu": "2"})
    whole = placed(pod(container("c1", {"cpu": "100m"}), resources=level, overhead=amounts({"cpu": "24m"})))
    beside = replace(WEB, metadata=replace(WEB.metadata, uid="beside"))
    assert await node.actuator.ensure_pod_cgroup(whole, [whole, beside])
    assert node.said == [
        "create /kubepods/burstable 1150/None/None",
        "create /kubepods/besteffort 2/None/None",
        "create /kubepods/burstable/podweb 1048/202400/None",
    ]
    record = node.actuator.actuated("web")
    assert record is not None
    assert record.pod == level
    assert not await node.actuator.ensure_pod_cgroup(whole, [whole])


@pytest.mark.row("R-135")
async def test_the_tiers_follow_pods_that_change_and_go(node: Node) -> None:
    for active in (
        [WEB],
        [WEB],
        [resized(WEB, c1=LARGE)],
        [replace(WEB, metadata=replace(WEB.metadata, uid="2")), WEB],
        [],
    ):
        node.actuator.cgroups.refresh_tiers(active)
    burstable = [line for line in node.said if "besteffort" not in line]
    assert burstable == [f"create /kubepods/burstable {shares}/None/None" for shares in (102, 102, 204, 204, 2)]


@pytest.mark.row("R-123", "R-124", "R-130", "R-131", "R-139")
async def test_growth(node: Node) -> None:
    await node.runs(WEB)
    outcome = await node.resize(resized(WEB, c1=LARGE), LIVE)
    assert outcome.error == ""
    assert outcome.changed
    assert node.said == [
        f"tell 102/20000/{256 * MI}",  # refused once as unimplemented, not asked again
        f"pod memory {256 * MI}",
        f"update id1 102/20000/{256 * MI}",
        "pod quota 40000",
        "pod shares 204",
        f"update id1 204/40000/{256 * MI}",
    ]
    node.said.clear()
    assert not (await node.resize(resized(WEB, c1=LARGE), LIVE)).changed
    assert node.said == []


@pytest.mark.row("R-138")
async def test_the_runtime_hears_of_each_change_first_and_without_overhead(node: Node) -> None:
    del node.refuse["tell"]
    web = placed(pod(container("c1", {"cpu": "100m"}), overhead=amounts({"cpu": "100m", "memory": "16Mi"})))
    await node.runs(web)
    await node.resize(resized(web, c1=needs({"cpu": "400m"})), LIVE)
    assert node.said == [f"tell 409/0/0 overhead=102/{16 * MI}", "pod shares 512", "update id1 409/0/0"]


@pytest.mark.row("R-140")
async def test_the_runtimes_objection_stops_everything(node: Node) -> None:
    node.refuse["tell"] = CRIError("NRI plugin vetoed it")
    await node.runs(WEB)
    outcome = await node.resize(resized(WEB, c1=LARGE), LIVE)
    assert outcome.error == (
        "failed to notify runtime for UpdatePodSandboxResources (resource=memory); "
        "resize rejected: NRI plugin vetoed it"
    )
    assert without_tells(node.said) == []


async def test_the_runtime_is_told_again_when_the_kernel_refuses(node: Node) -> None:
    del node.refuse["tell"]
    node.refuse["pod memory"] = Invalid("memory.limit_in_bytes: EINVAL")
    await node.runs(WEB)
    outcome = await node.resize(resized(WEB, c1=LARGE), LIVE)
    assert outcome.error == "memory.limit_in_bytes: EINVAL"
    assert node.said == [f"tell 102/20000/{256 * MI}", f"pod memory {256 * MI}", f"tell 102/20000/{128 * MI}"]


@pytest.mark.row("R-141", "R-142", "R-174", "R-188")
async def test_a_failed_update_is_taken_up_where_it_stopped(node: Node) -> None:
    await node.runs(WEB)
    larger = resized(WEB, c1=LARGE)
    node.refuse["update id1 204"] = CRIError("connection refused")
    assert (await node.resize(larger, LIVE)).error == "connection refused"
    assert 'kubelet_pod_resize_duration_milliseconds_count{success="false"} 1.0' in node.metrics.exposition().decode()
    del node.refuse["update id1 204"]
    node.said.clear()
    assert (await node.resize(larger, LIVE)).error == ""
    assert node.said == [f"update id1 204/40000/{256 * MI}"]


async def test_a_crash_after_the_call_repeats_it(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    await node.runs(WEB)
    larger = resized(WEB, c1=needs({"cpu": "100m", "memory": "64Mi"}, {"cpu": "200m", "memory": "256Mi"}))

    async def die(changes: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(node.record, "put", die)
    with pytest.raises(KeyboardInterrupt):
        await node.resize(larger, LIVE)
    node.actuator = node.restarted()
    node.said.clear()
    assert (await node.resize(larger, LIVE)).error == ""
    assert without_tells(node.said) == [f"update id1 102/20000/{256 * MI}"]


@pytest.mark.row("R-143", "R-144")
@pytest.mark.parametrize(
    ("usage", "error"),
    [
        (
            {"id1": 90 * MI, "pod": 10 * MI},
            f'attempting to set container "c1" memory limit ({80 * MI}) below current usage ({90 * MI})',
        ),
        (
            {"id1": 90 * MI, "pod": 91 * MI},
            (
                f"[attempting to set pod memory limit ({80 * MI}) below current usage ({91 * MI}), "
                f'attempting to set container "c1" memory limit ({80 * MI}) below current usage ({90 * MI})]'
            ),
        ),
        (
            {"stats": 90 * MI, "pod": 10 * MI},
            f'attempting to set container "c1" memory limit ({80 * MI}) below current usage ({90 * MI})',
        ),
        ({"pod": 10 * MI}, 'missing container "c1" memory usage'),
    ],
)
async def test_memory_in_use_is_not_taken_away(node: Node, usage: dict[str, int | None], error: str) -> None:
    await node.runs(WEB)
    node.usage = usage
    smaller = resized(WEB, c1=needs({"cpu": "50m", "memory": "64Mi"}, {"cpu": "100m", "memory": "80Mi"}))
    assert (await node.resize(smaller, LIVE)).error == f"cannot decrease memory limits: {error}"
    assert node.said == []
    assert not (await node.resize(WEB, LIVE)).error


@pytest.mark.row("R-132", "R-145")
async def test_shrink_above_usage(node: Node) -> None:
    await node.runs(WEB)
    node.usage = {"id1": 70 * MI, "pod": 70 * MI}
    smaller = resized(WEB, c1=needs({"cpu": "50m", "memory": "64Mi"}, {"cpu": "100m", "memory": "80Mi"}))
    assert (await node.resize(smaller, LIVE)).error == ""
    assert without_tells(node.said) == [
        f"update id1 102/20000/{80 * MI}",
        f"pod memory {80 * MI}",
        f"update id1 51/10000/{80 * MI}",
        "pod shares 51",
        "pod quota 10000",
    ]


async def test_unreadable_usage_and_cgroup(node: Node) -> None:
    await node.runs(WEB)
    smaller = resized(WEB, c1=needs({"cpu": "100m"}, {"cpu": "200m", "memory": "80Mi"}))
    node.refuse["read"] = CgroupError("EIO")
    assert (await node.resize(smaller, LIVE)).error == "unable to get pod cgroup cpu config for pod web: EIO"
    del node.refuse["read"]

    def broken(path: str) -> int:
        raise CgroupError("EIO")

    node.memory_usage = broken  # type: ignore[method-assign]  # a fault put in
    assert (await node.resize(smaller, LIVE)).error == (
        'cannot decrease memory limits: unable to read memory usage for pod "web_default(web)"'
    )


@pytest.mark.row("R-167", "R-168")
async def test_down_container_starts_larger_in_a_larger_pod(node: Node) -> None:
    await node.runs(WEB)
    larger = resized(WEB, c1=LARGE)
    none = LivePod(sandbox_id="box", containers={})
    await node.resize(larger, none)
    assert without_tells(node.said) == [f"pod memory {256 * MI}", "pod quota 40000", "pod shares 204"]
    await node.actuator.before_create(larger, "c1")
    made = node.actuator.container(larger, "c1")
    assert (made.cpu_shares, made.cpu_quota, made.memory_limit) == (204, 40_000, 256 * MI)
    node.said.clear()
    assert not (await node.resize(larger, LIVE)).changed
    assert node.said == []
