"""The world of one pod's machine: carries its effects out on runtime, cgroup, volumes and API, and answers what came of
them. It decides nothing (`decide.lifecycle`).
"""

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod
from podfit.core.errors import ApiError
from podfit.decide.cgroup.pod_cgroup import PodValues
from podfit.decide.lifecycle import effects as do
from podfit.decide.lifecycle import events as on
from podfit.decide.lifecycle.effects import Effect
from podfit.decide.lifecycle.events import Event
from podfit.decide.lifecycle.facts import PodFacts, StatusInput
from podfit.decide.lifecycle.life import At, PodLife
from podfit.decide.lifecycle.status import addressed
from podfit.decide.node.drive import drive
from podfit.decide.pod.allocated import PodResources
from podfit.decide.pod.resolver import NO_LOOKUPS, pod_resolver
from podfit.kubelet.actuation.actuation import Actuation
from podfit.kubelet.actuation.actuator import LivePod
from podfit.kubelet.allocation.manager import Allocated
from podfit.kubelet.cgroup.removal import remove_cgroup
from podfit.kubelet.images.puller import ImageRefused
from podfit.kubelet.pods.configs import log_directory, sandbox_config
from podfit.kubelet.pods.runtime_facts import observe
from podfit.kubelet.pods.starter import NotStarted, StartedSandbox
from podfit.kubelet.pods.unchanged import Unchanged
from podfit.kubelet.pods.worker_context import WorkerContext
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.configs import DNSConfig, SandboxConfig
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.status.writer import StatusWriter
from podfit.kubelet.volumes.manager import MountError, Paths
from podfit.net.supervisor import Supervisor

log = logging.getLogger(__name__)

_GONE = (404, 409)


