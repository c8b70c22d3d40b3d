"""What a plan promises against what a real node then does, with real containers."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from answers.situations import Situation, busy, compared
from podfit.answers.plan import DEFERRED, FITS, REFUSED, UNCHANGED
from podfit.api.codec import convert
from podfit.api.core.config import ServiceAccount
from podfit.api.core.namespaces import Namespace
from podfit.api.core.pods import Pod
from podfit.api.scheduling import PriorityClass
from podfit.client.kubeconfig import load
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from support.up import IMAGE, STAY, Up

pytestmark = [pytest.mark.node, pytest.mark.xdist_group("node")]
LOOK, QUIET, LONGEST = 0.1, 6, 600


class Real:
    """`podfit up` with a real node, looked at until nothing changes for a while."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.node = socket.gethostname().lower()
        self.container: dict[str, Any] = {"image": IMAGE, "command": STAY}

    async def account(self, namespace: str) -> None:
        """The cluster makes it."""
        for _ in range(LONGEST):
            try:
                await self.client.get(ServiceAccount, "default", namespace)
                return
            except ApiError:
                await asyncio.sleep(LOOK)
        raise AssertionError(f"no service account in {namespace}")

    async def rest(self, namespace: str) -> None:
        quiet, seen = 0, ""
        for _ in range(LONGEST):
            pods = (await self.client.list(Pod, namespace)).items
            now = " ".join(each.metadata.resource_version for each in pods)
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
    ("first", "kinds"), [(3000, {FITS, DEFERRED, REFUSED}), (3025, {FITS, REFUSED, UNCHANGED})],
    ids=["3000-3024", "3025-3049"])
def test_a_real_node_does_what_is_promised_many_times(
    cluster_dir: Up, first: int, kinds: set[str], figure: Callable[[str, object], None]
) -> None:
    """25 random situations on a node with containerd: a plan's verdict, text, restarts and order are what a resize
    then does.
    """
    cluster_dir.start()
    seen = asyncio.run(_played(cluster_dir, range(first, first + 25)))
    assert kinds <= set(seen)
    for verdict in sorted(set(seen)):
        figure(verdict, seen.count(verdict))
