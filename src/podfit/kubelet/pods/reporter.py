"""Reports a pod's state: its status to the API, what it uses to allocation."""

from collections.abc import Callable

from msgspec.structs import replace

from podfit.api.core.v1.pods.container_status import ContainerStateWaiting
from podfit.api.core.v1.pods.phase import ENDED
from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.decide.pod.allocated import PodResources
from podfit.decide.pod.lifecycle.facts import Failure, PodFacts, StatusInput
from podfit.decide.pod.lifecycle.status import generate, rejected
from podfit.kubelet.allocation.manager import Allocated
from podfit.kubelet.pods.worker_context import WorkerContext
from podfit.kubelet.status.writer import StatusWriter


class Reporter:
    """For one pod. `waiting` says why containers do not run, by name; `failure` why it was ended from outside."""

    def __init__(self, context: WorkerContext, writer: StatusWriter, *, first_seen: float) -> None:
        self.writer = writer
        self.waiting: dict[str, ContainerStateWaiting] = {}
        self.failure: Failure | None = None
        self._context = context
        self._sized: Pod | None = None
        self._first_seen: float | None = first_seen if writer.status.phase in ("", "Pending") else None

    @property
    def ended(self) -> bool:
        """Whether the pod has come to its end, as it was last reported."""
        return self.writer.status.phase in ENDED

    @property
    def is_open(self) -> bool:
        """Whether something is still to come: a container that waits, the pod's end, or a write."""
        return bool(self.waiting) or self.failure is not None or self.ended or not self.writer.is_written

    @property
    def was_rejected(self) -> bool:
        """Whether the node never took it in: its status tells of no container."""
        return self.ended and not self.writer.status.container_statuses

    async def report(self, newest: Callable[[], Pod], facts: PodFacts, *, ending: bool = False) -> Pod:
        """Say what is; answers the allocated pod with the status just made. `newest` is the API's pod, as it is known
        once no decision is half told. `ending`: nothing will be started again.

        Allocation hears of it before the API does, so room that came free is given away at once. A pod that is over
        keeps the size with which it ended, whatever is asked of it afterwards.
        """
        seen = await self._seen(newest, facts)
        status = generate(self._input(seen, facts, ending=ending))
        self.writer.set(status, passing=not facts.containers and not self.waiting and not ending)
        await self._context.allocation.reconcile(seen.desired.metadata.uid, status)
        self._count_start(status)
        return replace(seen.pod, status=status)

    async def freed(self, pod: Pod, facts: PodFacts) -> None:
        """Nothing of it runs any more: allocation hears of it while the sandbox comes down, the API after that."""
        seen = await self._seen(lambda: pod, facts)
        status = generate(self._input(seen, facts, ending=True), freed=True)
        await self._context.allocation.reconcile(pod.metadata.uid, status)

    async def _seen(self, newest: Callable[[], Pod], facts: PodFacts) -> Allocated:
        seen = await self._context.allocation.begin_sync(newest, [container.name for container in facts.running])
        if self.ended and self._sized is not None:
            seen = replace(seen, pod=self._sized)
        self._sized = seen.pod
        return seen

    def rejected(self, pod: Pod, reason: str, message: str) -> None:
        self.writer.set(rejected(pod, reason, message, self._context.clock.now()))

    def _input(self, seen: Allocated, facts: PodFacts, *, ending: bool) -> StatusInput:
        context, uid = self._context, seen.desired.metadata.uid
        return StatusInput(
            pod=seen.desired,
            allocated=seen.pod,
            previous=self.writer.status,
            observed=facts,
            machine=context.machine,
            node_ip=context.config.host_ip,
            now=context.clock.now(),
            runtime_name=context.runtime_name,
            resize_conditions=seen.conditions,
            waiting=self.waiting,
            actuated=context.actuator.actuated(uid) or PodResources(),
            pod_values=context.actuator.cgroups.values(seen.pod),
            ended=ending,
            failure=self.failure,
        )

    def _count_start(self, status: PodStatus) -> None:
        if self._first_seen is not None and status.phase == "Running":
            self._context.metrics.start.observe(self._context.clock.monotonic() - self._first_seen)
            self._first_seen = None