class PodWorld:
    """`life` is the machine's newest state: its pod is the API's as it is known now, so what is said of a resize that
    was decided during a turn is said with its generation. `hear` takes what happens beside a turn.
    """

    def __init__(
        self,
        context: WorkerContext,
        writer: StatusWriter,
        life: Callable[[], PodLife],
        supervisor: Supervisor,
        hear: Callable[[on.Outside], None],
    ) -> None:
        self.writer = writer
        self._supervisor, self._hear = supervisor, hear
        self._context, self._life = context, life
        self._uid = life().pod.metadata.uid
        self._volumes: Paths = {}
        self.doing: Effect = do.WakeUp()
        """What was begun last."""
        self.wait = do.WakeUp()
        """How the last turn ended."""
        self._looking: Awaitable[PodFacts] | None = None
        self._seen: PodFacts | None = None  # what to ask about first; what a resize of what is settled goes by
        self._replaced = False  # the last resize has stopped containers
        self.tries_again = False
        """Whether the last resize has failed."""
        self._resized = False  # nothing but a resize in place has happened since the last look
        self._unchanged = Unchanged(context, writer, life)
        self._first_seen: float | None = None
        if writer.status.phase in ("", "Pending"):
            self._first_seen = context.clock.monotonic()

    def began(self, looking: Awaitable[PodFacts] | None, *, at_rest: bool = False) -> on.TurnBegan:
        """A turn begins; `looking` is a look under way already, unless the pod ends. `at_rest`: nothing but a resize
        has happened since the last one."""
        self._looking, self.tries_again = looking, False
        self._unchanged.begin()
        if not at_rest:
            return on.TurnBegan(self.writer.status)
        known = self._context.allocation.known(self._life().pod)
        return on.TurnBegan(self.writer.status, on.AtRest(known.pod, known.conditions))

    async def look(self, *, resized: bool = False) -> PodFacts:
        """`resized`: nothing but a resize in place has happened since the last look. Raises CRIError."""
        self._seen = await self._context.look(self._life().pod, self._seen, resized=resized)
        return self._seen

    def look_early(self, *, resized: bool = False) -> "asyncio.Task[PodFacts]":
        """A look that nobody waits for yet."""
        looking = self._supervisor.hold(self.look(resized=resized), name=f"look {self._life().pod.metadata.name}")
        looking.add_done_callback(lambda done: done.cancelled() or done.exception())
        return looking

    @property
    def live(self) -> LivePod | None:
        """What ran at the last look; None before, and without a sandbox."""
        if self._seen is None or self._seen.sandbox is None:
            return None
        return LivePod(sandbox_id=self._seen.sandbox.id, containers=self._seen.running_ids)

    def saw(self, states: Mapping[str, str]) -> bool:
        """Whether the last look showed these states, by id of sandbox or container."""
        return self._seen is not None and self._seen.states == states

    def write(self, effect: do.WriteStatus) -> None:
        self.writer.set(effect.status, passing=self._context.config.passing_seconds.get(effect.passing, 0.0))
        if self._first_seen is not None and effect.status.phase == "Running":
            self._context.metrics.start.observe(self._context.clock.monotonic() - self._first_seen)
            self._first_seen = None

    async def carry_out(self, effect: Effect) -> tuple[Event, ...]:
        """The event that answers it, if it has one. Raises CRIError, CgroupError, CheckpointError, ApiError, OSError:
        the turn has failed.
        """
        before, self.doing = self.doing, effect
        self._resized = isinstance(before, do.Resize) and not before.stops and not self._replaced
        answer = await self._do(effect)
        return () if answer is None else (answer,)

    async def _do(self, effect: Effect) -> Event | None:  # noqa: C901  (a list of what can be asked)
        context, pod = self._context, self._life().pod
        match effect:
            case do.WakeUp():
                self.wait = effect
            case do.Continue():
                return on.CarriedOut()
            case do.Look(probes):
                return await self._look() if probes else on.Looked(await observe(context.runtime, self._uid))
            case do.Gather(facts):
                return await self._gather(facts)
            case do.WriteStatus():
                self.write(effect)
                if not self.writer.is_written:
                    await asyncio.sleep(0)  # it is on its way while the rest of the turn is worked out
            case do.Reconcile(status):
                await context.allocation.reconcile(self._uid, status)
            case do.Rest():
                self._unchanged.keep()
            case do.Emit():
                context.emit(pod, effect.type, effect.reason, effect.message, effect.path)
            case do.Mount():
                return await self._mount(effect)
            case do.EnsureCgroup(pod):
                return on.CgroupReady(await context.actuator.ensure_pod_cgroup(pod, context.active()))
            case do.RunSandbox():
                await self._run_sandbox(effect)
            case do.StopSandboxes(ids):
                await asyncio.gather(*map(context.runtime.stop_sandbox, ids))
            case do.RemoveSandboxes(ids):
                await asyncio.gather(*map(context.runtime.remove_sandbox, ids))
            case do.StopContainers():
                await context.killer.stop(replace(effect, pod=self._addressed(effect.pod)))
            case do.Resize():
                return await self._resize(effect)
            case do.StartContainer():
                return await self._start(effect)
            case do.RemoveContainers(containers):
                for container in containers:
                    await context.starter.remove(container)
            case do.ForgetProbes():
                context.probes.forget(self._uid)
            case do.RemoveVolumes():
                await context.volumes.remove(self._uid)
            case do.RemoveCgroup():
                await remove_cgroup(context.cgroups, context.actuator.cgroups.path(pod), context.clock.sleep)
            case do.AwaitWritten():
                await self.writer.written()
            case do.ForgetFiles():
                logs = self._logs(pod)
                await context.volumes.writer.run(logs, partial(shutil.rmtree, logs, ignore_errors=True))
                context.actuator.forget(self._uid)
            case do.DeleteObject():
                await self._delete_object(pod)
            case _:
                raise AssertionError(f"{effect} is not carried out in a turn")
        return None

    # ------------------------------------------------------------------ what is

    async def _look(self) -> on.Looked:
        looking, self._looking = self._looking, None
        facts = await (looking or self.look(resized=self._resized))
        return on.Looked(facts, await self._unchanged.found(facts))

    async def _gather(self, facts: PodFacts) -> on.Gathered:
        context = self._context
        running = [container.name for container in facts.running]
        seen = await context.allocation.begin_sync(lambda: self._life().pod, running)
        values = context.actuator.cgroups.values(seen.pod)
        cgroup = values is not None or context.actuator.cgroups.exists(seen.pod)  # it may be there and not be readable
        if running and not cgroup:
            log.warning("pod cgroup is missing, containers start anew pod=%s", labels.ref(seen.pod))
        return on.Gathered(self._inputs(seen, facts, values), cgroup)

    def _inputs(self, seen: Allocated, facts: PodFacts, values: PodValues | None) -> StatusInput:
        context = self._context
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
            burst_conditions=context.burst_conditions(seen.desired),
            actuated=context.actuator.actuated(self._uid) or PodResources(),
            pod_values=values,
        )

    @contextmanager
    def _lasting(self) -> Iterator[None]:
        """A resize that nothing has been told of yet is told of when it lasts."""
        life, clock, facts = self._life(), self._context.clock, self._seen
        if life.turn.at is not At.RESIZING or facts is None:
            yield
            return

        def lasts() -> None:
            known = self._context.allocation.known(self._life().pod)
            values = self._context.actuator.cgroups.values(known.pod)
            self._hear(on.ResizeLasts(self._inputs(known, facts, values)))

        seconds = self._context.config.passing_seconds.get(do.Passing.RESIZE, 0.0)
        timer = clock.call_later(seconds, lasts) if seconds else None
        if timer is None:
            lasts()
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()

    # ------------------------------------------------------------------ volumes, cgroup, sandbox

    async def _mount(self, effect: do.Mount) -> on.Mounted | on.MountFailed:
        try:
            self._volumes = await self._context.volumes.mount(effect.pod, again=effect.again)
        except MountError as error:
            return on.MountFailed(str(error))
        return on.Mounted()

    async def _run_sandbox(self, effect: do.RunSandbox) -> None:
        """A sandbox that failed to come up is left for the next turn, which gives it the same number again."""
        context, pod = self._context, effect.pod
        shared = pod.spec.host_network or context.network.host
        if not shared and (problem := context.network.problem):
            raise CRIError(f"network is not ready: {problem}")
        config = await self._sandbox_config(pod, effect.attempt, shared=shared)
        await context.starter.own_files.pod_logs(self._logs(pod))
        sandbox_id = await context.runtime.run_sandbox(config)
        if not shared:
            await context.network.joined((await context.runtime.sandbox_status(sandbox_id)).ips)

    def _addressed(self, pod: Pod) -> Pod:
        """The pod with the addresses that were seen last."""
        return addressed(pod, self._seen.status if self._seen is not None else None, self._context.config.host_ip)

    async def _sandbox_config(self, pod: Pod, attempt: int, *, shared: bool) -> SandboxConfig:
        resources, overhead = self._context.actuator.sandbox(pod)
        return sandbox_config(
            pod,
            node=self._context.config.name,
            attempt=attempt,
            logs=self._logs(pod),
            cgroup_parent=self._context.actuator.cgroups.path(pod),
            resources=resources,
            overhead=overhead,
            dns=await self._resolver(pod),
            host_network=shared,
            domain=self._context.config.options.cluster_domain,
        )

    async def _resolver(self, pod: Pod) -> DNSConfig | None:
        """None where the runtime gives it the node's own file."""
        context = self._context
        options, simulated = context.config.options, context.config.simulated
        node, usual = await context.names.resolvers() if options.resolv_conf else (NO_LOOKUPS, False)
        formed = pod_resolver(pod, node, options.names, shared=context.network.host)
        for warning in () if simulated else formed.warnings:
            context.emit(pod, "Warning", warning.reason, warning.message, "")
            if warning.node:
                context.tell("Warning", warning.reason, warning.node)
        wanted = formed.resolver
        if wanted is None:
            if usual:
                return None
            wanted = node
        return DNSConfig(servers=wanted.servers, searches=wanted.searches, options=wanted.options)

    # ------------------------------------------------------------------ containers

    async def _resize(self, effect: do.Resize) -> on.ResizeEnded:
        context, pod = self._context, effect.pod

        async def stop(restarting: Collection[str]) -> None:
            anew = (stop for name, stop in effect.restarts.items() if name in restarting)
            await context.killer.stop(do.StopContainers(self._addressed(pod), ((*effect.stops, *anew),)))

        def agreed() -> None:
            """What the runtime shows now is asked while it is noted that it has agreed."""
            if not effect.stops and not world.replaced:
                self._looking = self.look_early(resized=True)

        live = LivePod(sandbox_id=effect.sandbox_id, containers=effect.containers)
        ending = {stop.name for stop in effect.stops}
        world = Actuation(
            context.actuator,
            pod,
            live,
            node=context.allocation,
            stop=stop,
            ending=ending,
            again=effect.again,
            agreed=agreed,
        )
        with self._lasting():
            async with world as actuation:
                await drive(context.allocation, actuation, actuation.due())
        self._replaced, self.tries_again = bool(actuation.replaced), actuation.again is not None
        is_open = bool(context.allocation.conditions(self._uid))
        changed = actuation.changed and actuation.again is None
        return on.ResizeEnded(actuation.again, changed, actuation.replaced, is_open)

    async def _start(self, effect: do.StartContainer) -> on.ContainerStarted | on.ImageRefused | on.StartFailed:
        name, sandbox = effect.container.name, self._seen.status if self._seen is not None else None
        if sandbox is None or sandbox.id != effect.sandbox.id:
            sandbox = await self._context.runtime.sandbox_status(effect.sandbox.id)
        config = await self._sandbox_config(effect.pod, sandbox.attempt, shared=sandbox.host_network)
        pod = addressed(effect.pod, sandbox, self._context.config.host_ip)
        place = StartedSandbox(sandbox.id, config, self._volumes)
        try:
            await self._context.starter.start(replace(effect, pod=pod), place)
        except ImageRefused as error:
            return on.ImageRefused(name, error.refusal)
        except NotStarted as error:
            return on.StartFailed(name, error.stage, str(error), outage=error.outage, instance=error.instance)
        return on.ContainerStarted(name)

    # ------------------------------------------------------------------ the end

    async def _delete_object(self, pod: Pod) -> None:
        meta = pod.metadata
        try:
            await self._context.client.delete(Pod, meta.name, meta.namespace, grace=0, uid=meta.uid)
        except ApiError as error:
            if error.code not in _GONE:
                raise
            log.info("pod was gone already pod=%s", labels.ref(pod))

    def _logs(self, pod: Pod) -> Path:
        return log_directory(self._context.config.log_root, labels.ref(pod))
