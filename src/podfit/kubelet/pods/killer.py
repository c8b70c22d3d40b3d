"""Stopping containers and sandboxes, in an order that lets sidecars outlive what they serve.

    regular containers and plain init containers    all at once
    sidecars                                        one by one, the last one first
    sandboxes                                       after the containers, which frees what they hold

A preStop hook runs first, within the grace period, of which it leaves at least two seconds.
A stop that is cut short (the grace period was shortened, the kubelet ended) is simply asked for again.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

import msgspec

from podfit.api.core.v1.pods.aggregate import is_sidecar
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod
from podfit.core.clock import Clock
from podfit.decide.pod.ephemeral_containers import every_container, field_path
from podfit.decide.pod.lifecycle.actions import Kill
from podfit.decide.pod.lifecycle.facts import ContainerState, ContainerStatus, PodFacts
from podfit.decide.pod.lifecycle.termination import spec_grace
from podfit.kubelet.pods.hooks import HookFailed, Hooks
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.protocol import Runtime

log = logging.getLogger(__name__)

MINIMUM_GRACE = 2
"""Seconds given to a container that is stopped alone, as for a restart."""

_ALIVE = (ContainerState.RUNNING, ContainerState.UNKNOWN)


class Killer(msgspec.Struct, frozen=True):
    runtime: Runtime
    clock: Clock
    emit: Callable[[Pod, str, str, str, str], None]
    """Pod, type, reason, message, field path."""
    hooks: Hooks

    async def stop_for_restart(self, pod: Pod, kills: Iterable[Kill]) -> None:
        graces = ((kill, spec_grace(pod) if kill.grace is None else kill.grace) for kill in kills)
        await asyncio.gather(
            *(self._stop(pod, kill.container, max(MINIMUM_GRACE, grace), kill.message) for kill, grace in graces)
        )

    async def stop_pod(self, pod: Pod, facts: PodFacts, grace: int) -> None:
        """Every container of the pod, with `grace` seconds for all of it; sandboxes stay."""
        began = self.clock.monotonic()
        sidecars = {
            container.name: place for place, container in enumerate(pod.spec.init_containers) if is_sidecar(container)
        }
        alive = [container for container in facts.containers if container.state in _ALIVE]
        await asyncio.gather(
            *(
                self._stop(pod, container, grace, f"Stopping container {container.name}")
                for container in alive
                if container.name not in sidecars
            )
        )
        for container in sorted(
            (container for container in alive if container.name in sidecars),
            key=lambda container: -sidecars[container.name],
        ):
            left = max(1, grace - int(self.clock.monotonic() - began))
            await self._stop(pod, container, left, f"Stopping container {container.name}")

    async def stop_sandboxes(self, facts: PodFacts) -> None:
        await asyncio.gather(*(self.runtime.stop_sandbox(sandbox.id) for sandbox in facts.sandboxes))

    async def remove_sandboxes(self, facts: PodFacts) -> None:
        """With all their containers."""
        await asyncio.gather(*(self.runtime.remove_sandbox(sandbox.id) for sandbox in facts.sandboxes))

    async def _stop(self, pod: Pod, status: ContainerStatus, grace: int, message: str) -> None:
        container, path = _declared(pod, status.name)
        self.emit(pod, "Normal", "Killing", message, path)
        if container is None or container.lifecycle is None or container.lifecycle.pre_stop is None:
            await self.runtime.stop_container(status.id, grace_seconds=grace)
            return
        hook, began, over = container.lifecycle.pre_stop, self.clock.monotonic(), asyncio.Event()

        async def run() -> None:
            try:
                await self.hooks.run(pod, container, status.id, hook)
            except HookFailed as error:
                log.info("preStop hook failed pod=%s container=%s error=%s", labels.ref(pod), status.name, error)
                self.emit(pod, "Warning", "FailedPreStopHook", "PreStopHook failed", path)
            finally:
                over.set()

        async with asyncio.TaskGroup() as group:
            running = group.create_task(run())
            timer = self.clock.call_later(grace, over.set)
            try:
                await over.wait()
            finally:
                timer.cancel()
            left = max(MINIMUM_GRACE, grace - int(self.clock.monotonic() - began))
            await self.runtime.stop_container(status.id, grace_seconds=left)
            if running.cancel() and hook.sleep is None:  # it ended with its container
                self.emit(pod, "Warning", "FailedPreStopHook", "PreStopHook failed", path)


def _declared(pod: Pod, name: str) -> tuple[Container | None, str]:
    """The container's declaration and its field path."""
    return next((container for container in every_container(pod) if container.name == name), None), field_path(
        pod, name
    )
