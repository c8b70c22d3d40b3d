"""Several resizes planned together, on a real node: verdicts, order and restarts are what then happens."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from answers.shop import classes, play
from answers.situations import busy
from podfit.api.core.v1.config.types import ServiceAccount
from podfit.api.core.v1.pods.types import Pod
from podfit.client.kubeconfig import load
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from support.eventually import Steady, eventually
from support.up import IMAGE, STAY, Up

pytestmark = [pytest.mark.node, pytest.mark.xdist_group("node")]
T = TypeVar("T")
SECONDS, QUIET = 120.0, 7


class Real:
    """`podfit up` with a real node, looked at until nothing changes for a while."""

    def __init__(self, up: Up, runner: asyncio.Runner) -> None:
        self._runner = runner
        self.client: Client = self.run(_client(up.kubeconfig))
        self.nodes = [socket.gethostname().lower()]
        self.container: dict[str, Any] = {"image": IMAGE, "command": STAY}

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def settle(self, namespace: str) -> None:
        """Until the namespace has its account, and its pods have not changed for a while."""
        look = partial(self._look, namespace)
        eventually(lambda: self.run(look()), Steady(QUIET), within=SECONDS, what=f"{namespace} comes to rest")

    async def _look(self, namespace: str) -> str | None:
        pods = (await self.client.list(Pod, namespace)).items
        try:
            await self.client.get(ServiceAccount, "default", namespace)
        except ApiError:
            return None
        return None if any(map(busy, pods)) else " ".join(pod.metadata.resource_version for pod in pods)


async def _client(kubeconfig: Path) -> Client:
    return load([kubeconfig]).client()


def played(up: Up, seeds: range) -> list[str]:
    with asyncio.Runner() as runner:
        world = Real(up, runner)
        try:
            classes(world)
            return [verdict for seed in seeds for verdict in play(seed, world)]
        finally:
            runner.run(world.client.close())


def test_what_is_planned_together_happens_on_a_real_node(cluster_dir: Up) -> None:
    cluster_dir.start()
    assert played(cluster_dir, range(3))


@pytest.mark.campaign
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", [4000, 4025, 4050, 4075], ids=["4000-4024", "4025-4049", "4050-4074", "4075-4099"])
def test_what_is_planned_together_happens_on_a_real_node_many_times(
    cluster_dir: Up, first: int, figure: Callable[[str, object], None]
) -> None:
    """25 random situations with up to 12 pods on a node with containerd: several resizes in a planned order, then
    departures given to both sides. Verdicts, texts, order and restarts of the plan equal what the node then does.
    """
    cluster_dir.start()
    seen = played(cluster_dir, range(first, first + 25))
    for verdict in sorted(set(seen)):
        figure(verdict, seen.count(verdict))
