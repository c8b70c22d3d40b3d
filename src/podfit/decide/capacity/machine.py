"""The cluster autoscaler's machine: what follows from a look at the cluster, and from what came of what was done.

    step(state, event, moment, settings) -> (state, effects)

Effects are carried out in their order by `podfit.autoscaler`, which feeds back what came of them.
"""

from msgspec.structs import replace

from podfit.decide.capacity.backoff import failed
from podfit.decide.capacity.look import (
    NORMAL,
    WARNING,
    Effect,
    Event,
    Increase,
    InstancesDeleted,
    Looked,
    Moment,
    Moved,
    Removed,
    Request,
    Say,
    ScaledUp,
    Shrunk,
    State,
)
from podfit.decide.capacity.looking import look_at
from podfit.decide.capacity.scale_down import MISSED_WITHIN, STEADY
from podfit.decide.capacity.settings import AutoscalerSettings
from podfit.decide.node.room import texts
from podfit.decide.node.room.minimum import offer_version

Step = tuple[State, tuple[Effect, ...]]


def step(state: State, event: Event, moment: Moment, settings: AutoscalerSettings) -> Step:
    match event:
        case Looked():
            return look_at(state, event.look, moment, settings)
        case ScaledUp():
            return _scaled_up(state, event, moment, settings)
        case Removed():
            return _removed(state, event, moment)
        case Shrunk():
            return _shrunk(state, event)
        case Moved():
            return _moved(state, event, moment)
        case InstancesDeleted():
            return state, tuple(_deleted(event))


def _scaled_up(state: State, event: ScaledUp, moment: Moment, settings: AutoscalerSettings) -> Step:
    """C-043, C-044, C-097."""
    requests, backoffs, steady = dict(state.requests), dict(state.backoffs), dict(state.steady)
    effects: list[Effect] = []
    done: list[Increase] = []
    for increase in event.scale_up.increases:
        group, error = increase.group, event.errors.get(increase.group.id)
        if error is not None:
            backoffs[group.id] = failed(
                backoffs.get(group.id), moment.at, settings.backoff, "cloudProviderError", error
            )
            effects.append(Say(None, WARNING, "FailedToScaleUpGroup", f"Scale-up failed for group {group.id}: {error}"))
            continue
        done.append(increase)
        before = requests.get(group.id)
        requests[group.id] = Request(increase.by + (before.nodes if before is not None else 0), moment.at)
        if moment.at - state.removed.get(group.id, float("-inf")) < MISSED_WITHIN:
            steady[group.id] = moment.at + STEADY
        text = f"group {group.id} size set to {increase.size} instead of {group.target} (max: {group.max_size})"
        effects.append(Say(None, NORMAL, "ScaledUpGroup", f"Scale-up: {text}"))
    state = replace(state, requests=requests, backoffs=backoffs, steady=steady)
    if not done:
        return state, tuple(effects)
    listed = " ".join(f"{{{one.group.id} {one.group.target}->{one.size} (max: {one.group.max_size})}}" for one in done)
    effects += [
        Say(pod, NORMAL, "TriggeredScaleUp", f"pod triggered scale-up: [{listed}]") for pod in event.scale_up.pods
    ]
    return replace(state, scaled_up_at=moment.at), tuple(effects)


def _removed(state: State, event: Removed, moment: Moment) -> Step:
    removing = {name: one for name, one in state.removing.items() if name != event.node}
    state = replace(state, removing=removing)
    if event.error:
        return replace(state, failed_at=moment.at), ()
    unneeded = {name: since for name, since in state.unneeded.items() if name != event.node}
    removed = {**state.removed, event.group: moment.at}
    return replace(state, unneeded=unneeded, removed=removed, removed_at=moment.at), ()


def _shrunk(state: State, event: Shrunk) -> Step:
    """Who could not be shrunk is left out from now on, until the pod is another one."""
    waiting, plan = event.shrink.waiting, event.shrink.plan
    if event.refusals or event.error:
        changes = [change for change in plan.shrinks if change.pod.metadata.uid in event.refusals]
        offers = {change.pod.metadata.uid: offer_version(change.pod) for change in changes}
        told = [texts.refused(change, event.refusals[change.pod.metadata.uid]) for change in changes]
        state = replace(state, unwilling={**state.unwilling, **offers})
        return state, tuple(Say(waiting, WARNING, texts.REFUSED, text) for text in told)
    making = Say(waiting, NORMAL, texts.MAKING, texts.intent(plan))
    gave = (Say(change.pod, NORMAL, texts.GAVE_ROOM, texts.gift(change, waiting)) for change in plan.shrinks)
    return state, (making, *gave)


def _moved(state: State, event: Moved, moment: Moment) -> Step:
    pod, waiting = event.move.pod, event.move.waiting
    moves = {uid: at for uid, at in state.moves.items() if uid != pod.metadata.uid}
    names = [f"{one.metadata.namespace}/{one.metadata.name}" for one in (pod, waiting)]
    if event.error:
        text = f"{names[0]} is not evicted for its resize: {event.error}"
        return replace(state, moves=moves), (Say(waiting, WARNING, "MoveRefused", text),)
    moves[pod.metadata.uid] = moment.at
    own = "its resize has a place there" if names[0] == names[1] else f"so that {names[1]} can grow where it is"
    told = Say(pod, NORMAL, "MovedForResize", f"Evicted to run on node {event.move.to}: {own}")
    return replace(state, moves=moves), (told,)


def _deleted(event: InstancesDeleted) -> list[Effect]:
    delete = event.delete
    names = ", ".join(delete.ids)
    if event.error:
        text = f"Failed to remove instances {names} of group {delete.group}: {event.error}"
        return [Say(None, WARNING, f"{delete.reason}Failed", text)]
    return [Say(None, NORMAL, delete.reason, f"Removed instances {names} of group {delete.group}")]
