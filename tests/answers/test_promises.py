"""What a plan promises against what then happens: random situations on a node that decides for itself."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from answers.situations import Situation, busy, compared
from kubelet.harness import IDENTITY, Node
from podfit.answers.plan import DEFERRED, FITS, REFUSED, UNCHANGED
from podfit.api.codec import convert
from podfit.api.core.pods import Pod
from podfit.api.scheduling import PriorityClass
from podfit.client.rest import Client
from podfit.client.transport import Local
from support.server import Server, running_server

QUIET, LONGEST = 3, 300  # seconds without a write; leases and node heartbeats come every ten


class Fake:
    """A kubelet on a fake runtime, on time that is moved on until it is at rest."""

    node = "n1"

    def __init__(self, node: Node, server: Server) -> None:
        self.client = server.client
        self.container: dict[str, Any] = {"image": "app:1"}
        self._node, self._server = node, server

    async def rest(self, namespace: str) -> None:
        quiet, seen = 0, -1
        for _ in range(LONGEST):
            await self._node.advance(1)
            revision = self._server.context.store.revision
            pods = (await self.client.list(Pod, namespace)).items
            quiet, seen = (quiet + 1, seen) if revision == seen and not any(map(busy, pods)) else (0, revision)
            if quiet == QUIET:
                return
        raise AssertionError(f"{namespace} never came to rest")


async def fulfilled(seed: int, directory: Path) -> str:
    """Play one situation; what was seen, for the count of kinds."""
    node = Node(directory / f"node{seed}")
    async with running_server(directory, clock=node.clock, certificate=True) as server:
        node.use(Client(Local(server.api.handler, IDENTITY)))
        for name, value in (("low", 10), ("high", 1000)):
            await server.client.create(convert({"metadata": {"name": name}, "value": value}, PriorityClass))
        await node.start()
        try:
            situation = Situation(seed, Fake(node, server))
            await situation.prepare(server.account)
            return await compared(seed, situation)
        finally:
            await node.kubelet.stop(stop_pods=False)


async def test_what_is_promised_happens(tmp_path: Path) -> None:
    seen = [await fulfilled(seed, tmp_path) for seed in range(30)]
    assert {FITS, DEFERRED, REFUSED, UNCHANGED} <= set(seen)


@pytest.mark.campaign
@pytest.mark.timeout(900)
async def test_what_is_promised_happens_five_hundred_times(
    tmp_path: Path, figure: Callable[[str, object], None]
) -> None:
    """500 random situations on a simulated runtime: a plan's verdict, text, restarts and order are what a resize then
    does.
    """
    seen = [await fulfilled(seed, tmp_path) for seed in range(1000, 1500)]
    assert {FITS, DEFERRED, REFUSED, UNCHANGED} <= set(seen)
    for verdict in sorted(set(seen)):
        figure(verdict, seen.count(verdict))
