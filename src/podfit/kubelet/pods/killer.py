"""Stopping containers, as `decide.lifecycle.termination` orders it.

A preStop hook runs first, within the grace period, of which it leaves at least two seconds.
A stop that is cut short (the grace period was shortened, the kubelet ended) is simply asked for again.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

import msgspec

from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod
from podfit.core.clock import Clock
from podfit.decide.lifecycle.effects import Stop, StopContainers
from podfit.decide.lifecycle.termination import MINIMUM_GRACE, remaining
from podfit.decide.pod.ephemeral_containers import every_container, field_path
from podfit.kubelet.pods.hooks import HookFailed, Hooks
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.protocol import Runtime

log = logging.getLogger(__name__)


class Killer(msgspec.Struct, frozen=True):
    runtime: Runtime
    clock: Clock
    emit: Callable[[Pod, str, str, str, str], None]
    """Pod, type, reason, message, field path."""
    hooks: Hooks

    async def stop(self, stops: StopContainers) -> None:
        """Group after group."""
        began = self.clock.monotonic()
        for number, group in enumerate(stops.groups):
            elapsed = self.clock.monotonic() - began
            graces = [remaining(stop.grace, elapsed) if number else stop.grace for stop in group]
            await asyncio.gather(*map(partial(self._stop, stops.pod), group, graces))

    async def _stop(self, pod: Pod, stop: Stop, grace: int) -> None:
        container, path = _declared(pod, stop.name)
        self.emit(pod, "Normal", "Killing", stop.message, path)
        if container is None or container.lifecycle is None or container.lifecycle.pre_stop is None:
            await self.runtime.stop_container(stop.id, grace_seconds=grace)
            return
        hook, began, over = container.lifecycle.pre_stop, self.clock.monotonic(), asyncio.Event()

        async def run() -> None:
            try:
                await self.hooks.run(pod, container, stop.id, hook)
            except HookFailed as error:
                log.info("preStop hook failed pod=%s container=%s error=%s", labels.ref(pod), stop.name, error)
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
            left = remaining(grace, self.clock.monotonic() - began, least=MINIMUM_GRACE)
            await self.runtime.stop_container(stop.id, grace_seconds=left)
            if running.cancel() and hook.sleep is None:  # it ended with its container
                self.emit(pod, "Warning", "FailedPreStopHook", "PreStopHook failed", path)


def _declared(pod: Pod, name: str) -> tuple[Container | None, str]:
    """The container's declaration and its field path."""
    return next((container for container in every_container(pod) if container.name == name), None), field_path(
        pod, name
    )
