"""`step`, the function of a pod's life: from what happened to what is to be done next.

    look → status → volumes → pod cgroup → sandbox → init containers → restarts and resize → containers → look again

A turn goes round until nothing more can be done now. It goes by what the runtime, the checkpoints and the API tell, so
any turn may be broken off, or lost with its kubelet, and the next one goes on from there. `ending` has the other half.
"""

from collections.abc import Mapping
from typing import TypeVar

from msgspec.structs import replace

from podfit.api.core.v1.pods.container_status import ContainerStateWaiting
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod
from podfit.core.backoff import delay_after
from podfit.decide.lifecycle import effects as do
from podfit.decide.lifecycle import events as on
from podfit.decide.lifecycle.actions import plan
from podfit.decide.lifecycle.backoff import OUTAGE_SECONDS, RETRY_SECONDS, duration, size_hash, tried
from podfit.decide.lifecycle.conditions import keeping_foreign
from podfit.decide.lifecycle.effects import Effect, Passing
from podfit.decide.lifecycle.ending import carried_out, clean, delete, finish, stop, stop_sandboxes
from podfit.decide.lifecycle.events import Event
from podfit.decide.lifecycle.facts import ContainerState, ContainerStatus, Failure, PodFacts, StatusInput
from podfit.decide.lifecycle.life import NO_WAITS, At, Moment, NotStarted, PodLife, Stage, Step, Turn, Waits, after
from podfit.decide.lifecycle.status import generate, rejected
from podfit.decide.lifecycle.termination import MINIMUM_GRACE, spec_grace, stop_all, stop_some
from podfit.decide.lifecycle.turns import began, close, failed, is_under_way, resize, volumes_of, wake_up
from podfit.decide.pod.ephemeral_containers import every_container, field_path
from podfit.decide.pod.naming import full_name

FIRST_MOUNT_RETRY = 0.5
LONGEST_MOUNT_RETRY = 122.0
ROUNDS = 32

T = TypeVar("T")


def begin(pod: Pod, *, refreshed: bool) -> PodLife:
    """A pod that this kubelet has never worked on. `refreshed`: its volumes are brought up to date."""
    return PodLife(
        pod=pod, told=pod.status, refreshed=refreshed, over=has_ended(pod), turn=Turn(facts=PodFacts(pod.metadata.uid))
    )


def step(life: PodLife, event: Event, *, at: Moment) -> Step:  # noqa: C901  (a list of what can happen)
    """The life after the event, and what to do, in order."""
    match event:
        case on.Rejected(reason, message):
            status = rejected(life.pod, reason, message, at.now)
            return replace(life, told=status, over=True), (do.WriteStatus(status),)
        case on.EndWanted(failure):
            return _end_wanted(life, failure)
        case on.PodChanged(pod, quiet):
            return _changed(life, pod, quiet=quiet)
        case on.ObjectGone():
            interrupt = () if life.stage is Stage.DELETED else (do.Interrupt(),)
            return replace(life, gone=True), (*interrupt, do.TakeTurn())
        case on.ResizeLasts(inputs):
            return _lasts(life, inputs)
        case on.TurnBegan():
            return began(life, event, at)
        case on.TurnFailed():
            return failed(life, event)
        case on.CarriedOut():
            return carried_out(life)
        case on.Looked():
            return _looked(life, event, at)
        case on.Gathered():
            return _gathered(life, event, at)
        case on.Mounted() | on.MountFailed():
            return _mounted(life, event, at)
        case on.CgroupReady(made):
            return _cgroup_ready(life, made=made)
        case on.ResizeEnded():
            return _resized(life, event, at)
        case on.ContainerStarted(name):
            return _started(life, name, at)
        case on.ImageRefused():
            return _refused(life, event, at)
        case on.StartFailed():
            return _not_started(life, event, at)


# -------------------------------------------------------------------------- from outside


def _end_wanted(life: PodLife, failure: Failure) -> Step:
    if life.ending:
        return life, ()
    return replace(life, failure=failure, over=True), (do.Interrupt(), do.TakeTurn())


def _changed(life: PodLife, pod: Pod, *, quiet: bool) -> Step:
    """A pod that is to end, or to end sooner, interrupts what is going on. Of a status, what others write is news."""
    before, life = life.pod, replace(life, pod=pod)
    if quiet and keeping_foreign(before.status, pod.status) is before.status:
        return life, ()
    if _urgency(pod) != _urgency(before) and life.stage is not Stage.DELETED:
        return life, (do.Interrupt(), do.TakeTurn())
    return life, (do.TakeTurn(),)


