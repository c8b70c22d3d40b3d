"""Carries out what `decide.resize.steps` says, on the runtime and on the pods' cgroups (R-123 to R-142).

There is no transaction over a runtime and a kernel, so there is none here: steps are done in an order in which stopping
anywhere is safe, the record follows each step that worked, and the next sync works out afresh what is left.
"""

import logging
from collections.abc import Collection, Iterable, Mapping

import msgspec
from msgspec.structs import asdict, replace

from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod
from podfit.core.clock import Clock
from podfit.decide.cgroup.container_resources import ContainerResources, Machine, container_resources, effective
from podfit.decide.cgroup.pod_cgroup import PodConfig, SandboxResources, sandbox_resources, sandbox_update
from podfit.decide.managers.cpu import show
from podfit.decide.pod.allocated import NOTHING, PodResources
from podfit.decide.pod.ephemeral_containers import every_container
from podfit.decide.pod.lifecycle.facts import LinuxResources
from podfit.decide.resize import steps as resize
from podfit.decide.resize.steps import CheckMemory, GrowContainer, RecordPod, SetPod, Step, UpdateContainer
from podfit.kubelet.actuation.guarded_shrink import Guard, Hold
from podfit.kubelet.actuation.memory_check import MemoryCheck
from podfit.kubelet.actuation.pod_cgroups import PodCgroups
from podfit.kubelet.cgroup.protocol import CgroupError, Cgroups
from podfit.kubelet.checkpoints.checkpoint import CheckpointError
from podfit.kubelet.checkpoints.entries import Entries
from podfit.kubelet.managers.manager import ResourceManagers
from podfit.kubelet.runtime.errors import CRIError, Unavailable, Unimplemented
from podfit.kubelet.runtime.protocol import Runtime
from podfit.net.metrics import Metrics

log = logging.getLogger(__name__)

BUCKETS = (10, 50, 100, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000)


class ActuationError(Exception):
    """A step failed; the text goes into the condition and the event as it is."""


class LivePod(msgspec.Struct, frozen=True, kw_only=True):
    """What runs: the pod's sandbox (empty = none yet), and ids of its running containers by name."""

    sandbox_id: str = ""
    containers: Mapping[str, str]


class ActuationOutcome(msgspec.Struct, frozen=True):
    """`done` are the steps that worked; those after the one that failed with `error` were not tried."""

    done: tuple[Step, ...] = ()
    error: str = ""
    outage: bool = False
    """The runtime did not answer: it may be back in a moment."""

    @property
    def changed(self) -> bool:
        return any(not isinstance(step, CheckMemory) for step in self.done)


def restart_message(name: str) -> str:
    """Of the Killing event of a container that has to be started anew to change."""
    return f"Container {name} resize requires restart"


