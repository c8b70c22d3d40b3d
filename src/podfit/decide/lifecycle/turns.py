"""A turn's beginning and end: the pod's deadline, when to look again, and the volumes that are brought up to date."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.types import Pod, PodCondition
from podfit.api.core.v1.pods.volumes import DownwardAPIVolumeFile, Volume
from podfit.core.backoff import delay_after
from podfit.core.times import parse_time
from podfit.decide.lifecycle import effects as do
from podfit.decide.lifecycle import events as on
from podfit.decide.lifecycle.actions import Kill
from podfit.decide.lifecycle.backoff import OUTAGE_SECONDS, RETRY_SECONDS
from podfit.decide.lifecycle.effects import Effect
from podfit.decide.lifecycle.ending import finish
from podfit.decide.lifecycle.facts import Failure
from podfit.decide.lifecycle.life import At, Moment, PodLife, Step, Turn
from podfit.decide.lifecycle.termination import stop_some
from podfit.decide.pod.resize_state import IN_PROGRESS

RESYNC_SECONDS = 60.0
UNWRITTEN_RESYNC_SECONDS = 600.0  # where no volume is brought up to date, and no event of the runtime is lost
FIRST_END_RETRY = 1.0

DEADLINE = "DeadlineExceeded"
TOO_LONG = "Pod was active on the node longer than the specified deadline"


def began(life: PodLife, event: on.TurnBegan, at: Moment) -> Step:
    life = replace(life, told=event.status, turn=Turn(facts=life.turn.facts))
    life, left = _seconds_left(life, at)
    told: tuple[Effect, ...] = ()
    if left is not None and left <= 0 and not life.ending:
        life = replace(life, failure=Failure(DEADLINE, TOO_LONG), over=True)
        told = (do.Emit("Normal", DEADLINE, TOO_LONG),)
    if not life.ending:
        return _resize_at_once(life, event.at_rest) if event.at_rest is not None else (life, (do.Look(),))
    life, effects = finish(life)
    return life, (*told, *effects)


def _resize_at_once(life: PodLife, known: on.AtRest) -> Step:
    """The runtime is asked for another size before anything else is done: what it shows then is the first look."""
    if not life.mounted or life.is_open or not is_under_way(known.conditions):
        return life, (do.Look(),)
    pod = replace(known.allocated, status=life.told)
    return resize(life.in_turn(at=At.RESIZING, rounds=1, pod=pod))


def resize(life: PodLife) -> Step:
    """Begins the resize of a round, or of a pod at rest."""
    pod, facts, todo = life.turn.pod or life.pod, life.turn.facts, life.turn.todo
    stops, running = stop_some(pod, todo.kill).groups[0], [*facts.running]
    anew = (Kill(container, f"Container {container.name} resize requires restart") for container in running)
    restarts = {stop.name: stop for stop in stop_some(pod, anew).groups[0]}
    sandbox = facts.sandbox.id if facts.sandbox is not None else ""
    again = {kill.container.name: kill.container.id for kill in todo.kill if kill.again}
    return life, (do.Resize(pod, sandbox, facts.running_ids, stops, restarts, again),)


def is_under_way(conditions: Iterable[PodCondition]) -> bool:
    """Whether a resize is to be actuated that has not failed."""
    return any(one.type == IN_PROGRESS and not one.reason for one in conditions)


def _seconds_left(life: PodLife, at: Moment) -> tuple[PodLife, float | None]:
    """Until the pod has been active for as long as it may be; None when there is no such limit."""
    started, allowed = life.told.start_time, life.pod.spec.active_deadline_seconds
    if not started:
        return life, None
    began = life.began
    if began is None:
        began = at.monotonic - max(0.0, (at.now - parse_time(started)).total_seconds())
        life = replace(life, began=began)
    return life, None if allowed is None else began + allowed - at.monotonic


def wake_up(life: PodLife, at: Moment) -> Step:
    """The turn is over, and the pod lives on."""
    life, left = _seconds_left(replace(life, failures=0), at)
    resync = RESYNC_SECONDS if life.refreshed else UNWRITTEN_RESYNC_SECONDS
    waits = life.turn.waits.sooner(exactly=left, about=resync)
    exactly = None if waits.exactly is None else max(0.0, waits.exactly)
    return life, (do.WakeUp(exactly=exactly, about=waits.about),)


def failed(life: PodLife, event: on.TurnFailed) -> Step:
    """It is to be repeated: while the pod ends by longer and longer waits."""
    told: tuple[Effect, ...] = ()
    if event.sandbox:
        text = f"Failed to create pod sandbox: {event.error}"
        told = (do.Emit("Warning", "FailedCreatePodSandBox", text),)
    if life.ending:
        wait = do.WakeUp(shortened=delay_after(life.failures, FIRST_END_RETRY, RETRY_SECONDS))
        return replace(life, failures=life.failures + 1), (*told, wait)
    return life, (*told, do.WakeUp(about=OUTAGE_SECONDS if event.outage else RETRY_SECONDS))


def close(life: PodLife, pod: Pod, at: Moment) -> Step:
    """Bring the volumes up to date when all else is done: once a minute, and when what they tell has changed."""
    told = volumes_of(pod)
    due = at.monotonic - life.volumes_at >= RESYNC_SECONDS or told != life.volumes_of
    if not (life.refreshed and life.mounted and due):
        return wake_up(life, at)
    life = replace(life, volumes_at=at.monotonic, volumes_of=told)
    return life.in_turn(at=At.REFRESHING), (do.Mount(pod, again=True),)


def volumes_of(pod: Pod) -> tuple[object, ...]:
    """What the downward API files in its volumes say of a pod; the rest of a volume is not about the pod."""
    meta, spec = pod.metadata, pod.spec
    items = [item for volume in spec.volumes for item in _downward_items(volume)]
    told: list[object] = []
    if any(item.field_ref is not None for item in items):
        told += meta.labels, meta.annotations, pod.status.pod_ips
    if any(item.resource_field_ref is not None for item in items):
        told += *(container.resources for container in all_containers(spec)), spec.resources
    return tuple(told)


def _downward_items(volume: Volume) -> Iterator[DownwardAPIVolumeFile]:
    sources = volume.projected.sources if volume.projected is not None else ()
    for source in (volume.downward_api, *(source.downward_api for source in sources)):
        if source is not None:
            yield from source.items
