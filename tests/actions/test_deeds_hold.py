"""What a plan of several pods promises, against what `podfit resize` then does, undo included."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from actions.deeds import KINDS, Deeds
from actions.shop import Shop
from kubelet.harness import IDENTITY, Node
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.net.inline_executor import InlineExecutor
from podfit.store.memory import memory_store
from podfit.testing.loop import TestLoop
from support.server import running_server


async def fulfilled(seed: int, directory: Path) -> list[str]:
    random.seed(seed)  # the jitter of retries
    node = Node(directory / f"node{seed}")
    async with running_server(
        directory, clock=node.clock, certificate=True, store=memory_store(InlineExecutor)
    ) as server:
        await server.account("default", certificate=True)
        node.use(Client(Local(server.api.handler, IDENTITY)))
        await node.start()
        try:
            deeds = Deeds(seed, Shop(node, server))
            await deeds.prepare()
            return [kind async for kind in deeds.play()]
        finally:
            await node.kubelet.stop(stop_pods=False)


def played(seeds: Iterable[int], directory: Path) -> Counter[str]:
    """Without threads and in virtual time, so that a seed is the same situation every time."""

    async def play() -> Counter[str]:
        seen: Counter[str] = Counter()
        for seed in seeds:
            seen.update(await fulfilled(seed, directory))
        return seen

    with asyncio.Runner(loop_factory=TestLoop) as runner:
        return runner.run(play())


def test_what_is_promised_is_done(tmp_path: Path) -> None:
    """1290: a pod waits under a budget with those that give the room, and goes back to more than it has."""
    seen = played((*range(24), 1290), tmp_path)
    assert seen.keys() >= KINDS, seen


@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_what_is_promised_is_done_five_hundred_times(tmp_path: Path, figure: Callable[[str, object], None]) -> None:
    """500 random situations of up to 4 pods with disruption budgets, LimitRange defaults, manifests that leave sizes
    out, a VPA and an HPA, and a reader without nodes: two resizes and an undo each, as `podfit resize` does them.
    Verdicts, texts, sizes, restarts and what the VPA takes back are what the plan says.
    """
    seen = played(range(1000, 1500), tmp_path)
    assert seen.keys() >= KINDS, seen
    for kind in sorted(seen):
        figure(kind, seen[kind])
