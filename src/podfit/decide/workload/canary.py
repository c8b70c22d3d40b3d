"""The canary of a resize: what is seen of the first pods that have a new size, and whether the others get it too.

step(canary, observation) -> (canary, verdict)      no I/O, no clock: time is an observation as well

observation    Seen (a pod as the API has it)   Gone   Throttled (of a container, since the last look)   TimeUp
verdict        None: go on watching    GoOn: the others may follow    GoBack: with what was seen
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.workload.pods import is_ready

RESTART, OOM, UNREADY, THROTTLED = "restart", "oom", "unready", "throttled"
KILLED = "OOMKilled"


class Triggers(msgspec.Struct, frozen=True):
    """`throttled` is a share of the periods, beyond which it counts; None where it does not."""

    restart: bool = False
    oom: bool = False
    unready: bool = False
    throttled: float | None = None

    def __str__(self) -> str:
        plain = [name for name in (RESTART, OOM, UNREADY) if getattr(self, name)]
        return ", ".join([*plain, *([f"{THROTTLED} > {self.throttled:.0%}"] if self.throttled is not None else [])])


def triggers(text: str) -> Triggers:
    """Reads `restart,oom,unready` and `throttled>10%`. Raises ValueError."""
    told = Triggers()
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, beyond, share = word.partition(">")
        if beyond:
            told = replace(told, throttled=_share(word, name.strip(), share.strip()))
        elif word in (RESTART, OOM, UNREADY):
            told = replace(told, **{word: True})
        else:
            raise ValueError(f"{word!r} is none of {RESTART}, {OOM}, {UNREADY}, {THROTTLED}>10%")
    if told == Triggers():
        raise ValueError(f"name at least one of {RESTART}, {OOM}, {UNREADY}, {THROTTLED}>10%")
    return told


def _share(word: str, name: str, share: str) -> float:
    number = share.removesuffix("%")
    if name != THROTTLED or not share.endswith("%") or not number.isdecimal() or not 0 <= int(number) < 100:
        raise ValueError(f"{word!r} is not {THROTTLED}>N%, with N from 0 to 99")
    return int(number) / 100


class Watched(msgspec.Struct, frozen=True):
    """`allowed` restarts by container; `ready` is whether it was so before, `back` whether it has been since."""

    pod: str
    allowed: Mapping[str, int]
    ready: bool
    back: bool = False


class Canary(msgspec.Struct, frozen=True):
    """`pods` by UID."""

    triggers: Triggers
    pods: Mapping[str, Watched]


class Seen(msgspec.Struct, frozen=True):
    pod: Pod


class Gone(msgspec.Struct, frozen=True):
    uid: str


class Throttled(msgspec.Struct, frozen=True):
    """`share` of the periods since the look before."""

    pod: str
    container: str
    share: float


class TimeUp(msgspec.Struct, frozen=True):
    pass


class GoOn(msgspec.Struct, frozen=True):
    pass


class GoBack(msgspec.Struct, frozen=True):
    why: str


Observation: TypeAlias = Seen | Gone | Throttled | TimeUp
Verdict: TypeAlias = GoOn | GoBack | None


def begin(wanted: Triggers, pods: Iterable[Pod], planned: Mapping[str, Iterable[str]]) -> Canary:
    """`pods` as they are before they are resized; `planned` has by UID the containers that the resize restarts."""
    watched = {}
    for pod in pods:
        restarts = set(planned.get(pod.metadata.uid, ()))
        allowed = {status.name: status.restart_count + (status.name in restarts) for status in _statuses(pod)}
        watched[pod.metadata.uid] = Watched(pod.metadata.name, allowed, is_ready(pod))
    return Canary(wanted, watched)


def step(canary: Canary, observation: Observation) -> tuple[Canary, Verdict]:
    match observation:
        case Seen(pod):
            watched = canary.pods.get(pod.metadata.uid)
            return (canary, None) if watched is None else _seen(canary, watched, pod)
        case Gone(uid):
            gone = canary.pods.get(uid)
            return canary, GoBack(f"{gone.pod} was deleted") if gone is not None else None
        case Throttled(pod, container, share):
            most = canary.triggers.throttled
            held = most is not None and share > most
            return canary, GoBack(f"{pod}: {container} was throttled in {share:.0%} of its periods") if held else None
    missing = [one.pod for one in canary.pods.values() if canary.triggers.unready and one.ready and not one.back]
    return canary, GoBack(f"{missing[0]} did not become ready again") if missing else GoOn()


def _seen(canary: Canary, watched: Watched, pod: Pod) -> tuple[Canary, Verdict]:
    if pod.metadata.deletion_timestamp:
        return canary, GoBack(f"{watched.pod} was deleted")
    for status in _statuses(pod):
        if why := _container(canary.triggers, watched, status):
            return canary, GoBack(f"{watched.pod}: {why}")
    ready = is_ready(pod)
    if canary.triggers.unready and watched.back and not ready:
        return canary, GoBack(f"{watched.pod} is not ready any more")
    if ready and not watched.back:
        pods = {**canary.pods, pod.metadata.uid: replace(watched, back=True)}
        return replace(canary, pods=pods), None
    return canary, None


def _container(wanted: Triggers, watched: Watched, status: ContainerStatus) -> str:
    more = status.restart_count - watched.allowed.get(status.name, 0)
    end = status.state.terminated or (status.last_state.terminated if more > 0 else None)
    if wanted.oom and end is not None and end.reason == KILLED:
        return f"{status.name} ran out of memory"
    if wanted.restart and more > 0:
        how = f" (exit code {end.exit_code}{f', {end.reason}' if end.reason else ''})" if end is not None else ""
        return f"{status.name} was restarted{how}"
    return ""


def _statuses(pod: Pod) -> tuple[ContainerStatus, ...]:
    return (*pod.status.container_statuses, *pod.status.init_container_statuses)
