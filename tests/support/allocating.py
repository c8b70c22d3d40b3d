"""An allocation manager on a node of four CPUs and 8 GiB, with everything it says and does written down.

node = Allocating(tmp_path)
await node.start(a, b)                  both are admitted, and every source is ready
await node.wants(a, c1=needs(…))        a resize arrives
node.settles(a)                         as if the worker had actuated and reported it
"""

from pathlib import Path

import msgspec

from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.types import Pod, PodCondition, PodStatus
from podfit.core.quantity import Quantity
from podfit.decide.cgroup.container_resources import Machine, effective
from podfit.decide.node.effects import Admitted, Answer
from podfit.decide.pod.allocated import PodResources, resizable
from podfit.decide.resize.verdict import NodeView
from podfit.kubelet.allocation.manager import AllocationManager
from podfit.kubelet.checkpoints.checkpoint import Checkpoint
from podfit.kubelet.checkpoints.file import Write
from podfit.kubelet.disk.writer import DiskWriter, Threads
from podfit.kubelet.managers.config import ManagersConfig
from podfit.kubelet.managers.manager import ResourceManagers
from podfit.net.files import write_atomic
from podfit.net.metrics import Metrics
from support.clock import FakeClock
from support.placed import resized

ALLOCATABLE = {"cpu": Quantity.of(4), "memory": Quantity.of_bytes(8 << 30)}


class Allocating:
    """Its checkpoints are written at once, or by `threads`."""

    def __init__(
        self,
        folder: Path,
        *,
        clock: FakeClock | None = None,
        write: Write = write_atomic,
        threads: Threads | None = None,
    ) -> None:
        self.clock = clock or FakeClock()
        self.folder = folder
        self.view = NodeView(allocatable=ALLOCATABLE, machine=Machine(memory=8 << 30))
        self.writer = DiskWriter(self.clock, threads)
        self.allocated = Checkpoint(folder / "allocated_pods_state", self.writer, write=write)
        self.actuated = Checkpoint(folder / "actuated_pods_state", self.writer, write=write)
        self.metrics = Metrics()
        self.events: list[str] = []
        self.synced: list[str] = []
        self.grown: list[str] = []
        self.told_to_end: list[str] = []
        self.desired: dict[str, Pod] = {}
        self.reported: dict[str, PodStatus] = {}
        self.manager = AllocationManager(
            allocated=self.allocated,
            actuated=self.actuated,
            node=lambda: self.view,
            clock=self.clock,
            emit=lambda pod, *event: self.events.append(" ".join([pod.metadata.name, *event])),
            sync=lambda uid, trigger: self.synced.append(f"{uid} {trigger}"),
            grow=lambda pod: self.grown.append(pod.metadata.name),
            end=self.told_to_end.append,
            metrics=self.metrics,
            managers=ResourceManagers(ManagersConfig(), folder, self.writer),
        )

    async def add(self, *pods: Pod) -> tuple[Answer, ...]:
        answers = await self.manager.add(pods)
        for answer in answers:
            if isinstance(answer, Admitted):
                pod = next(pod for pod in pods if pod.metadata.uid == answer.pod.metadata.uid)
                self.desired[pod.metadata.uid] = pod
        return answers

    async def start(self, *pods: Pod) -> None:
        await self.add(*pods)
        await self.manager.sources_ready()
        for pod in pods:
            await self.settles(pod)

    async def wants(self, pod: Pod, *, level: ResourceRequirements | None = None, **to: ResourceRequirements) -> Pod:
        """The API's pod is resized; answers the new generation."""
        new = self.desired[pod.metadata.uid] = resized(self.desired[pod.metadata.uid], level=level, **to)
        await self.manager.update([new])
        return new

    async def settles(self, pod: Pod) -> None:
        """The pod runs at its allocated size, all of it actuated, and says so."""
        uid = pod.metadata.uid
        now = (await self.manager.begin_sync(lambda: self.desired[uid], ())).pod
        record = {container.name: effective(now, container) for container in resizable(now, self.view.gates)}
        await self.actuated.put({uid: PodResources(record, now.spec.resources or ResourceRequirements())})
        now = (await self.manager.begin_sync(lambda: self.desired[uid], record)).pod
        statuses = tuple(
            ContainerStatus(
                name=container.name, resources=container.resources, allocated_resources=container.resources.requests
            )
            for container in now.spec.containers
        )
        status = msgspec.structs.replace(pod.status, phase="Running", container_statuses=statuses)
        self.reported[uid] = status
        await self.manager.reconcile(uid, status)

    async def ends(self, pod: Pod) -> None:
        await self.manager.reconcile(pod.metadata.uid, msgspec.structs.replace(pod.status, phase="Succeeded"))

    def cpu(self, pod: Pod) -> int:
        """Milli-CPUs promised to the pod's first container."""
        allocated = self.manager.allocated(self.desired[pod.metadata.uid])
        return allocated.spec.containers[0].resources.requests["cpu"].milli()

    def condition(self, pod: Pod, kind: str = "PodResizePending") -> PodCondition | None:
        return next(
            (condition for condition in self.manager.conditions(pod.metadata.uid) if condition.type == kind), None
        )

    def metric(self, line: str) -> float:
        """The value of one line of the exposition, 0 when it is not there."""
        lines = self.metrics.exposition().decode().splitlines()
        return next((float(sample.rsplit(" ", 1)[1]) for sample in lines if sample.rsplit(" ", 1)[0] == line), 0.0)
