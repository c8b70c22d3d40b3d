"""The stage of the demo: acts through the actor, checks through the observer, and narrates both.

Every check that does not hold ends the demo with exit code 1: the demo tells only what it has seen.
"""

from collections.abc import Callable
from typing import Any

from podfit.api.core.v1.pods.types import Pod
from podfit.cli import render
from podfit.cli.demo.actor import NAMESPACE, Actor, Refused
from podfit.cli.demo.observer import Observer, resize_conditions, settled, status
from podfit.core.clock import Clock
from podfit.kubelet.cgroup.protocol import ContainerValues

IMAGE = "busybox:1.36"
# Ends at once on SIGTERM, which a bare `sleep` as process 1 would ignore.
STAY = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"]


class DemoFailed(Exception):
    """A promise of the story did not hold."""


class Stage:
    def __init__(self, actor: Actor, observer: Observer, clock: Clock) -> None:
        self.actor = actor
        self.observer = observer
        self.clock = clock

    def tell(self, text: str) -> None:
        render.line(text)

    def expect(self, holds: bool, promise: str) -> None:
        """Check a promise and say that it held."""
        if not holds:
            raise DemoFailed(promise)
        render.line(f"  ok  {promise}")

    async def start(self, manifest: dict[str, Any]) -> Pod:
        """Create a pod and wait until all of its containers run."""
        name = manifest["metadata"]["name"]
        began = self.clock.monotonic()
        await self.actor.create(manifest)
        pod = await self.observer.until(name, "runs", _running)
        milliseconds = 1000 * (self.clock.monotonic() - began)
        render.line(f"  pod {name} is running after {milliseconds:.0f} ms (QoS {pod.status.qos_class})")
        return pod

    async def resize(
        self, pod: str, container: str, patch: dict[str, Any], what: str, reached: Callable[[ContainerValues], bool]
    ) -> Pod:
        """Resize and wait for the kernel's value and then for the status; tells how long both took."""
        began = self.clock.monotonic()
        await self.actor.resize(pod, patch)
        await self.observer.until_kernel(pod, container, what, reached)
        kernel = self.clock.monotonic() - began
        done = await self.observer.until(pod, "shows the resize as complete", settled)
        total = self.clock.monotonic() - began
        render.line(
            f"  {what} reached the kernel after {1000 * kernel:.0f} ms, the status was complete after "
            f"{1000 * total:.0f} ms{self.actor.note}"
        )
        return done

    async def refused(self, pod: str, patch: dict[str, Any]) -> str:
        """Resize and expect a no; answers its text."""
        try:
            await self.actor.resize(pod, patch)
        except Refused as refusal:
            return str(refusal)
        raise DemoFailed(f"the resize of {pod} is refused")

    async def remove(self, *names: str) -> None:
        for name in names:
            await self.actor.delete(name)
        for name in names:
            await self.observer.until_gone(name)

    def show(self, name: str, *containers: str) -> None:
        """Desired, allocated, actual and the kernel's values, side by side."""
        pod = self.observer.pod(name)
        rows = [row for container in containers for row in self._rows(pod, container)]
        header = ("CONTAINER", "VALUE", "DESIRED", "ALLOCATED", "ACTUAL", "KERNEL", "RESTARTS")
        render.table(header, rows, indent="  ")

    def _rows(self, pod: Pod, container: str) -> list[tuple[str, ...]]:
        desired = next(declared.resources for declared in pod.spec.containers if declared.name == container)
        allocated = self.observer.allocated(pod.metadata.name, container)
        reported = status(pod, container)
        actual = reported.resources
        kernel = self.observer.kernel(pod.metadata.name, container)
        rows = []
        for resource in ("cpu", "memory"):
            for kind in ("requests", "limits"):
                values = (
                    getattr(desired, kind).get(resource),
                    allocated.get(kind, {}).get(resource),
                    getattr(actual, kind).get(resource) if actual else None,
                )
                shown = [str(value) if value is not None else "-" for value in values]
                rows.append(
                    (
                        container,
                        f"{resource} {kind[:-1]}",
                        *shown,
                        _kernel(kernel, resource, kind),
                        str(reported.restart_count),
                    )
                )
        return rows


def _kernel(values: ContainerValues | None, resource: str, kind: str) -> str:
    if values is None:
        return "no cgroup"
    if resource == "memory":
        if kind == "requests":
            return "(not in cgroups)"
        return "unlimited" if values.memory_limit is None else f"{values.memory_limit} bytes"
    if kind == "requests":
        return f"weight {values.cpu.weight}" if values.cpu.weight else f"shares {values.cpu.shares}"
    return "unlimited" if values.cpu.quota is None else f"quota {values.cpu.quota}/{values.cpu.period} us"


def _running(pod: Pod) -> bool:
    wanted = len(pod.spec.containers)
    ready = [status for status in pod.status.container_statuses if status.ready and status.resources is not None]
    return pod.status.phase == "Running" and len(ready) == wanted and not resize_conditions(pod)


def pod_manifest(name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A pod on the host network whose containers do nothing but wait."""
    full = [
        {"image": IMAGE, "imagePullPolicy": "IfNotPresent", "command": STAY, **container} for container in containers
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"hostNetwork": True, "terminationGracePeriodSeconds": 2, "containers": full, **spec},
    }
