"""What a plan promises against what a real node then does, with real containers."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from answers.situations import Situation, compared
from e2e.real_world import Real
from podfit.answers.plan.result import DEFERRED, FITS, REFUSED, UNCHANGED
from podfit.api.meta.codec import convert
from podfit.api.scheduling.v1.types import PriorityClass
from podfit.client.kubeconfig import load
from support.up import Up

pytestmark = [pytest.mark.node, pytest.mark.xdist_group("node")]


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
