"""A pod that cannot be decided about: the others are placed, and it is tried again."""

import pytest

from podfit.decide.placement.place import Placed, Unschedulable
from podfit.decide.placement.view import Resident
from podfit.scheduler.cache import Key
from podfit.scheduler.ranking import Rankings
from support.scheduling import World


async def test_an_error_about_one_pod_ends_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = ["poison"]

    decided = Rankings.place

    def failing_place(rankings: Rankings, key: Key, subject: Resident) -> Placed | Unschedulable | None:
        if subject.pod.metadata.name in failing:
            raise RuntimeError("no verdict")
        return decided(rankings, key, subject)

    monkeypatch.setattr(Rankings, "place", failing_place)
    await world.node("n1")
    await world.pod("poison", "100m")
    await world.pod("web", "100m")
    await world.until("web", lambda pod: bool(pod.spec.node_name))
    assert await world.placed("poison") == ""
    failing.clear()
    await world.clock.advance(30)
    await world.until("poison", lambda pod: bool(pod.spec.node_name))
