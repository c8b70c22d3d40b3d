"""The stories of the demo. Each makes its pods, resizes them, checks the kernel's values, and leaves nothing behind."""

import contextlib
import os
import signal
from typing import Any

from podfit.api.core.v1.pods.types import Pod
from podfit.cli.demo.observer import settled, status
from podfit.cli.demo.stage import DemoFailed, Stage, pod_manifest
from podfit.core.quantity import Quantity
from podfit.decide.pod.resize_state import ResizeStage, ResizeState

MI = 2**20
SOON = 5.0
"""Seconds. Without news of the runtime a node looks again after ten, so what is sooner was told."""


async def without_restart(stage: Stage) -> None:
    """A CPU limit changes under a running container; a memory limit restarts it, because its policy says so."""
    stage.tell("\n1. A CPU limit changes without a restart, a memory limit restarts the container (as its policy asks)")
    await stage.start(
        pod_manifest(
            "web",
            {
                "name": "app",
                "resources": _both(requests=("200m", "64Mi"), limits=("400m", "64Mi")),
                "resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}],
            },
        )
    )
    before = status(stage.observer.pod("web"), "app")
    stage.show("web", "app")

    stage.tell("  resize: cpu limit 400m -> 800m")
    await stage.resize(
        "web",
        "app",
        _patch("app", limits={"cpu": "800m"}),
        "cpu limit",
        lambda kernel: kernel.cpu.quota == 80_000 * kernel.cpu.period // 100_000,
    )
    after = status(stage.observer.pod("web"), "app")
    stage.show("web", "app")
    stage.expect(after.container_id == before.container_id, f"same container, {_short(after.container_id)}")
    stage.expect(after.restart_count == 0, "restartCount 0")

    stage.tell("  resize: memory limit 64Mi -> 128Mi, policy RestartContainer")
    await stage.resize(
        "web",
        "app",
        _patch("app", limits={"memory": "128Mi"}),
        "memory limit",
        lambda kernel: kernel.memory_limit == 128 * MI,
    )
    restarted = status(stage.observer.pod("web"), "app")
    stage.show("web", "app")
    stage.expect(restarted.restart_count == 1, "restartCount 1: restarted exactly once")
    stage.expect(restarted.container_id != after.container_id, f"new container, {_short(restarted.container_id)}")
    await stage.remove("web")