def _lasts(life: PodLife, inputs: StatusInput) -> Step:
    if life.turn.at is not At.RESIZING:
        return life, ()
    status = generate(replace(inputs, waiting=life.waiting))
    return replace(life, told=status), (do.WriteStatus(status),)


def _urgency(pod: Pod) -> tuple[bool, int | None]:
    return pod.metadata.deletion_timestamp is not None, pod.metadata.deletion_grace_period_seconds


# -------------------------------------------------------------------------- a turn, from its beginning to its end


def _looked(life: PodLife, event: on.Looked, at: Moment) -> Step:
    life = life.in_turn(facts=event.facts)
    match life.turn.at:
        case At.SYNCING if event.unchanged is not None:
            return close(life, event.unchanged, at)
        case At.ENDING if life.gone or life.has_ended:
            return stop(life)
        case At.FREED if life.was_rejected:
            return stop_sandboxes(life)
        case At.CLEANING if life.was_rejected:
            return clean(life)
        case At.DELETING:
            return delete(life)
    return life, (do.Gather(event.facts),)


def _gathered(life: PodLife, event: on.Gathered, at: Moment) -> Step:
    """Say what is. A pod that is over keeps the size with which it ended, whatever is asked of it afterwards."""
    turn, inputs = life.turn, event.inputs
    allocated = life.sized if life.has_ended and life.sized is not None else inputs.allocated
    ending = turn.at not in (At.SYNCING, At.CLOSING)
    inputs = replace(inputs, allocated=allocated, waiting=life.waiting, failure=life.failure, ended=ending)
    status = generate(inputs, freed=turn.at is At.FREED)
    life = replace(life, sized=allocated)
    if turn.at is At.FREED:  # the API hears of it when the sandbox is down
        return after(do.Reconcile(status), step=stop_sandboxes(life))
    passing = Passing.NOT if ending else _passing(life, inputs)
    life, told = replace(life, told=status), (do.WriteStatus(status, passing), do.Reconcile(status))
    if turn.at is At.ENDING:
        return after(*told, step=stop(life))
    if turn.at is At.CLEANING:
        return after(*told, step=clean(life))
    pod = replace(allocated, status=status)
    todo = plan(pod, turn.facts)
    if life.has_ended or todo.over:
        return after(*told, step=finish(replace(life, over=True)))
    if turn.at is At.CLOSING:
        return after(*told, step=close(life, pod, at))
    if turn.resized and event.cgroup and not inputs.resize_conditions and todo.nothing:
        return after(*told, do.Rest(), step=close(life, pod, at))
    rounds = turn.rounds + 1
    turn = Turn(facts=turn.facts, rounds=rounds, pod=pod, cgroup=event.cgroup, todo=todo)
    life = replace(life, turn=turn)
    return after(*told, step=_with_cgroup(life) if life.mounted else (life, (do.Mount(pod),)))


def _passing(life: PodLife, inputs: StatusInput) -> Passing:
    """A turn says of a resize that it is in progress before it does it; afterwards, that it is complete or failed."""
    if not life.turn.facts.containers and not life.waiting:
        return Passing.START
    begins = life.turn.at is At.SYNCING and not life.turn.rounds
    return Passing.RESIZE if begins and is_under_way(inputs.resize_conditions) else Passing.NOT


# -------------------------------------------------------------------------- a round


def _mounted(life: PodLife, event: on.Mounted | on.MountFailed, at: Moment) -> Step:
    """The volumes stay as they were once there: a resize does not wait for the API to answer about them. A refresh that
    fails, be it that a ConfigMap was deleted or the API is away, is told and keeps what was mounted.
    """
    told = (do.Emit("Warning", "FailedMount", event.message),) if isinstance(event, on.MountFailed) else ()
    if life.turn.at is At.REFRESHING:
        return after(*told, step=wake_up(life, at))
    if told:
        wait = delay_after(life.mount_failures, FIRST_MOUNT_RETRY, LONGEST_MOUNT_RETRY)
        life = replace(life, mount_failures=life.mount_failures + 1)
        return after(*told, step=wake_up(life.in_turn(waits=Waits(exactly=wait)), at))
    pod = _pod(life)
    life = replace(life, mounted=True, mount_failures=0, volumes_at=at.monotonic, volumes_of=volumes_of(pod))
    return _with_cgroup(life)


