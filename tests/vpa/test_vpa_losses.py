"""What is away makes no pod smaller: metrics, the API server, certificates, and each process's own restart.

Lost metrics, targets and restarts of the recommender are in test_vpa_recommender, certificates in
test_vpa_admission_controller, a lost history in test_vpa_history.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podfit.api.coordination.v1.types import Lease
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.times import format_micro
from podfit.decide.autoscaling.published import AdmissionLease
from podfit.net.wire import Request, Response
from podfit.vpa.admission.controller import AdmissionController, AdmissionSettings
from podfit.vpa.admission.registration import Registration, register
from podfit.vpa.recommender.recommender import Recommender
from podfit.vpa.recommender.settings import RecommenderSettings
from podfit.vpa.updater.settings import UpdaterSettings
from podfit.vpa.updater.updater import Updater
from support.server import ADMIN
from support.vpa_world import NAMESPACE, World, recommending

SMALL, LARGE = ("100m", "300Mi"), ("500m", "600Mi")


class Line(Local):
    """To the API server, until it is cut: then nothing answers."""

    cut = False

    async def send(self, request: Request) -> Response:
        if self.cut:
            raise ConnectionRefusedError("connection refused")
        return await super().send(request)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with recommending(tmp_path) as made:
        yield made


@pytest.fixture
def line(world: World) -> Line:
    return Line(world.server.api.handler, ADMIN)


async def web(world: World, replicas: int = 2) -> None:
    """Small pods whose VPA recommends more."""
    await world.deployment("web")
    await world.replicaset("web-rs", "web", replicas)
    for number in range(replicas):
        await world.pod(f"web-{number}", "web", owner="web-rs")
    await world.vpa("web")
    await world.recommend("web", *LARGE)


async def updating(world: World, line: Line, **settings: Any) -> None:
    given = UpdaterSettings(**{"admission": None, **settings})
    await world.run(Updater(Client(line), clock=world.clock, settings=given).run())


@pytest.mark.row("V-047")
async def test_a_recommender_without_its_api_server_goes_on_where_it_was(world: World, line: Line) -> None:
    await world.deployment("web")
    await world.pod("web-1", "web")
    await world.vpa("web")
    world.usage.used = {"web-1": {"app": ("500m", "400Mi")}}
    await world.run(Recommender(Client(line), clock=world.clock, settings=RecommenderSettings()).run())
    await world.minutes(10)
    before = (await world.seen("web")).status
    counted = (await world.checkpoints())["web-app"].status.total_samples_count
    line.cut = True
    await world.minutes(30)
    assert (await world.seen("web")).status == before
    line.cut = False
    await world.minutes(5)
    after = (await world.sizes("web"))["app"]
    assert before.recommendation is not None
    assert after.target == before.recommendation.container_recommendations[0].target
    assert (await world.checkpoints())["web-app"].status.total_samples_count == counted + 5


async def test_a_recommender_that_starts_without_its_api_server_waits(world: World, line: Line) -> None:
    await web(world)
    line.cut = True
    await world.run(Recommender(Client(line), clock=world.clock, settings=RecommenderSettings()).run())
    await world.minutes(10)
    line.cut = False
    await world.minutes(5)
    found = (await world.sizes("web"))["app"].target
    assert (str(found["cpu"]), str(found["memory"])) == LARGE


async def test_an_updater_without_its_api_server_changes_nothing_and_goes_on(world: World, line: Line) -> None:
    await web(world)
    await updating(world, line)
    line.cut = True
    await world.minutes(10)
    assert set((await world.requests()).values()) == {SMALL}
    line.cut = False
    await world.minutes(2)
    assert set((await world.requests()).values()) == {LARGE}


@pytest.mark.row("V-080")
async def test_an_updater_that_cannot_read_the_lease_changes_nothing(world: World, line: Line) -> None:
    await web(world)
    await updating(world, line, admission=AdmissionLease())
    document = {"metadata": {"name": "vpa-admission-controller", "namespace": "kube-system"}, "spec": {}}
    lease = await world.client.create(convert(document, Lease))
    line.cut = True
    await world.minutes(3)
    assert set((await world.requests()).values()) == {SMALL}
    line.cut = False
    renewed = {"spec": {"renewTime": format_micro(world.clock.now())}}
    await world.client.patch(Lease, lease.metadata.name, "kube-system", renewed)
    await world.minutes(1)
    assert LARGE in (await world.requests()).values()


async def test_an_updater_that_starts_again_gives_a_resize_its_time_anew(world: World, line: Line) -> None:
    """It remembers nothing: so nobody is evicted sooner, only later."""
    await web(world)
    pending = {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "full"}
    await world.report("web-0", conditions=[pending])
    for _ in range(3):
        await updating(world, line)
        await world.minutes(4)
        await world.stop()
    assert not (await world.client.get(Pod, "web-0", NAMESPACE)).metadata.deletion_timestamp


@pytest.mark.parametrize("missing", ["memory", "cpu"])
async def test_an_updater_leaves_what_is_not_recommended_as_it_is(world: World, line: Line, missing: str) -> None:
    await web(world)
    amounts = {name: amount for name, amount in (("cpu", "50m"), ("memory", "200Mi")) if name != missing}
    found = {"containerName": "app", "target": amounts, "lowerBound": amounts, "upperBound": amounts}
    status = {"recommendation": {"containerRecommendations": [found]}}
    await world.say_status("web", status)
    await updating(world, line)
    await world.minutes(2)
    cpu, memory = (SMALL[0], "200Mi") if missing == "cpu" else ("50m", SMALL[1])
    assert set((await world.requests()).values()) == {(cpu, memory)}


async def test_an_updater_leaves_pods_alone_when_a_recommendation_is_gone(world: World, line: Line) -> None:
    await web(world)
    await updating(world, line)
    await world.minutes(3)
    await world.say_status("web", {"recommendation": None})
    await world.minutes(3)
    assert set((await world.requests()).values()) == {LARGE}


async def test_new_pods_get_what_was_recommended_while_the_api_server_does_not_answer(world: World, line: Line) -> None:
    await web(world, 1)
    controller = AdmissionController(Client(line), clock=world.clock, settings=AdmissionSettings())
    world.usage.beside["vpa-webhook"] = controller.handle
    await world.run(controller.run())
    await register(world.client, Registration(), b"")
    await world.clock.settle()
    line.cut = True
    await world.minutes(5)
    await world.pod("web-9", "web", owner="web-rs")
    assert (await world.requests())["web-9"] == LARGE


async def test_new_pods_pass_as_they_are_while_nothing_is_known_yet(world: World, line: Line) -> None:
    await web(world, 1)
    line.cut = True
    controller = AdmissionController(Client(line), clock=world.clock, settings=AdmissionSettings())
    world.usage.beside["vpa-webhook"] = controller.handle
    await world.run(controller.run())
    await register(world.client, Registration(), b"")
    await world.clock.settle()
    await world.pod("web-9", "web", owner="web-rs")
    assert (await world.requests())["web-9"] == SMALL
