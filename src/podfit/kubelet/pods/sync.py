"""One sync of a pod: brings the runtime a step closer to what is allocated.

    look → in-progress condition and status → volumes → pod cgroup → sandbox
         → init containers → restarts and resize → containers → look again → status

A turn goes round until nothing more can be done now; a round that did nothing leaves nothing new to look at, unless it
found that a resize is over, and a turn that finds all as such a round left it is over at once. It remembers nothing
that the runtime, the checkpoints or the API could not tell it again, apart from why containers wait.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.container_status import ContainerStateWaiting
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod
from podfit.core.backoff import delay_after
from podfit.decide.node.drive import drive
from podfit.decide.pod.ephemeral_containers import every_container
from podfit.decide.pod.lifecycle.actions import Kill, PodActions, plan
from podfit.decide.pod.lifecycle.facts import PodFacts
from podfit.decide.pod.lifecycle.termination import spec_grace
from podfit.decide.pod.naming import resolver
from podfit.kubelet.actuation.actuator import LivePod, restart_message
from podfit.kubelet.pods.configs import log_directory, sandbox_config
from podfit.kubelet.pods.reporter import Reporter
from podfit.kubelet.pods.starter import NotStarted, StartedSandbox
from podfit.kubelet.pods.unchanged import Observed, observed
from podfit.kubelet.pods.worker_context import WorkerContext
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.configs import DNSConfig, SandboxConfig
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.volumes.manager import MountError, Paths

log = logging.getLogger(__name__)

RESYNC_SECONDS = 60.0
UNWRITTEN_RESYNC_SECONDS = 600.0  # where no volume is brought up to date, and no event of the runtime is lost
FIRST_MOUNT_RETRY = 0.5
LONGEST_MOUNT_RETRY = 122.0
ROUNDS = 32


class SyncResult(msgspec.Struct, frozen=True):
    """How a turn ended: `over` = nothing will run again; `again` in seconds, None = after the usual resync."""

    over: bool = False
    again: float | None = None


class PodSync:
    """The turns of one pod."""

    def __init__(self, context: WorkerContext, reporter: Reporter) -> None:
        self._context = context
        self._reporter = reporter
        self._volumes: Paths | None = None
        self._volumes_at = 0.0
        self._volumes_of: tuple[object, ...] = ()
        self._mount_failures = 0
        self._seen: PodFacts | None = None  # what to ask about first; nothing is done on it
        self._last: Pod | None = None
        self._last_observed: Observed | None = None

    async def look(self, pod: Pod) -> PodFacts:
        """What a turn begins with; raises CRIError."""
        self._seen = await self._context.look(pod, self._seen)
        return self._seen

    def saw(self, states: Mapping[str, str]) -> bool:
        """Whether the last look showed these states, by id of sandbox or container."""
        return self._seen is not None and self._seen.states == states

    async def turn(self, newest: Callable[[], Pod], looking: Awaitable[PodFacts]) -> SyncResult:
        """`newest` is the API's pod as it is known now: what is said of a resize that was decided during the turn is
        said with its generation. Raises CRIError, CgroupError, CheckpointError: the turn is to be repeated.
        """
        desired = newest()
        known, self._last = desired is self._last, desired  # a pod that is new, as in a resize, is no pod at rest
        facts = await looking
        retries: list[float] = []
        for _ in range(ROUNDS):
            before = await self._observed(newest, facts) if known else None
            if before is not None and before == self._last_observed:
                await self._refresh(replace(before.allocated, status=before.status))
                return SyncResult()
            self._last_observed = None
            pod = await self._reporter.report(newest, facts)
            if self._reporter.ended or plan(pod, facts).over:
                return SyncResult(over=True)
            try:
                volumes = await self._mounted(pod)
            except MountError as error:
                self._context.emit(desired, "Warning", "FailedMount", str(error), "")
                self._mount_failures += 1
                return SyncResult(again=delay_after(self._mount_failures - 1, FIRST_MOUNT_RETRY, LONGEST_MOUNT_RETRY))
            retries.clear()
            progress = await self._round(pod, facts, volumes, retries)
            if not progress and not retries and not self._context.allocation.conditions(desired.metadata.uid):
                await self._refresh(pod)
                self._last_observed = before
                return SyncResult()
            facts = await self.look(desired)
            if not progress:
                break
        pod = await self._reporter.report(newest, facts)
        over = self._reporter.ended or plan(pod, facts).over
        if not over:
            await self._refresh(pod)
        return SyncResult(over=over, again=min(retries, default=None))

    async def _observed(self, newest: Callable[[], Pod], facts: PodFacts) -> Observed | None:
        if self._volumes is None:
            return None
        return observed(self._context, self._reporter, await self._context.allocation.look(newest), facts)

    # ------------------------------------------------------------------ one round

    async def _round(self, pod: Pod, facts: PodFacts, volumes: Paths, retries: list[float]) -> bool:
        """Do what the plan says. True when another round may find more to do."""
        if await self._context.actuator.ensure_pod_cgroup(pod, self._context.active()) and facts.running:
            log.warning("pod cgroup was missing, containers start anew pod=%s", labels.ref(pod))
            await self._context.killer.stop_pod(pod, facts, spec_grace(pod))
            await self._context.killer.stop_sandboxes(facts)
            return True
        todo = plan(pod, facts)
        if todo.new_sandbox:
            await self._context.killer.stop_for_restart(pod, todo.kill)
            await self._context.killer.stop_sandboxes(facts)
            await self._new_sandbox(pod, facts)
            return True
        replaced, resized = await self._change_running(pod, facts, todo, retries)
        started = await self._start(pod, facts, volumes, todo, replaced, retries)
        return bool(replaced or todo.kill) or started or resized

    async def _change_running(
        self, pod: Pod, facts: PodFacts, todo: PodActions, retries: list[float]
    ) -> tuple[set[str], bool]:
        """Stop what has to start anew, then resize the rest in place. Names of the stopped, and whether it resized."""
        context, ending = self._context, {kill.container.name for kill in todo.kill}

        async def stop(restarting: Collection[str]) -> None:
            anew = (container for container in facts.running if container.name in restarting)
            restarts = [Kill(container, restart_message(container.name)) for container in anew]
            await context.killer.stop_for_restart(pod, [*todo.kill, *restarts])

        world = context.actuator.actuation(pod, _live(facts), node=context.allocation, stop=stop, ending=ending)
        async with world as actuation:
            await drive(context.allocation, actuation, actuation.due())
        if actuation.again is not None:
            retries.append(context.jittered(actuation.again))
        replaced = {kill.container.name for kill in todo.kill if kill.again} | set(actuation.replaced)
        return replaced, actuation.changed and actuation.again is None

    async def _start(
        self, pod: Pod, facts: PodFacts, volumes: Paths, todo: PodActions, replaced: set[str], retries: list[float]
    ) -> bool:
        sandbox = facts.sandbox
        if sandbox is None:
            return False
        for name in dict.fromkeys(container.name for container in facts.containers):
            await self._context.starter.prune(name, facts)
        due, started = {container.name for container in todo.start} | replaced, False
        at_once = replaced - {kill.container.name for kill in todo.kill if kill.waits}
        if not due:
            return False
        place = StartedSandbox(sandbox.id, await self._sandbox_config(pod, sandbox.attempt), volumes)
        for container in _in_order(pod, due):
            try:
                await self._context.starter.start(pod, container, place, facts, replaced=container.name in at_once)
            except NotStarted as error:
                waiting = ContainerStateWaiting(reason=error.reason, message=str(error))
                self._reporter.waiting[container.name] = waiting
                retries.append(error.retry)
            else:
                self._reporter.waiting.pop(container.name, None)
                started = True
        return started

    # ------------------------------------------------------------------ sandbox and volumes

    async def _new_sandbox(self, pod: Pod, facts: PodFacts) -> None:
        """A sandbox that failed to come up is left for the next turn, which gives it the same number again."""
        attempt = facts.sandboxes[0].attempt + 1 if facts.sandboxes else 0
        config = await self._sandbox_config(pod, attempt)
        logs = log_directory(self._context.config.log_root, labels.ref(pod))
        try:
            await self._context.starter.own_files.pod_logs(logs)
            await self._context.runtime.run_sandbox(config)
        except (CRIError, OSError) as error:
            self._context.emit(pod, "Warning", "FailedCreatePodSandBox", f"Failed to create pod sandbox: {error}", "")
            raise
        for old in facts.sandboxes[1:]:
            await self._context.runtime.remove_sandbox(old.id)

    async def _sandbox_config(self, pod: Pod, attempt: int) -> SandboxConfig:
        resources, overhead = self._context.actuator.sandbox(pod)
        wanted, dns = resolver(pod, await self._context.names.resolver_file()), None
        if wanted is not None:
            dns = DNSConfig(servers=wanted.servers, searches=wanted.searches, options=wanted.options)
        return sandbox_config(
            pod,
            node=self._context.config.name,
            attempt=attempt,
            logs=log_directory(self._context.config.log_root, labels.ref(pod)),
            cgroup_parent=self._context.actuator.cgroups.path(pod),
            resources=resources,
            overhead=overhead,
            dns=dns,
        )

    async def _mounted(self, pod: Pod) -> Paths:
        """The volumes, as they are once they were there: a resize does not wait for the API to answer about them."""
        if self._volumes is None:
            self._volumes = await self._context.volumes.mount(pod)
            self._volumes_at, self._mount_failures = self._context.clock.monotonic(), 0
            self._volumes_of = _told_of(pod)
        return self._volumes

    async def _refresh(self, pod: Pod) -> None:
        """Bring the volumes up to date when all else is done: once a minute, and when what they tell has changed.

        A refresh that fails, be it that a ConfigMap was deleted or the API is away, is told and keeps what was mounted.
        """
        if not self._context.volumes.refreshed:
            return
        now = self._context.clock.monotonic()
        told = _told_of(pod)
        if self._volumes is None or (now - self._volumes_at < RESYNC_SECONDS and told == self._volumes_of):
            return
        self._volumes_at, self._volumes_of = now, told
        try:
            self._volumes = await self._context.volumes.mount(pod, again=True)
        except MountError as error:
            self._context.emit(pod, "Warning", "FailedMount", str(error), "")


def _told_of(pod: Pod) -> tuple[object, ...]:
    """What downward API files may say of a pod."""
    meta, spec = pod.metadata, pod.spec
    sizes = tuple(container.resources for container in all_containers(spec))
    return meta.labels, meta.annotations, sizes, spec.resources, pod.status.pod_ips


def _live(facts: PodFacts) -> LivePod:
    sandbox = facts.sandbox
    return LivePod(
        sandbox_id=sandbox.id if sandbox is not None else "",
        containers={container.name: container.id for container in reversed(facts.running)},
    )


def _in_order(pod: Pod, names: Iterable[str]) -> list[Container]:
    wanted = set(names)
    return [container for container in every_container(pod) if container.name in wanted]