def _with_cgroup(life: PodLife) -> Step:
    """What ran in a cgroup that is gone has to be started anew. It ends before there is another one: a kubelet that is
    killed meanwhile could not tell any more.
    """
    if life.turn.cgroup or life.turn.facts.sandbox is None:
        return life, (do.EnsureCgroup(_pod(life)),)
    return _all_anew(life)


def _all_anew(life: PodLife) -> Step:
    pod, facts = _pod(life), life.turn.facts
    sandboxes = tuple(sandbox.id for sandbox in facts.sandboxes)
    stopped = (stop_all(pod, facts, spec_grace(pod)), do.StopSandboxes(sandboxes))
    return after(*stopped, step=_look_again(life.in_turn(progress=True)))


def _cgroup_ready(life: PodLife, *, made: bool) -> Step:
    turn, pod = life.turn, _pod(life)
    facts, todo, sandboxes = turn.facts, turn.todo, tuple(sandbox.id for sandbox in turn.facts.sandboxes)
    if made and facts.sandbox is not None:
        return _all_anew(life)
    if todo.new_sandbox:
        attempt = facts.sandboxes[0].attempt + 1 if facts.sandboxes else 0
        made_anew = (
            stop_some(pod, todo.kill),
            do.StopSandboxes(sandboxes),
            do.RunSandbox(pod, attempt),
            do.RemoveSandboxes(sandboxes[1:]),
        )
        return after(*made_anew, step=_look_again(life.in_turn(progress=True)))
    return resize(life)


def _resized(life: PodLife, event: on.ResizeEnded, at: Moment) -> Step:
    turn, pod, facts = life.turn, _pod(life), life.turn.facts
    kills = turn.todo.kill
    replaced = {*event.replaced, *(kill.container.name for kill in kills if kill.again)}
    due = {container.name for container in turn.todo.start} | replaced
    unseen = turn.at is At.RESIZING and event.again is None  # whatever else there may be to do
    life = life.in_turn(
        waits=turn.waits.sooner(about=event.again),
        open=event.open,
        progress=bool(replaced or kills) or event.changed or unseen,
        resized=event.changed and not (due or kills),
        due=tuple(container for container in every_container(pod) if container.name in due),
        at_once=frozenset(replaced) - {kill.container.name for kill in kills if kill.waits},
    )
    superseded = [
        container
        for name in dict.fromkeys(container.name for container in facts.containers)
        for container in _superseded(facts, name, keep=2)
    ]
    pruned = (do.RemoveContainers(tuple(superseded)),) if superseded else ()
    return after(*pruned, step=_start_next(life, at))


def _start_next(life: PodLife, at: Moment) -> Step:
    """The next container that need not wait; after the last one the round is over."""
    told: list[Effect] = []
    while life.turn.due:
        container, *due = life.turn.due
        life = life.in_turn(due=tuple(due))
        life, refusal = _to_be_waited_for(life, container, at)
        if refusal is None:
            return life, (*told, _start(life, container))
        waiting, seconds = refusal
        if waiting.reason == "CrashLoopBackOff":
            text = f"Back-off restarting failed container {container.name} in pod {_named(life.pod)}"
            told.append(do.Emit("Warning", "BackOff", text, field_path(life.pod, container.name)))
        life = _waits(life, container.name, waiting, seconds)
    return after(*told, step=_round_over(life, at))


def _to_be_waited_for(
    life: PodLife, container: Container, at: Moment
) -> tuple[PodLife, tuple[ContainerStateWaiting, float] | None]:
    """Why the container may not be started yet, and for how many seconds; None when it is tried now."""
    name, facts = container.name, life.turn.facts
    ended, last = facts.last_ended(name), facts.last(name)
    if ended is not None and name not in life.turn.at_once:
        form, now, backoff = size_hash(container), at.now.timestamp(), life.backoffs.get(name)
        wait = backoff.remaining(ended.finished_at / 1e9, now, form) if backoff is not None else 0.0
        if backoff is not None and wait > 0:
            text = f"back-off {duration(backoff.delay)} restarting failed container={name} pod={_named(life.pod)}"
            return life, (ContainerStateWaiting(reason="CrashLoopBackOff", message=text), wait)
        life = replace(life, backoffs={**life.backoffs, name: tried(backoff, now, form)})
    if last is not None and last.state is ContainerState.CREATED and name in life.not_started:
        held = life.not_started[name]
        if held.until > at.monotonic:
            return life, (held.waiting, held.until - at.monotonic)
        life = replace(life, not_started=_without(life.not_started, name))
    return life, None


