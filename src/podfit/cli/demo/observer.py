"""The demo's observer: the API's pods by a watch, the node's checkpoint, the kernel's values."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import to_dict
from podfit.cli.demo.actor import NAMESPACE
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.decide.pod.resize_state import CONDITIONS
from podfit.kubelet.cgroup.protocol import QOS, CgroupError, Cgroups, ContainerValues
from podfit.kubelet.checkpoints.file import journal_of, read

LONGEST_WAIT = 30.0  # seconds
GLANCE = 0.001  # seconds between two looks at a kernel file


class NotSeen(Exception):
    """What was promised did not happen in time; the text says what was waited for."""


class Observer:
    """`run` until cancelled; the cluster's pods and cgroups are visible meanwhile."""

    def __init__(self, client: Client, cgroups: Cgroups, kubelet_dir: Path, clock: Clock) -> None:
        self._cgroups = cgroups
        self._checkpoint = kubelet_dir / "allocated_pods_state"
        self._clock = clock
        self._changed = asyncio.Event()
        self._pods = Informer(client, Pod, clock=clock, namespace=NAMESPACE)
        self._pods.add_handler(add=self._notice, update=lambda _, new: self._notice(new), delete=self._notice)

    async def run(self) -> None:
        await self._pods.run()

    async def synced(self) -> None:
        await self._pods.synced.wait()

    def _notice(self, _: Pod) -> None:
        self._changed.set()

    def pod(self, name: str) -> Pod:
        pod = self._pods.get(name, NAMESPACE)
        if pod is None:
            raise NotSeen(f"pod {name} is not there")
        return pod

    async def until(self, name: str, what: str, holds: Callable[[Pod], bool]) -> Pod:
        """Wait for the pod to look like this; `what` says it in words."""
        try:
            async with asyncio.timeout(LONGEST_WAIT):
                while True:
                    self._changed.clear()
                    pod = self._pods.get(name, NAMESPACE)
                    if pod is not None and holds(pod):
                        return pod
                    await self._changed.wait()
        except TimeoutError:
            raise NotSeen(f"after {LONGEST_WAIT:.0f} s: {name} {what}") from None

    async def until_gone(self, name: str) -> None:
        async with asyncio.timeout(LONGEST_WAIT):
            while self._pods.get(name, NAMESPACE) is not None:
                self._changed.clear()
                await self._changed.wait()

    async def until_kernel(
        self, name: str, container: str, what: str, holds: Callable[[ContainerValues], bool]
    ) -> None:
        """Look at the container's cgroup until it holds this."""
        deadline = self._clock.monotonic() + LONGEST_WAIT
        while not ((values := self.kernel(name, container)) and holds(values)):
            if self._clock.monotonic() > deadline:
                raise NotSeen(f"after {LONGEST_WAIT:.0f} s: the kernel's {what} of {name}/{container}")
            await self._clock.sleep(GLANCE)

    def kernel(self, name: str, container: str) -> ContainerValues | None:
        """What the kernel enforces on the running container now; None while it has no cgroup."""
        pod = self.pod(name)
        container_id = status(pod, container).container_id.rpartition("/")[2]
        qos: QOS = pod.status.qos_class  # type: ignore[assignment]  # the server stores only these three
        try:
            return self._cgroups.read_container(self._cgroups.layout.container(pod.metadata.uid, qos, container_id))
        except CgroupError:
            return None

    def allocated(self, name: str, container: str) -> dict[str, dict[str, str]]:
        """The container's resources in the node's own checkpoint, `{"limits": …, "requests": …}`."""
        entries = read(self._checkpoint, journal_of(self._checkpoint))
        promised: dict[str, dict[str, str]] = to_dict(entries[self.pod(name).metadata.uid].containers[container])
        return promised


def status(pod: Pod, container: str) -> ContainerStatus:
    """The status of one container, an empty one before the node has reported it."""
    found = (status for status in pod.status.container_statuses if status.name == container)
    return next(found, ContainerStatus(name=container))


def resize_conditions(pod: Pod) -> list[str]:
    return [condition.type for condition in pod.status.conditions if condition.type in CONDITIONS]


def settled(pod: Pod) -> bool:
    """The node has seen this generation, and neither waits nor works."""
    return pod.status.observed_generation >= pod.metadata.generation and not resize_conditions(pod)
