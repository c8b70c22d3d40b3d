"""A real node as the world of a situation: `podfit up`, looked at until nothing changes for a while."""

import socket
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from answers.situations import HEAVY, busy
from podfit.answers.facts.snapshot import Reader, Snapshot, by_pod
from podfit.answers.facts.target import POD, Target
from podfit.answers.facts.usage import UsageReader
from podfit.api.core.v1.config.types import ServiceAccount
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.pods.phase import ENDED
from podfit.api.core.v1.pods.types import Pod
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.net.system import SystemClock
from support.eventually import Steady, eventually_async
from support.up import IMAGE, STAY

T = TypeVar("T")
SECONDS, QUIET = 60.0, 7
HOLD = (
    "trap 'exit 0' TERM; mkfifo /tmp/fifo; "
    f"{{ head -c {HEAVY} /dev/zero; exec sleep 99999; }} > /tmp/fifo & tail -c {HEAVY} < /tmp/fifo & wait $!"
)
"""Has tail fill its buffer and wait for more, so that as much is used as was ever used; ends as tail does."""


class Real:
    """`podfit up` with a real node, looked at until nothing changes for a while."""

    steady = False

    def __init__(self, client: Client) -> None:
        self.client = client
        self.node = socket.gethostname().lower()
        self.container: dict[str, Any] = {"image": IMAGE, "command": STAY}
        self.brief: dict[str, Any] = {"command": ["true"]}
        self.heavy: dict[str, Any] = {"command": ["sh", "-c", HOLD]}

    async def account(self, namespace: str) -> None:
        """The cluster makes it."""

        async def look() -> ServiceAccount | None:
            try:
                return await self.client.get(ServiceAccount, "default", namespace)
            except ApiError:
                return None

        await self._eventually(look, lambda _: True, f"{namespace} has its service account")

    async def added(self, namespace: str) -> None:
        """The next one takes longer to make than the node to see this one."""

    async def look(self, namespace: str, name: str) -> Snapshot:
        return await Reader(self.client, namespace).read(Target(POD, name), usage=True)

    async def use(self, memory: int) -> None:
        """They do so by themselves; until the kubelet tells it."""
        reader = UsageReader(self.client, SystemClock())

        async def look() -> list[tuple[int, dict[str, int]]]:
            """For each pod that runs: how many containers it has, and what those use of which it is known."""
            running = [pod for pod in (await self.client.list(Pod)).items if pod.status.phase == "Running"]
            names = {(pod.metadata.namespace, pod.metadata.name): len(pod.spec.containers) for pod in running}
            used = by_pod(await reader.read("", dict.fromkeys(names, self.node), rates=False))
            return [(count, used.get(name, {})) for name, count in names.items()]

        def everywhere(pods: list[tuple[int, dict[str, int]]]) -> bool:
            return all(sum(bytes_ >= memory for bytes_ in used.values()) == count for count, used in pods)

        await self._eventually(look, everywhere, f"every container uses {memory} bytes")

    async def tried_again(self) -> bool:
        return False

    async def end(self, name: str) -> None:
        """It does so by itself."""

        async def phase() -> str:
            pods = (await self.client.list(Pod)).items
            return next(pod for pod in pods if pod.metadata.name == name).status.phase

        await self._eventually(phase, lambda phase: phase in ENDED, f"{name} ends")

    async def rest(self, namespace: str) -> None:
        async def look() -> str | None:
            pods = (await self.client.list(Pod, namespace)).items
            return None if any(map(busy, pods)) else " ".join(pod.metadata.resource_version for pod in pods)

        await self._eventually(look, Steady(QUIET), f"{namespace} comes to rest")

    async def clear(self, namespace: str) -> None:
        """Pods now; the rest in the five seconds that a namespace has."""
        await self.client.delete(Namespace, namespace)
        for pod in (await self.client.list(Pod, namespace)).items:
            await self.client.delete(Pod, pod.metadata.name, namespace)

        async def look() -> tuple[Pod, ...]:
            return (await self.client.list(Pod, namespace)).items

        await self._eventually(look, lambda pods: not pods, f"{namespace} is empty")

    async def _eventually(self, look: Callable[[], Awaitable[T | None]], holds: Callable[[T], object], what: str) -> T:
        return await eventually_async(look, holds, within=SECONDS, what=what, every=0.1)
