"""Detects OOMs, from changes of pods' statuses and from eviction events (V-042, V-043)."""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.pods.container_status import ContainerStateTerminated, ContainerStatus
from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import Quantity
from podfit.core.resources import MEMORY
from podfit.core.times import parse_time
from podfit.decide.autoscaling.container_view import every_container, statuses_of

KILLED, EVICTED = "OOMKilled", "Evicted"
OFFENDERS, USAGE, STARVED = "offending_containers", "offending_containers_usage", "starved_resource"


class OutOfMemory(msgspec.Struct, frozen=True):
    """`memory` is what the container had asked for, or what it used when it was evicted, in bytes."""

    namespace: str
    pod: str
    container: str
    memory: int
    time: datetime


def ran_out(old: Pod, new: Pod) -> Iterator[OutOfMemory]:
    """What a change of a pod tells: a container was just killed, or was killed and runs again."""
    before = {status.name: status for status in statuses_of(old)}
    for status in statuses_of(new):
        was = before.get(status.name)
        if was is None:
            continue
        if (end := _killed_now(was, status)) is not None:
            yield from _told(new, status.name, end)
        elif (end := _killed_between(was, status)) is not None:
            yield from _told(old, status.name, end)


def _killed_now(was: ContainerStatus, now: ContainerStatus) -> ContainerStateTerminated | None:
    end = now.state.terminated
    new = was.state.terminated is None or now.restart_count > was.restart_count
    return end if end is not None and end.reason == KILLED and new else None


def _killed_between(was: ContainerStatus, now: ContainerStatus) -> ContainerStateTerminated | None:
    end = now.last_state.terminated
    ran = was.state.running is not None and now.state.running is not None
    return end if end is not None and end.reason == KILLED and ran and now.restart_count > was.restart_count else None


def _told(pod: Pod, name: str, end: ContainerStateTerminated) -> Iterator[OutOfMemory]:
    """An OOM with the request that the container had; none when the spec does not have it, or no time is known."""
    own = next((scaled.own for scaled in every_container(pod) if scaled.container.name == name), None)
    if own is None or end.finished_at is None:
        return
    asked = own.requests.get(MEMORY)
    meta = pod.metadata
    yield OutOfMemory(meta.namespace, meta.name, name, asked.value() if asked else 0, parse_time(end.finished_at))


def evicted(event: Event) -> Iterator[OutOfMemory]:
    """What an eviction tells of the containers that a node short of memory blames; what cannot be read is left out."""
    about, notes, created = event.involved_object, event.metadata.annotations, event.metadata.creation_timestamp
    lists = [notes.get(name, "").split(",") for name in (OFFENDERS, USAGE, STARVED)]
    same = len({len(names) for names in lists}) == 1
    if event.reason != EVICTED or about.kind != "Pod" or created is None or not same:
        return
    for container, usage, resource in zip(*lists, strict=True):
        if resource == MEMORY and (memory := _read(usage)) is not None:
            yield OutOfMemory(about.namespace, about.name, container, memory, parse_time(created))


def _read(text: str) -> int | None:
    try:
        return Quantity.parse(text).value()
    except ValueError:
        return None
