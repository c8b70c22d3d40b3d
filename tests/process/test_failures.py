"""What ends by itself in a process is told: the process ends with the error, or the node says that it is not well."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podfit.api.core.v1.pods.containers import Container
from podfit.apiserver.extensions.aggregation.table import Aggregation
from podfit.apiserver.housekeeping.compaction import Compaction
from podfit.client.events import EventRecorder
from podfit.controllers.namespaces import NamespaceController
from podfit.core.clock import Clock
from podfit.decide.pod.pull_credentials import Credential
from podfit.kubelet.allocation.manager import AllocationManager
from podfit.kubelet.images.puller import Puller
from podfit.kubelet.node.pressure import PressureMonitor
from podfit.kubelet.runtime.labels import PodRef
from podfit.kubelet.runtime.protocol import Images
from podfit.kubelet.runtime.simulated import SimulatedRuntime
from podfit.net.supervisor import EndedUnexpectedly
from podfit.net.wire import Identity, Request
from podfit.process.control.stores import passing_store
from podfit.process.data.data_dir import DataDir
from podfit.process.foreground import run_until_stopped
from podfit.process.options import ApiServerOptions, NodeKind, UpOptions
from podfit.process.up import Cluster
from podfit.scheduler.scheduler import Scheduler

SECONDS = 60.0


async def _breaks(_self: object) -> None:
    raise ValueError("broken")


async def _ends(_self: object) -> None:
    return


@asynccontextmanager
async def running(root: Path, node: NodeKind) -> AsyncIterator[Cluster]:
    api = ApiServerOptions(data=DataDir(root), port=0, kubeconfig=root.with_name("config"))
    cluster = await Cluster.start(UpOptions(api=api, node=node), announce=lambda _: None, store=passing_store)
    try:
        yield cluster
    finally:
        await cluster.stop(pods=False)


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Compaction, "run"),
        (Aggregation, "_repeat"),
        (NamespaceController, "run"),
        (Scheduler, "run"),
        (EventRecorder, "run"),
    ],
)
async def test_a_part_that_breaks_ends_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    monkeypatch.setattr(owner, name, _breaks)
    async with running(tmp_path / "data", NodeKind.NONE) as cluster, asyncio.timeout(SECONDS):
        with pytest.raises(ValueError, match="broken"):
            await cluster.failure()


async def test_a_part_that_ends_by_itself_ends_the_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scheduler, "run", _ends)
    async with running(tmp_path / "data", NodeKind.NONE) as cluster, asyncio.timeout(SECONDS):
        with pytest.raises(EndedUnexpectedly, match="ended by itself"):
            await cluster.failure()


async def _health(cluster: Cluster) -> int:
    request = Request("GET", "/healthz").with_identity(Identity("system:masters"))
    return (await cluster.nodes[0].handler(request)).status


async def test_a_job_of_the_kubelet_that_breaks_makes_the_node_unhealthy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = asyncio.Event()

    async def later(_self: object) -> None:
        await gate.wait()
        raise ValueError("broken")

    monkeypatch.setattr(PressureMonitor, "run", later)
    async with running(tmp_path / "data", NodeKind.SIMULATED) as cluster, asyncio.timeout(SECONDS):
        assert await _health(cluster) == 200
        gate.set()
        with pytest.raises(ValueError, match="broken"):
            await cluster.nodes[0]._kubelet._supervisor.failure()
        assert await _health(cluster) == 500


async def test_a_retry_of_resizes_that_breaks_makes_the_node_unhealthy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[AllocationManager] = []
    made = AllocationManager.sources_ready

    async def seen(self: AllocationManager) -> None:
        kept.append(self)
        await made(self)

    async def breaks(_self: object, _trigger: str) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(AllocationManager, "sources_ready", seen)
    monkeypatch.setattr(AllocationManager, "retry", breaks)
    async with running(tmp_path / "data", NodeKind.SIMULATED) as cluster, asyncio.timeout(SECONDS):
        kept[0].retry_soon("test")
        with pytest.raises(ValueError, match="broken"):
            await cluster.nodes[0]._kubelet._supervisor.failure()
        assert await _health(cluster) == 500


async def test_a_pull_that_breaks_makes_the_node_unhealthy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Puller] = []
    init = Puller.__init__

    def kept(self: Puller, images: Images, *, clock: Clock) -> None:
        init(self, images, clock=clock)
        made.append(self)

    async def breaks(_self: object, _image: str, _credential: object) -> str:
        raise ValueError("broken")

    async def nobody() -> tuple[Credential, ...]:
        return ()

    monkeypatch.setattr(Puller, "__init__", kept)
    monkeypatch.setattr(SimulatedRuntime, "pull_image", breaks)
    async with running(tmp_path / "data", NodeKind.SIMULATED) as cluster, asyncio.timeout(SECONDS):
        with pytest.raises(ValueError, match="broken"):
            await made[0].ensure(PodRef("u", "web", "default"), Container(image="web:latest"), lambda *_: None, nobody)
        with pytest.raises(ValueError, match="broken"):
            await cluster.nodes[0]._kubelet._supervisor.failure()
        assert await _health(cluster) == 500


class Process:
    """`failed` breaks it."""

    def __init__(self) -> None:
        self.failed = asyncio.Event()
        self.stopped: list[bool] = []

    async def failure(self) -> None:
        await self.failed.wait()
        raise ValueError("broken")

    async def stop(self, *, pods: bool) -> None:
        self.stopped.append(pods)


async def test_a_process_that_breaks_is_stopped_and_its_error_raised() -> None:
    process = Process()

    async def start() -> Process:
        return process

    with pytest.raises(ValueError, match="broken"):
        await run_until_stopped(start(), ready=lambda it: it.failed.set())
    assert process.stopped == [False]


@pytest.mark.parametrize(("number", "pods"), [(signal.SIGTERM, False), (signal.SIGINT, True)])
async def test_a_signal_stops_a_process(number: signal.Signals, pods: bool) -> None:
    process = Process()

    async def start() -> Process:
        return process

    await run_until_stopped(start(), ready=lambda _: signal.raise_signal(number))
    assert process.stopped == [pods]


async def test_a_cluster_that_runs_well_is_well(tmp_path: Path) -> None:
    """Also a node without static pods, without pools of CPUs, and whose runtime tells no events."""
    async with running(tmp_path / "data", NodeKind.SIMULATED) as cluster, asyncio.timeout(SECONDS):
        assert await _health(cluster) == 200
        assert cluster.nodes[0]._kubelet._supervisor.broken is None
        assert cluster._supervisor.broken is None
