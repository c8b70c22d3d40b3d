"""What a plan promises against what a real node then does, with real containers."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from answers.situations import HEAVY, Situation, busy, compared
from podfit.answers.plan_result import DEFERRED, FITS, REFUSED, UNCHANGED
from podfit.answers.snapshot import ENDED, Reader, Snapshot, by_pod
from podfit.answers.target import POD, Target
from podfit.answers.usage import UsageReader
from podfit.api.core.v1.config.types import ServiceAccount
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.scheduling.v1.types import PriorityClass
from podfit.client.kubeconfig import load
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.net.system import SystemClock
from support.up import IMAGE, STAY, Up

pytestmark = [pytest.mark.node, pytest.mark.xdist_group("node")]
LOOK, QUIET, LONGEST = 0.1, 6, 600
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
        for _ in range(LONGEST):
            try:
                await self.client.get(ServiceAccount, "default", namespace)
                return
            except ApiError:
                await asyncio.sleep(LOOK)
        raise AssertionError(f"no service account in {namespace}")

    async def added(self, namespace: str) -> None:
        """The next one takes longer to make than the node to see this one."""

    async def look(self, namespace: str, name: str) -> Snapshot:
        return await Reader(self.client, namespace).read(Target(POD, name), usage=True)

    async def use(self, memory: int) -> None:
        """They do so by themselves; until the kubelet tells it."""
        reader, used = UsageReader(self.client, SystemClock()), dict[tuple[str, str], dict[str, int]]()
        for _ in range(LONGEST):
            running = [pod for pod in (await self.client.list(Pod)).items if pod.status.phase == "Running"]
            placed = {(pod.metadata.namespace, pod.metadata.name): self.node for pod in running}
            used = by_pod(await reader.memory("", placed))
            known = [used.get((pod.metadata.namespace, pod.metadata.name), {}) for pod in running]
            counts = [len(pod.spec.containers) for pod in running]
            if all(
                sum(limit >= memory for limit in now.values()) == count
                for now, count in zip(known, counts, strict=True)
            ):
                return
            await asyncio.sleep(LOOK)
        raise AssertionError(f"not every container used {memory} bytes: {used}")

    async def end(self, name: str) -> None:
        """It does so by itself."""
        for _ in range(LONGEST):
            pods = (await self.client.list(Pod)).items
            if next(pod for pod in pods if pod.metadata.name == name).status.phase in ENDED:
                return
            await asyncio.sleep(LOOK)
        raise AssertionError(f"{name} never ended")

    async def rest(self, namespace: str) -> None:
        quiet, seen = 0, ""
        for _ in range(LONGEST):
            pods = (await self.client.list(Pod, namespace)).items
            now = " ".join(pod.metadata.resource_version for pod in pods)
            quiet, seen = (quiet + 1, seen) if now == seen and not any(map(busy, pods)) else (0, now)
            if quiet >= QUIET:
                return
            await asyncio.sleep(LOOK)
        raise AssertionError(f"{namespace} never came to rest")

    async def clear(self, namespace: str) -> None:
        await self.client.delete(Namespace, namespace)
        for _ in range(LONGEST):
            if not (await self.client.list(Pod, namespace)).items:
                return
            await asyncio.sleep(LOOK)
        raise AssertionError(f"{namespace} was never empty")


async def _played(up: Up, seeds: range) -> list[str]:
    client = load([Path(up.kubeconfig)]).client()
    try:
        world = Real(client)
        for name, value in (("low", 10), ("high", 1000)):
            await client.create(convert({"metadata": {"name": name}, "value": value}, PriorityClass))
        seen = []
        for seed in seeds:
            situation = Situation(seed, world)
            await situation.prepare(world.account)
            seen.append(await compared(seed, situation))
            await world.clear(situation.namespace)
        return seen
    finally:
        await client.close()


def test_a_real_node_does_what_is_promised(cluster_dir: Up) -> None:
    cluster_dir.start()
    assert asyncio.run(_played(cluster_dir, range(2000, 2004)))


@pytest.mark.campaign
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("first", "options", "kinds"),
    [(3000, (), {FITS, DEFERRED, REFUSED}), (3025, ("--make-room",), {FITS, REFUSED, UNCHANGED})],
    ids=["3000-3024", "3025-3049"],
)
def test_a_real_node_does_what_is_promised_many_times(
    cluster_dir: Up, first: int, options: tuple[str, ...], kinds: set[str], figure: Callable[[str, object], None]
) -> None:
    """25 random situations on a node with containerd: a plan's verdict, text, restarts and order are what a resize
    then does. In the second half neighbours make room.
    """
    cluster_dir.start(*options)
    seen = asyncio.run(_played(cluster_dir, range(first, first + 25)))
    assert kinds <= set(seen)
    for verdict in sorted(set(seen)):
        figure(verdict, seen.count(verdict))