class Actuator:
    def __init__(
        self,
        *,
        runtime: Runtime,
        cgroups: Cgroups,
        machine: Machine,
        record: Entries,
        clock: Clock,
        metrics: Metrics,
        managers: ResourceManagers,
        guard: Guard,
    ) -> None:
        self._runtime, self._machine = runtime, machine
        self.cgroups = PodCgroups(cgroups, machine)
        self._record, self._clock, self._managers = record, clock, managers
        self._check = MemoryCheck(runtime, cgroups, guard, default=machine.memory_shrink)
        self._runtime_listens = True
        self._duration = metrics.histogram(
            "kubelet_pod_resize_duration_milliseconds",
            "Duration of actuating a pod's resize.",
            ("success",),
            buckets=BUCKETS,
        )

    # ------------------------------------------------------------------ creation

    async def ensure_pod_cgroup(self, pod: Pod, active: Iterable[Pod]) -> bool:
        """Make the pod's cgroup if it is missing, and bring the QoS tiers up to date for the `active` allocated pods.

        True when it was made: containers that ran without it have to be started anew. Recording the pod-level resources
        here is what keeps a new pod from reporting a completed resize (R-161). Raises CgroupError, CheckpointError.
        """
        missing, record = not self.cgroups.exists(pod), self._actuated(pod)
        if missing:
            self.cgroups.refresh_tiers(active)
            self.cgroups.create(pod)
        if missing or record.pod is None:
            await self._save(pod, PodResources(record.containers, pod.spec.resources or NOTHING))
        return missing

    async def before_create(self, pod: Pod, name: str) -> None:
        """Record the resources that the container is about to be created with; an ephemeral one has none. Raises
        CheckpointError.
        """
        if name in {container.name for container in pod.spec.ephemeral_containers}:
            return
        await self._save(pod, self._actuated(pod).with_container(name, effective(pod, _container(pod, name))))

    def container(self, pod: Pod, name: str) -> LinuxResources:
        """For create_container."""
        resources = _linux(container_resources(pod, _container(pod, name), self._machine))
        uid = pod.metadata.uid
        return replace(
            resources, cpuset_cpus=show(self._managers.cpuset(uid, name)), cpuset_mems=self._managers.mems(uid, name)
        )

    def sandbox(self, pod: Pod) -> tuple[LinuxResources, LinuxResources | None]:
        """Resources and overhead for run_sandbox."""
        return _both(sandbox_resources(pod, self._machine))

    # ------------------------------------------------------------------ resize

    def restarts(self, pod: Pod, live: LivePod) -> tuple[str, ...]:
        """Running containers to be killed before `resize`, and started again after it (R-125, R-126)."""
        return resize.restarts(pod, self._actuated(pod), live.containers, self._machine.gates)

    async def resize(self, pod: Pod, live: LivePod) -> ActuationOutcome:
        """Make runtime and pod cgroup what was allocated. To be called in every sync, before containers start.

        Usually there is nothing to do, which takes two small reads. An error is in the answer: what failed is tried
        again by the next call.
        """
        try:
            now = self.cgroups.read(pod)
        except CgroupError as error:
            return ActuationOutcome(error=str(error))
        if now is None:
            return ActuationOutcome()
        steps = resize.steps(pod, self._actuated(pod), live.containers, now, self._machine)
        if not steps:
            return ActuationOutcome()
        started = self._clock.monotonic()
        outcome = await self._carry_out(pod, live, steps)
        milliseconds = (self._clock.monotonic() - started) * 1000
        self._duration.labels("false" if outcome.error else "true").observe(milliseconds)
        return outcome

    async def _carry_out(self, pod: Pod, live: LivePod, steps: Iterable[Step]) -> ActuationOutcome:
        done: list[Step] = []
        grown: list[GrowContainer] = []
        async with self._check.hold() as hold:
            for step in steps:
                try:
                    await self._do(pod, live, step, hold, grown)
                except (ActuationError, CRIError, CgroupError, CheckpointError) as error:
                    log.warning("resize failed pod=%s/%s error=%s", pod.metadata.namespace, pod.metadata.name, error)
                    if isinstance(error, CRIError) and not isinstance(error, Unavailable):
                        self._put_back(pod, live, [step for step in grown if not step.agreed(done)])
                    return ActuationOutcome(tuple(done), str(error), outage=isinstance(error, Unavailable))
                done.append(step)
        return ActuationOutcome(tuple(done))

    async def _do(self, pod: Pod, live: LivePod, step: Step, hold: Hold, grown: list[GrowContainer]) -> None:
        match step:
            case CheckMemory(limits):
                path = self.cgroups.path(pod)
                objection = await self._check.objection(pod, path, live.containers, limits, hold)
                if objection:
                    raise ActuationError(objection)
            case SetPod():
                await self._set_pod(pod, live, step)
            case GrowContainer():
                if self._grow(pod, live, step):
                    grown.append(step)
            case UpdateContainer():
                await self._runtime.update_container_resources(live.containers[step.name], _linux(step.resources))
                await self._save(pod, self._actuated(pod).with_container(step.name, step.actuated))
            case RecordPod(actuated):
                await self._save(pod, PodResources(self._actuated(pod).containers, actuated))

    def _grow(self, pod: Pod, live: LivePod, step: GrowContainer) -> bool:
        """Whether it was written. What the kernel refuses the runtime may still manage: it is asked next."""
        try:
            return self.cgroups.grow(pod, live.containers[step.name], step)
        except CgroupError as error:
            log.info("growth left to the runtime pod=%s/%s error=%s", pod.metadata.namespace, pod.metadata.name, error)
            return False

    def _put_back(self, pod: Pod, live: LivePod, grown: Iterable[GrowContainer]) -> None:
        """The kernel holds again what the runtime does, as far as what is in use allows."""
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        for step in grown:
            try:
                if not self.cgroups.put_back(pod, live.containers[step.name], step):
                    log.warning("growth stays, more is in use than before pod=%s container=%s", name, step.name)
            except CgroupError as error:
                log.warning("growth stays pod=%s container=%s error=%s", name, step.name, error)

    async def _set_pod(self, pod: Pod, live: LivePod, step: SetPod) -> None:
        """The runtime is told first and may object; then the kernel is, and if that fails the runtime is told again."""
        try:
            await self._tell(pod, live, step.config)
        except CRIError as error:
            raise ActuationError(
                f"failed to notify runtime for UpdatePodSandboxResources (resource={step.resource}); "
                f"resize rejected: {error}"
            ) from error
        try:
            self.cgroups.write(pod, step)
        except CgroupError:
            await self._tell(pod, live, step.before)
            raise

    async def _tell(self, pod: Pod, live: LivePod, config: PodConfig) -> None:
        """Most runtimes do not have the call; the first refusal is taken for an answer (R-139)."""
        if not self._runtime_listens or not live.sandbox_id:
            return
        resources, overhead = _both(sandbox_update(pod, config, self._machine))
        try:
            await self._runtime.update_sandbox_resources(live.sandbox_id, resources=resources, overhead=overhead)
        except Unimplemented:
            self._runtime_listens = False

    # ------------------------------------------------------------------ what is there

    def actuated(self, uid: str) -> PodResources | None:
        return self._record.get(uid)

    def forget(self, uid: str) -> None:
        self._record.forget(uid)

    def retain(self, uids: Collection[str]) -> None:
        self._record.retain(uids)

    def _actuated(self, pod: Pod) -> PodResources:
        return self._record.get(pod.metadata.uid) or PodResources()

    async def _save(self, pod: Pod, resources: PodResources) -> None:
        await self._record.put({pod.metadata.uid: resources})


def _container(pod: Pod, name: str) -> Container:
    return next(container for container in every_container(pod) if container.name == name)


def _linux(resources: ContainerResources) -> LinuxResources:
    return LinuxResources(**asdict(resources))


def _both(resources: SandboxResources) -> tuple[LinuxResources, LinuxResources | None]:
    return _linux(resources.resources), _linux(resources.overhead) if resources.overhead else None
