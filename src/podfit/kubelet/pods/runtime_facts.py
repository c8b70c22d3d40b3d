"""Asks the runtime for its state of one pod (`decide.lifecycle.facts`)."""

import asyncio
import os
from collections.abc import Coroutine, Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from podfit.decide.lifecycle.facts import (
    ContainerState,
    ContainerStatus,
    LinuxResources,
    PodFacts,
    Sandbox,
    SandboxStatus,
)
from podfit.kubelet.disk.safe_paths import open_regular
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.errors import NotFound
from podfit.kubelet.runtime.logs import tail_text
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.runtime.types import Container

FILE_BYTES = 4096  # of a termination message
LOG_BYTES = 2048
LOG_LINES = 80


async def observe(runtime: Runtime, uid: str, before: PodFacts | None = None, *, resized: bool = False) -> PodFacts:
    """Ask the runtime. A container that vanishes between list and inspect is not there (R-181).

    What was there `before` is inspected while it is listed: the runtime is waited for once and not twice when nothing
    came since. `resized`: of what was there running containers have another size, and nothing else was done.
    """
    if resized and before is not None and (same := await _of_another_size(runtime, before)) is not None:
        return same
    mine = {labels.POD_UID: uid}
    boxes = [sandbox.id for sandbox in before.sandboxes[:1]] if before is not None else []
    inside = [container.id for container in before.containers] if before is not None else []
    answers: list[Any] = await asyncio.gather(
        runtime.list_sandboxes(labelled=mine),
        runtime.list_containers(labelled=mine),
        *_inspections(runtime, boxes, inside),
    )
    found: tuple[Sandbox, ...] = answers[0]
    listed: tuple[Container, ...] = answers[1]
    by_id = dict(zip((*boxes, *inside), answers[2:], strict=True))
    sandboxes = tuple(sorted(found, key=lambda sandbox: (sandbox.attempt, sandbox.created_at), reverse=True))
    if not sandboxes:
        return PodFacts(uid)
    homes = {sandbox.id for sandbox in sandboxes}
    entries = [container for container in listed if container.sandbox_id in homes]
    boxes = [sandbox.id for sandbox in sandboxes[:1] if sandbox.id not in by_id]
    inside = [entry.id for entry in entries if entry.id not in by_id]
    if boxes or inside:
        answers = await asyncio.gather(*_inspections(runtime, boxes, inside))
        by_id |= zip((*boxes, *inside), answers, strict=True)
    known: list[tuple[Container, ContainerStatus]]
    known = [(entry, one) for entry in entries if (one := by_id[entry.id]) is not None]
    known.sort(key=lambda pair: (pair[1].attempt, pair[1].created_at), reverse=True)
    return PodFacts(
        uid,
        sandboxes,
        by_id[sandboxes[0].id],
        tuple(one for _, one in known),
        tuple((entry.id, entry.sandbox_id) for entry, _ in known),
    )


async def _of_another_size(runtime: Runtime, before: PodFacts) -> PodFacts | None:
    """Asks about the running containers alone. None when one of them does not run any more."""
    ids = [container.id for container in before.running]
    if len(ids) == 1:  # without a task of its own it is asked a turn of the loop sooner
        statuses = [await _container_status(runtime, ids[0])]
    else:
        statuses = await asyncio.gather(*(_container_status(runtime, container_id) for container_id in ids))
    now = {status.id: status for status in statuses if status is not None and status.state is ContainerState.RUNNING}
    if now.keys() != set(ids):
        return None
    return replace(before, containers=tuple(now.get(container.id, container) for container in before.containers))


def _inspections(runtime: Runtime, boxes: list[str], inside: list[str]) -> Iterator[Coroutine[Any, Any, Any]]:
    """What the runtime says of sandboxes, then of containers; what is gone comes to None."""
    yield from (_sandbox_status(runtime, sandbox_id) for sandbox_id in boxes)
    yield from (_container_status(runtime, container_id) for container_id in inside)


async def _sandbox_status(runtime: Runtime, sandbox_id: str) -> SandboxStatus | None:
    try:
        return await runtime.sandbox_status(sandbox_id)
    except NotFound:
        return None


async def _container_status(runtime: Runtime, container_id: str) -> ContainerStatus | None:
    try:
        status = await runtime.container_status(container_id)
    except NotFound:
        return None
    if status.state is not ContainerState.EXITED or status.message:
        return status
    return replace(
        status,
        message=read_message(
            Path(status.annotations.get(labels.MESSAGE_PATH, "")),
            status.annotations.get(labels.MESSAGE_POLICY, ""),
            log=Path(status.log_path),
            failed=status.exit_code != 0,
        ),
    )


async def enforced(runtime: Runtime, node: str) -> dict[str, dict[str, LinuxResources]]:
    """What the runtime holds for the running containers of this node's pods, by uid and container name."""
    found: dict[str, dict[str, LinuxResources]] = {}
    for uid in owned(await runtime.list_sandboxes(), node):
        facts = await observe(runtime, uid)
        found[uid] = {
            container.name: container.resources
            for container in reversed(facts.running)
            if container.resources is not None
        }
    return found


def owned(sandboxes: Iterable[Sandbox], node: str) -> dict[str, labels.PodRef]:
    """The pods that this node has in the runtime, by uid."""
    return {
        sandbox.uid: labels.PodRef(sandbox.uid, sandbox.name, sandbox.namespace)
        for sandbox in sandboxes
        if sandbox.labels.get(labels.NODE) == node
    }


def read_message(file: Path, policy: str, *, log: Path, failed: bool) -> str:
    """Why a container ended, in its own words; empty when it said nothing, or its files are gone.

    File                    what it wrote to its termination message path, the last 4096 bytes of it
    FallbackToLogsOnError   the same; if that is empty and it failed, its last 80 lines of log, at most 2048 bytes
    """
    text = _tail(file) if file.name else ""
    if not text and failed and policy == "FallbackToLogsOnError":
        return tail_text(log, lines=LOG_LINES, limit=LOG_BYTES)
    return text


def _tail(file: Path) -> str:
    try:
        with open(open_regular(file), "rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - FILE_BYTES))
            return stream.read(FILE_BYTES).decode(errors="replace")
    except OSError:
        return ""
