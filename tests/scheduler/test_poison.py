"""A pod that cannot be decided about: the others are placed, and it is tried again."""

from typing import Any

import pytest

from podfit.decide.placement.place import place
from podfit.scheduler import scheduler
from support.scheduling import World


async def test_an_error_about_one_pod_ends_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = ["poison"]

    def failing_place(subject: Any, *args: Any, **more: Any) -> Any:
        if subject.pod.metadata.name in failing:
            raise RuntimeError("no verdict")
        return place(subject, *args, **more)

    monkeypatch.setattr(scheduler, "place", failing_place)
    await world.node("n1")
    await world.pod("poison", "100m")
    await world.pod("web", "100m")
    await world.until("web", lambda pod: bool(pod.spec.node_name))
    assert await world.placed("poison") == ""
    failing.clear()
    await world.clock.advance(30)
    await world.until("poison", lambda pod: bool(pod.spec.node_name))