async def pod_level(stage: Stage) -> None:
    """Pod-level CPU grows: only containers without a limit of their own are touched, each by its own policy."""
    stage.tell("\n2. Pod-level resources: the pod's CPU grows; c0 is left alone, c1 restarts once (its policy)")
    both = [{"resourceName": name, "restartPolicy": "RestartContainer"} for name in ("cpu", "memory")]
    c0_policy = [{"resourceName": "cpu", "restartPolicy": "NotRequired"}, both[1]]
    await stage.start(
        pod_manifest(
            "team",
            {"name": "c0", "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}}, "resizePolicy": c0_policy},
            {"name": "c1", "resizePolicy": both},
            resources=_both(requests=("200m", "200Mi"), limits=("200m", "200Mi")),
        )
    )
    stage.show("team", "c0", "c1")
    stage.tell("  resize: pod cpu 200m -> 300m (request and limit)")
    patch = {"spec": {"resources": {"requests": {"cpu": "300m"}, "limits": {"cpu": "300m"}}}}
    pod = await stage.resize(
        "team", "c0", patch, "pod cpu limit", lambda kernel: kernel.cpu.quota == 30_000 * kernel.cpu.period // 100_000
    )
    stage.show("team", "c0", "c1")
    stage.expect(status(pod, "c0").restart_count == 0, "c0 restartCount 0")
    stage.expect(status(pod, "c1").restart_count == 1, "c1 restartCount 1")
    stage.expect(pod.status.qos_class == "Guaranteed", "QoS class still Guaranteed")
    await stage.remove("team")


async def no_room(stage: Stage, allocatable: dict[str, Quantity]) -> None:
    """A growth that does not fit waits, and completes by itself when its neighbour's last container has exited."""
    stage.tell("\n3. Not enough room: the growth waits, and completes by itself when the neighbour is done")
    room = allocatable["cpu"].milli()
    large, grown = room * 6 // 10, room * 6 // 10
    neighbour = {"name": "first", "resources": {"requests": {"cpu": f"{large - 50}m"}}}
    last = {"name": "last", "resources": {"requests": {"cpu": "50m"}}}
    await stage.start(pod_manifest("batch", neighbour, last, restartPolicy="Never"))
    await stage.start(pod_manifest("db", {"name": "app", "resources": {"requests": {"cpu": "100m"}}}))

    stage.tell(f"  resize: db cpu request 100m -> {grown}m; batch holds {large}m of {room}m")
    await stage.actor.resize("db", _patch("app", requests={"cpu": f"{grown}m"}))
    waiting = await stage.observer.until("db", "is Deferred", lambda pod: bool(_pending(pod)))
    message = _pending(waiting)
    stage.tell(f"  Deferred: {message}")
    stage.show("db", "app")
    wanted = f"Node didn't have enough resource: cpu, requested: {grown}, used: {large}, capacity: {room}"
    stage.expect(message == wanted, "the message names what is requested, used and there")

    _end(stage, "batch", "first")
    await stage.observer.until("batch", "ended its first container", lambda pod: _ended(pod, "first"))
    stage.expect(bool(_pending(stage.observer.pod("db"))), "still Deferred while one container of batch runs")
    began = stage.clock.monotonic()
    _end(stage, "batch", "last")
    done = await stage.observer.until("db", "completed by itself", settled)
    seconds = stage.clock.monotonic() - began
    stage.show("db", "app")
    stage.expect(seconds < SOON, f"complete {1000 * seconds:.0f} ms after the last container of batch was told to exit")
    stage.expect(status(done, "app").restart_count == 0, "restartCount 0")

    stage.tell(f"  resize: db cpu request to {room + 1000}m, more than the node has")
    refusal = await stage.refused("db", _patch("app", requests={"cpu": f"{room + 1000}m"}))
    stage.tell(f"  refused: {refusal}")
    expected = f"node didn't have enough allocatable resources: cpu, requested: {room + 1000}, allocatable: {room}"
    stage.expect(expected in refusal, "the API refuses what the node can never hold")
    await stage.remove("db", "batch")


def _end(stage: Stage, pod: str, container: str) -> None:
    """Tell the container's processes to exit, as a job that is done would by itself."""
    kernel = stage.observer.kernel(pod, container)
    if kernel is None or not kernel.processes:
        raise DemoFailed(f"{pod}/{container} runs")
    for process in kernel.processes:
        with contextlib.suppress(ProcessLookupError):  # the end of the first may have been that of the others
            os.kill(process, signal.SIGTERM)


def _ended(pod: Pod, container: str) -> bool:
    return status(pod, container).state.terminated is not None


def _pending(pod: Pod) -> str:
    """The message of a Deferred resize, or nothing."""
    state = ResizeState.of(pod)
    return state.message if state.stage is ResizeStage.DEFERRED else ""


def _both(*, requests: tuple[str, str], limits: tuple[str, str]) -> dict[str, dict[str, str]]:
    names = ("cpu", "memory")
    return {"requests": dict(zip(names, requests, strict=True)), "limits": dict(zip(names, limits, strict=True))}


def _patch(container: str, **resources: dict[str, str]) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": container, "resources": resources}]}}


def _short(container_id: str) -> str:
    return container_id.rpartition("/")[2][:12]


async def all_stories(stage: Stage, allocatable: dict[str, Quantity]) -> None:
    await without_restart(stage)
    await pod_level(stage)
    await no_room(stage, allocatable)
