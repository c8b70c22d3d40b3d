"""Probing: when a container is probed, and what a result changes.

    state, action = due(state, seen, now, settings)     before each probe: whether to ask at all
    state         = heard(state, outcome, settings)     after it

`state.result` is what others act on. It changes only after as many equal outcomes in a row as the threshold says:

    probe       before the first    failed means                 succeeded means
    startup     unknown             the container is restarted   it has started: the other probes begin
    liveness    success             the container is restarted   nothing
    readiness   failure             it is not ready              it is ready

A probe that has failed its container (`on_hold`) rests until there is a new instance of it. The rules are those of
upstream's kubelet (pkg/kubelet/prober/worker.go).
"""

import enum

import msgspec
from msgspec.structs import replace


class ProbeKind(enum.StrEnum):
    """The name as events write it."""

    STARTUP = "Startup"
    LIVENESS = "Liveness"
    READINESS = "Readiness"


class Result(enum.Enum):
    UNKNOWN = "unknown"
    SUCCESS = "success"
    FAILURE = "failure"


class Action(enum.Enum):
    ASK = "ask"
    WAIT = "wait"
    END = "end"  # nothing will ever be asked again


class ProbeSettings(msgspec.Struct, frozen=True):
    """`initial_delay` in seconds after the container's start; thresholds count outcomes in a row."""

    kind: ProbeKind
    initial_delay: float = 0.0
    failure_threshold: int = 3
    success_threshold: int = 1


class ProbedInstance(msgspec.Struct, frozen=True):
    """The newest instance of the container. `id` is empty before the first; `since` is when it was started, in Unix
    seconds.

    `started`: its startup probe has passed, or it has none. `was_well`: the API's status says of this very instance
    that it has passed this probe, as after a restart of the kubelet. `ending`: the pod is being deleted. `over`: it
    will not run again.
    """

    id: str = ""
    running: bool = False
    since: float = 0.0
    started: bool = True
    was_well: bool = False
    ending: bool = False
    over: bool = False


class ProbeState(msgspec.Struct, frozen=True):
    """`id` is the instance that `result` is of; `last` the last outcome, which came `run` times in a row."""

    id: str = ""
    result: Result | None = None
    last: Result = Result.UNKNOWN
    run: int = 0
    on_hold: bool = False


_FIRST = {ProbeKind.STARTUP: Result.UNKNOWN, ProbeKind.LIVENESS: Result.SUCCESS, ProbeKind.READINESS: Result.FAILURE}


def due(state: ProbeState, seen: ProbedInstance, now: float, settings: ProbeSettings) -> tuple[ProbeState, Action]:
    """Whether the probe is to be run at `now`, in Unix seconds."""
    if not seen.id:
        return state, Action.END if seen.over else Action.WAIT
    if seen.id != state.id:
        first = Result.SUCCESS if seen.was_well else _FIRST[settings.kind]
        state = replace(state, id=seen.id, result=first, on_hold=False)
    if state.on_hold:
        return state, Action.END if seen.over else Action.WAIT
    if not seen.running:
        return replace(state, result=Result.FAILURE), Action.END if seen.over else Action.WAIT
    if seen.ending and settings.kind is not ProbeKind.READINESS:
        ended = replace(state, result=Result.SUCCESS) if settings.kind is ProbeKind.STARTUP else state
        return ended, Action.END
    if now - seen.since < settings.initial_delay:
        return state, Action.WAIT
    if seen.started == (settings.kind is ProbeKind.STARTUP):
        return state, Action.WAIT
    return state, Action.ASK


def heard(state: ProbeState, outcome: Result, settings: ProbeSettings) -> ProbeState:
    """What an outcome, SUCCESS or FAILURE, makes of it."""
    run = state.run + 1 if outcome is state.last else 1
    state = replace(state, last=outcome, run=run)
    threshold = settings.failure_threshold if outcome is Result.FAILURE else settings.success_threshold
    if run < threshold:
        return state
    state = replace(state, result=outcome)
    if outcome is Result.FAILURE and settings.kind is not ProbeKind.READINESS:
        return replace(state, on_hold=True, run=0)
    return state
