"""A scheduler with a name and weights of its own, as a configuration file gives them."""

from pathlib import Path
from typing import Any

import pytest

from podfit.api.core.v1.events.types import Event
from podfit.decide.placement.fit_score import FitScoring, Strategy
from support.scheduling import running_scheduler

TAINT = [{"key": "full", "effect": "PreferNoSchedule"}]


@pytest.mark.parametrize(("weights", "chosen"), [({}, "n1"), ({"TaintToleration": 0}, "n2")])
async def test_it_takes_pods_of_its_name_alone_and_counts_scores_by_its_weights(
    tmp_path: Path, weights: dict[str, Any], chosen: str
) -> None:
    """The roomier node has a taint that a scheduler avoids only where taints count."""
    async with running_scheduler(tmp_path, {"mine": weights}) as world:
        await world.node("n1", cpu="2")
        await world.node("n2", cpu="16", taints=TAINT)
        await world.pod("others")
        await world.pod("a", schedulerName="mine")
        await world.until("a", lambda pod: bool(pod.spec.node_name))
        await world.rest()
        assert (await world.placed("a"), await world.placed("others")) == (chosen, "")


async def test_profiles_of_one_process_share_what_they_know(tmp_path: Path) -> None:
    """One fills nodes and the other spreads out; what either has placed takes room from both, and each speaks under
    its own name."""
    profiles: dict[str, dict[str, int]] = {"default-scheduler": {}, "full": {}}
    async with running_scheduler(tmp_path, profiles, {"full": FitScoring(Strategy.MOST_ALLOCATED)}) as world:
        await world.node("n1", cpu="4")
        await world.node("n2", cpu="4")
        for name, scheduler in (("a", "default-scheduler"), ("b", "full"), ("c", "full"), ("d", "default-scheduler")):
            await world.pod(name, schedulerName=scheduler)
            await world.until(name, lambda pod: bool(pod.spec.node_name))
        assert [await world.placed(name) for name in "abcd"] == ["n1", "n1", "n1", "n2"]
        await world.pod("others", schedulerName="elsewhere")
        await world.pod("large", cpu="4", schedulerName="full")
        await world.until("large", lambda pod: bool(pod.status.conditions))
        await world.rest()
        page = world.metrics.exposition().decode()
        assert 'scheduler_schedule_attempts_total{profile="full",result="scheduled"} 2.0' in page
        assert 'scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="full"} 1.0' in page
        assert 'scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"} 0.0' in page
        events = {
            (event.involved_object.name, event.source.component)
            for event in (await world.client.list(Event, "default")).items
            if event.reason in ("Scheduled", "FailedScheduling")
        }
        assert {("a", "default-scheduler"), ("b", "full"), ("large", "full")} <= events
        assert await world.placed("others") == ""
