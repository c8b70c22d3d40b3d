"""A world for the machine of one pod's life: a runtime, a cgroup and an API in memory, which change as the test says.

    world = LifeWorld(pod)
    world.turn()                    one turn of the machine, its effects carried out
    world.exit("web", 1)            what happens meanwhile
    world.settle()                  turns for as long as the machine asks for another one within a minute
    world.kill()                    the kubelet is gone; the next one has what the runtime and the API tell

`killed_at`: the kubelet is killed when so many effects were carried out, right after the last of them.
"""

from collections.abc import Iterator
from datetime import timedelta

from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod, PodCondition, PodStatus
from podfit.core.shared_map import SharedMap
from podfit.decide.cgroup.container_resources import Machine, effective
from podfit.decide.lifecycle import effects as do
from podfit.decide.lifecycle import events as on
from podfit.decide.lifecycle.actions import CONTAINER_HASH, definition_hash
from podfit.decide.lifecycle.effects import Effect
from podfit.decide.lifecycle.facts import (
    KILLED,
    ContainerState,
    ContainerStatus,
    Health,
    PodFacts,
    Sandbox,
    SandboxState,
    SandboxStatus,
    StatusInput,
)
from podfit.decide.lifecycle.life import Moment, PodLife
from podfit.decide.lifecycle.machine import begin, step
from podfit.decide.lifecycle.pulls import Refuse
from podfit.decide.lifecycle.turns import RESYNC_SECONDS
from podfit.decide.node.drive import at_once, drive
from podfit.decide.node.effects import NoteRestarts, StopForResize
from podfit.decide.node.events import ActuationDue
from podfit.decide.node.machine import step as node_step
from podfit.decide.node.state import NodeState
from podfit.decide.pod.allocated import PodResources
from podfit.decide.pod.ephemeral_containers import every_container
from podfit.decide.pod.probing import ProbeKind
from podfit.decide.pod.resize_state import IN_PROGRESS
from podfit.decide.resize.verdict import NodeView
from support.clock import EPOCH

MACHINE = Machine(memory=8 << 30)
MOST_EFFECTS = 2000  # of one turn; one that takes more has no end


class _Broken(Exception):
    """An effect that could not be carried out."""


class Killed(Exception):
    """The kubelet has been killed."""