def _start(life: PodLife, container: Container) -> do.StartContainer:
    """One that was created and never started is made again and does not count as a restart."""
    pod, facts, last = _pod(life), life.turn.facts, life.turn.facts.last(container.name)
    sandbox = facts.sandbox
    assert sandbox is not None, "a pod without a sandbox has no containers to start"
    if last is None:
        known = (*pod.status.container_statuses, *pod.status.init_container_statuses)
        ran = next((status for status in known if status.name == container.name and status.container_id), None)
        attempt, replaces = ran.restart_count + 1 if ran is not None else 0, ""
    elif last.state is ContainerState.CREATED:
        attempt, replaces = last.attempt, last.id
    else:
        attempt, replaces = last.attempt + 1, ""
    return do.StartContainer(pod, container, sandbox, attempt, replaces, facts.running_ids)


def _started(life: PodLife, name: str, at: Moment) -> Step:
    life = replace(life, waiting=_without(life.waiting, name)).in_turn(progress=True)
    superseded = _superseded(life.turn.facts, name, keep=1)
    pruned = (do.RemoveContainers(superseded),) if superseded else ()
    return after(*pruned, step=_start_next(life, at))


def _refused(life: PodLife, event: on.ImageRefused, at: Moment) -> Step:
    waiting = ContainerStateWaiting(reason=event.refusal.reason, message=event.refusal.message)
    return _start_next(_waits(life, event.name, waiting, event.refusal.retry), at)


def _not_started(life: PodLife, event: on.StartFailed, at: Moment) -> Step:
    """A container whose postStart hook fails is ended, and comes again as its policy says. One that was made is not
    made again before the wait is over.
    """
    hook_failed = event.stage is on.StartStage.POST_START
    retry = OUTAGE_SECONDS if event.outage or hook_failed else RETRY_SECONDS
    waiting = ContainerStateWaiting(reason=event.stage.value, message=event.error)
    life = _waits(life, event.name, waiting, retry)
    path = field_path(life.pod, event.name)
    if hook_failed:
        told = do.Emit("Warning", "FailedPostStartHook", "PostStartHook failed", path)
        stop = do.Stop(event.instance, event.name, "FailedPostStartHook", max(MINIMUM_GRACE, spec_grace(life.pod)))
        return after(told, do.StopContainers(_pod(life), ((stop,),)), step=_start_next(life, at))
    if event.stage is not on.StartStage.CONFIGURE:
        held = NotStarted(waiting, at.monotonic + retry)
        life = replace(life, not_started={**life.not_started, event.name: held})
    return after(do.Emit("Warning", "Failed", f"Error: {event.error}", path), step=_start_next(life, at))


def _waits(life: PodLife, name: str, waiting: ContainerStateWaiting, seconds: float) -> PodLife:
    waits = life.turn.waits.sooner(exactly=seconds)
    return replace(life, waiting={**life.waiting, name: waiting}).in_turn(waits=waits)


def _superseded(facts: PodFacts, name: str, *, keep: int) -> tuple[ContainerStatus, ...]:
    """The last ended instance of a container is kept, for `kubectl logs --previous`, and no older one. `keep` is one
    less while the facts do not have the instance yet that was just made.
    """
    return tuple(old for old in facts.instances(name)[keep:] if old.state is not ContainerState.RUNNING)


def _round_over(life: PodLife, at: Moment) -> Step:
    """A round that did nothing leaves nothing new to look at, unless it found that a resize is over."""
    turn = life.turn
    if not turn.progress and turn.waits == NO_WAITS and not turn.open:
        return after(do.Rest(), step=close(life, _pod(life), at))
    return _look_again(life)


def _look_again(life: PodLife) -> Step:
    """For another round, where this one did something; else for the last report."""
    goes_on = life.turn.progress and life.turn.rounds < ROUNDS
    return life.in_turn(at=At.SYNCING if goes_on else At.CLOSING), (do.Look(),)


def _pod(life: PodLife) -> Pod:
    """The allocated pod with its newest status."""
    return life.turn.pod or life.pod


def _named(pod: Pod) -> str:
    return full_name(pod.metadata.name, pod.metadata.namespace, pod.metadata.uid)


def _without(entries: Mapping[str, T], name: str) -> Mapping[str, T]:
    return {key: entry for key, entry in entries.items() if key != name} if name in entries else entries
