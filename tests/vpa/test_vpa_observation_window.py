"""A new VPA that only observes for a while: it resizes, evicts and admits nothing, says so, and then it acts."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podfit.answers.why.vpa import read_facts, why_vpa
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.meta.codec import convert
from podfit.client.vpa_kinds import VPAS
from podfit.decide.autoscaling.conditions import OBSERVING
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.policies import OBSERVATION_WINDOW, observes, observes_until
from podfit.decide.autoscaling.validation import validate
from podfit.vpa.admission.controller import AdmissionController, AdmissionSettings
from podfit.vpa.admission.registration import Registration, register
from podfit.vpa.updater.settings import UpdaterSettings
from podfit.vpa.updater.updater import Updater
from support.vpa_world import NAMESPACE, World, recommending

SMALL = ("100m", "300Mi")
MINUTES = 10
BOOST = {"cpu": {"type": "Factor", "factor": 3}}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A Deployment of three pods that use half a core, and all three processes."""
    async with recommending(tmp_path) as made:
        await made.deployment("web")
        await made.replicaset("web-rs", "web", 3)
        for number in range(3):
            await made.pod(f"web-{number}", "web", owner="web-rs")
        made.usage.used = {f"web-{number}": {"app": ("500m", "600Mi")} for number in range(3)}
        await made.start()
        await made.run(Updater(made.client, clock=made.clock, settings=UpdaterSettings(admission=None)).run())
        gates = Gates(cpu_startup_boost=True)
        controller = AdmissionController(made.client, clock=made.clock, settings=AdmissionSettings(gates=gates))
        made.usage.beside["vpa-webhook"] = controller.handle
        await made.run(controller.run())
        await register(made.client, Registration(), b"")
        await made.clock.settle()
        yield made


async def vpa(world: World, window: str | None, **spec: Any) -> None:
    annotations = {} if window is None else {OBSERVATION_WINDOW: window}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    meta = {"name": "web", "namespace": NAMESPACE, "annotations": annotations}
    document = {"metadata": meta, "spec": {"targetRef": target, **spec}}
    await world.client.create_in(VPAS, convert(document, VerticalPodAutoscaler))
    await world.clock.settle()


@pytest.mark.parametrize("mode", ["Recreate", "InPlaceOrRecreate", "Initial"])
async def test_vpa_of_a_window_observes_says_so_and_then_acts(world: World, mode: str) -> None:
    await vpa(world, f"{MINUTES}m", updatePolicy={"updateMode": mode}, startupBoost=BOOST)
    await world.minutes(3)
    assert (await world.sizes("web"))["app"].target["cpu"].milli() > 500, "it recommends meanwhile"
    status, text = (await world.conditions("web"))[OBSERVING]
    assert status == "True"
    assert text.startswith("The VPA only observes until 20")
    await world.pod("new", "web", owner="web-rs")
    assert set((await world.requests()).values()) == {SMALL}
    why = why_vpa(await read_facts(world.client, "web", NAMESPACE, world.clock), world.clock.now())
    assert any("observes until" in condition for condition in why.conditions)
    if mode != "Initial":
        whys = {stand.why.partition(" until ")[0] for stand in why.stands}
        assert whys == {"the updater leaves it: the VPA only observes"}
    await world.minutes(MINUTES)
    assert OBSERVING not in await world.conditions("web")
    await world.pod("newer", "web", owner="web-rs")
    assert (await world.requests())["newer"] != SMALL
    requests = await world.requests()
    assert all(requests[f"web-{number}"] == SMALL for number in range(3)) == (mode == "Initial")


async def test_vpa_without_a_window_acts_at_once(world: World) -> None:
    await vpa(world, None)
    await world.minutes(4)
    assert OBSERVING not in await world.conditions("web")
    assert set((await world.requests()).values()) != {SMALL}


@pytest.mark.parametrize("window", ["", "soon", "-1h", "2161h", "9" * 30 + "h", "1e3s"])
async def test_vpa_window_that_cannot_be_read_is_refused_and_is_none(world: World, window: str) -> None:
    made = convert({"metadata": {"name": "web", "annotations": {OBSERVATION_WINDOW: window}}}, VerticalPodAutoscaler)
    said = [str(error) for error in validate(made, made, Gates())]
    assert any("must be a duration of at most 2160h, such as 24h" in text for text in said), said
    assert observes_until(made) is None


async def test_vpa_that_is_not_stored_yet_observes(world: World) -> None:
    made = convert({"metadata": {"name": "web", "annotations": {OBSERVATION_WINDOW: "1h"}}}, VerticalPodAutoscaler)
    assert observes(made, world.clock.now())
    assert not validate(made, made, Gates())