class LifeWorld:
    def __init__(self, pod: Pod) -> None:
        self.pod, self.seconds = pod, 0.0
        self.sandboxes: list[Sandbox] = []  # newest first, as the containers
        self.containers: list[tuple[ContainerStatus, str]] = []
        self.actuated = PodResources()
        self.cgroup = self.volumes = self.deleted = False
        self.status = pod.status
        self.unstarted: set[str] = set()
        self.unready: set[str] = set()
        self.unhealthy: set[str] = set()  # ids of instances, the others by name
        self.stopped: set[str] = set()
        """Ids of instances that the kubelet stopped."""
        self.obedient: set[str] = set()
        """Names of containers that end with exit code 0 when they are stopped."""
        self.fails: dict[str, str] = {}
        """By `mount`, `sandbox`, `resize`, `start NAME`, `list`: with what text."""
        self.started: list[str] = []
        """Names of containers, each time that one was started."""
        self.effects: list[Effect | NoteRestarts] = []
        self.resized: dict[int, str] = {}
        """The error, if any, of each resize that had something to do, by its place among the effects."""
        self.killed_at: int | None = None
        self._first = 0  # of the effects of this turn
        self.wakes: do.WakeUp | None = None
        self.due = True
        self.life = self._begin()

    # ------------------------------------------------------------------ the kubelet

    def turn(self) -> list[Effect | NoteRestarts]:
        """What was carried out in it."""
        self.due, self._first = False, len(self.effects)
        try:
            at_once(drive(self, self, on.TurnBegan(self.status, self.at_rest())))
        except _Broken as error:
            sandbox = isinstance(self.effects[-1], do.RunSandbox)
            at_once(drive(self, self, on.TurnFailed(str(error), sandbox=sandbox)))
        return self.effects[self._first :]

    def at_rest(self) -> on.AtRest | None:
        """Where nothing is news but a size, that and what the node says of it."""
        if not self.life.mounted or self._facts() != self.life.turn.facts:
            return None
        wanted = {container.name: effective(self.pod, container) for container in every_container(self.pod)}
        differs = any(self.actuated.containers.get(name) != wanted[name] for name in self.running_names())
        conditions = (PodCondition(type=IN_PROGRESS, status="True"),) if differs else ()
        return on.AtRest(replace(self.pod, status=self.status), conditions)

    async def take(self, event: on.Event) -> tuple[Effect, ...]:
        self.life, effects = step(self.life, event, at=self._moment())
        return effects

    async def carry_out(self, effect: Effect) -> tuple[on.Event, ...]:
        self._note(effect)
        assert len(self.effects) - self._first < MOST_EFFECTS, "the turn has no end"
        answer = self._carry_out(effect)
        self._may_be_killed()
        return () if answer is None else (answer,)

    def settle(self, seconds: float = 60.0, turns: int = 200) -> None:
        """Turns, and time that passes between them, until none is due within so many seconds but the usual one."""
        for _ in range(turns):
            try:
                self.turn()
            except Killed:
                self.kill()
                if self.deleted:
                    return
                continue
            wakes = self.wakes or do.WakeUp()
            times = [wakes.exactly, wakes.shortened, wakes.about if wakes.about != RESYNC_SECONDS else None]
            soonest = min((time for time in times if time is not None), default=seconds)
            if not self.due and soonest >= seconds:
                return
            if not self.due:
                self.seconds += soonest
        raise AssertionError("the pod never comes to rest")

    def kill(self) -> None:
        """The next kubelet has a memory of its own; of a pod whose object is gone it hears nothing."""
        if not self.deleted:
            self.life, self.due = self._begin(), True

    def hear(self, event: on.Outside) -> list[Effect]:
        self.life, effects = step(self.life, event, at=self._moment())
        for effect in effects:
            self._note(effect)
            if isinstance(effect, do.WriteStatus):
                self.status = effect.status
        self.due = True
        return list(effects)

    def _begin(self) -> PodLife:
        return begin(replace(self.pod, status=self.status), refreshed=True)

    def _note(self, effect: Effect) -> None:
        self.effects.append(effect)

    def _may_be_killed(self) -> None:
        if self.killed_at is not None and len(self.effects) >= self.killed_at:
            self.killed_at = None
            raise Killed

    def _moment(self) -> Moment:
        return Moment(EPOCH + timedelta(seconds=self.seconds), self.seconds)

    # ------------------------------------------------------------------ what happens

    def change(self, pod: Pod) -> None:
        """The API has another version of it."""
        self.pod = pod
        self.hear(on.PodChanged(replace(pod, status=self.status)))

    def delete(self, grace: int = 30) -> None:
        meta = replace(
            self.pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z", deletion_grace_period_seconds=grace
        )
        self.change(replace(self.pod, metadata=meta))

    def exit(self, name: str, code: int) -> None:
        """The instance that runs ends."""
        self._replace(self.running(name), state=ContainerState.EXITED, exit_code=code, finished_at=self._nanoseconds())

    def lose_sandbox(self) -> None:
        """It ends, and all that runs in it."""
        self.sandboxes[0] = replace(self.sandboxes[0], state=SandboxState.NOT_READY)
        for container, _ in list(self.containers):
            if container.state is ContainerState.RUNNING:
                self.exit(container.name, KILLED)

    def lose(self, name: str) -> None:
        """The runtime forgets every instance of a container."""
        self.containers = [entry for entry in self.containers if entry[0].name != name]

    def running(self, name: str) -> ContainerStatus:
        instance = next((container for container in self._running() if container.name == name), None)
        assert instance is not None, f"{name} does not run"
        return instance

    def running_names(self) -> list[str]:
        return sorted(container.name for container in self._running())

    # ------------------------------------------------------------------ effects

    def _carry_out(self, effect: Effect) -> on.Event | None:  # noqa: C901  (a list of effects)
        match effect:
            case do.WakeUp():
                self.wakes = effect
            case do.Continue():
                return on.CarriedOut()
            case do.Look():
                self._may_fail("list")
                return on.Looked(self._facts())
            case do.Gather(facts):
                return on.Gathered(self._inputs(facts), cgroup=self.cgroup)
            case do.WriteStatus(status):
                self.status = status
            case do.Mount():
                return self._mount()
            case do.EnsureCgroup():
                made, self.cgroup = not self.cgroup, True
                return on.CgroupReady(made)
            case do.RunSandbox(attempt=attempt):
                self._may_fail("sandbox")
                self.sandboxes.insert(0, self._sandbox(attempt))
            case do.StopSandboxes(ids):
                self._stop_sandboxes(ids)
            case do.RemoveSandboxes(ids):
                self.sandboxes = [sandbox for sandbox in self.sandboxes if sandbox.id not in ids]
                self.containers = [entry for entry in self.containers if entry[1] not in ids]
            case do.StopContainers(groups=groups):
                for stop in (stop for group in groups for stop in group):
                    self._stop(stop)
            case do.Resize():
                return self._resize(effect)
            case do.StartContainer():
                return self._start(effect)
            case do.RemoveContainers(containers):
                gone = {container.id for container in containers}
                self.containers = [entry for entry in self.containers if entry[0].id not in gone]
            case do.RemoveVolumes():
                self.volumes = False
            case do.RemoveCgroup():
                self.cgroup = False
            case do.DeleteObject():
                self.deleted = True
                self.hear(on.ObjectGone())
        return None

    def _may_fail(self, what: str) -> None:
        if what in self.fails:
            raise _Broken(self.fails[what])

    def _mount(self) -> on.Event:
        if "mount" in self.fails:
            return on.MountFailed(self.fails["mount"])
        self.volumes = True
        return on.Mounted()

    def _sandbox(self, attempt: int) -> Sandbox:
        meta = self.pod.metadata
        return Sandbox(
            id=f"box-{attempt}-{len(self.effects)}",
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            attempt=attempt,
            state=SandboxState.READY,
            created_at=self._nanoseconds(),
        )

    def _stop_sandboxes(self, ids: tuple[str, ...]) -> None:
        self.sandboxes = [
            replace(sandbox, state=SandboxState.NOT_READY) if sandbox.id in ids else sandbox
            for sandbox in self.sandboxes
        ]
        for container, home in list(self.containers):
            if home in ids and container.state is ContainerState.RUNNING:
                self.exit(container.name, KILLED)

    def _stop(self, stop: do.Stop) -> None:
        self.stopped.add(stop.id)
        instance = next((container for container in self._running() if container.id == stop.id), None)
        if instance is not None:
            self.exit(instance.name, 0 if instance.name in self.obedient else KILLED)

    def _resize(self, effect: do.Resize) -> on.ResizeEnded:
        place = len(self.effects) - 1
        names = self._restarting(effect)
        stops = (*effect.stops, *(effect.restarts[name] for name in names))
        if stops:
            self._note(do.StopContainers(effect.pod, (stops,)))
            for stop in stops:
                self._stop(stop)
            self._may_be_killed()
        live = effect.containers.keys() - {stop.name for stop in stops}
        wanted = {
            container.name: effective(effect.pod, container)
            for container in every_container(effect.pod)
            if container.name in live
        }
        changed = any(self.actuated.containers.get(name) != resources for name, resources in wanted.items())
        if changed:
            self.resized[place] = self.fails.get("resize", "")
        if changed and "resize" in self.fails:
            return on.ResizeEnded(again=10.0, replaced=names, open=True)
        self.actuated = replace(self.actuated, containers={**self.actuated.containers, **wanted})
        return on.ResizeEnded(changed=changed, replaced=names, open=changed)

    def _restarting(self, effect: do.Resize) -> tuple[str, ...]:
        """The containers that their resize restarts, by the node's machine; what it has noted before is carried out."""
        uid, ending = effect.pod.metadata.uid, {stop.name for stop in effect.stops}
        view = NodeView(allocatable={}, machine=MACHINE)
        state = NodeState(view=view, actuated=SharedMap({uid: self.actuated}))
        due = ActuationDue(effect.pod, effect.containers, None, ending, effect.again)
        names: tuple[str, ...] = ()
        for told in node_step(state, due, now=self._moment().now)[1]:
            if isinstance(told, NoteRestarts):
                self.effects.append(told)
                self.actuated = replace(self.actuated, restarting=told.instances)
                self._may_be_killed()
            if isinstance(told, StopForResize):
                names = told.restarting
        return names

    def _start(self, effect: do.StartContainer) -> on.Event:
        container, name = effect.container, effect.container.name
        assert name not in self.running_names(), f"{name} runs already"
        self.containers = [entry for entry in self.containers if entry[0].id != effect.replaces]
        if "image" in self.fails:
            return on.ImageRefused(name, Refuse("ErrImagePull", self.fails["image"], 1.0))
        failure = self.fails.get(f"start {name}")
        self.actuated = self.actuated.with_container(name, effective(effect.pod, container))
        instance = ContainerStatus(
            id=f"{name}-{effect.attempt}-{len(self.effects)}",
            name=name,
            attempt=effect.attempt,
            state=ContainerState.CREATED if failure else ContainerState.RUNNING,
            created_at=self._nanoseconds(),
            started_at=self._nanoseconds(),
            annotations={CONTAINER_HASH: definition_hash(container)},
        )
        self.containers.insert(0, (instance, effect.sandbox.id))
        if failure:
            return on.StartFailed(name, on.StartStage.START, failure)
        self.started.append(name)
        return on.ContainerStarted(name)

    # ------------------------------------------------------------------ what is

    def _running(self) -> Iterator[ContainerStatus]:
        return (container for container, _ in self.containers if container.state is ContainerState.RUNNING)

    def _replace(self, instance: ContainerStatus, **fields: object) -> None:
        self.containers = [
            (replace(container, **fields) if container.id == instance.id else container, home)
            for container, home in self.containers
        ]

    def _nanoseconds(self) -> int:
        return int((EPOCH.timestamp() + self.seconds) * 1_000_000_000)

    def _facts(self) -> PodFacts:
        ids = {container.id: container.name for container in self._running()}
        health = Health(
            unstarted=frozenset(id_ for id_, name in ids.items() if name in self.unstarted),
            unready=frozenset(id_ for id_, name in ids.items() if name in self.unready | self.unstarted),
            failed={id_: ProbeKind.LIVENESS for id_ in ids if id_ in self.unhealthy},
        )
        newest = self.sandboxes[0] if self.sandboxes else None
        status = None
        if newest is not None:
            fields = {name: getattr(newest, name) for name in newest.__struct_fields__}
            status = SandboxStatus(**fields, ips=("10.0.0.7",))
        ordered = sorted(self.containers, key=lambda entry: (entry[0].attempt, entry[0].created_at), reverse=True)
        return PodFacts(
            self.pod.metadata.uid,
            tuple(self.sandboxes),
            status,
            tuple(container for container, _ in ordered),
            tuple((container.id, home) for container, home in ordered),
            health,
            frozenset(self.actuated.restarting.values()),
        )

    def _inputs(self, facts: PodFacts) -> StatusInput:
        pod = replace(self.pod, status=self.status)
        return StatusInput(
            pod=pod,
            allocated=pod,
            previous=self.status,
            observed=facts,
            machine=MACHINE,
            node_ip="192.0.2.1",
            now=self._moment().now,
            actuated=self.actuated,
        )


def shown(status: PodStatus) -> str:
    """`Running web=running/1 log=CrashLoopBackOff/2`: the phase, then each container and how often it restarted."""
    words = [status.phase or "-"]
    for container in (*status.init_container_statuses, *status.container_statuses):
        state = container.state
        what = "running" if state.running else ""
        if state.terminated is not None:
            what = f"exited({state.terminated.exit_code})"
        if state.waiting is not None:
            what = state.waiting.reason
        ready = "" if container.ready or not state.running else "(unready)"
        words.append(f"{container.name}={what}{ready}/{container.restart_count}")
    return " ".join(words)
