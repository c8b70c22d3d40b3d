"""A scheduler with a name and weights of its own, as a configuration file gives them."""

from pathlib import Path
from typing import Any

import pytest

from support.scheduling import running_scheduler

TAINT = [{"key": "full", "effect": "PreferNoSchedule"}]


@pytest.mark.parametrize(("weights", "chosen"), [({}, "n1"), ({"TaintToleration": 0}, "n2")])
async def test_it_takes_pods_of_its_name_alone_and_counts_scores_by_its_weights(
    tmp_path: Path, weights: dict[str, Any], chosen: str
) -> None:
    """The roomier node has a taint that a scheduler avoids only where taints count."""
    async with running_scheduler(tmp_path, name="mine", weights=weights) as world:
        await world.node("n1", cpu="2")
        await world.node("n2", cpu="16", taints=TAINT)
        await world.pod("others")
        await world.pod("a", schedulerName="mine")
        await world.until("a", lambda pod: bool(pod.spec.node_name))
        await world.rest()
        assert (await world.placed("a"), await world.placed("others")) == (chosen, "")
