"""Making room beside a real API server and a kubelet whose containers are simulated (docs/room.md)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubelet.harness import IDENTITY, Node
from podfit.answers.export import export
from podfit.answers.facts.budgets import read_budgets
from podfit.answers.facts.settings import MakeRoomSetting, read_room
from podfit.answers.facts.snapshot import Reader, Snapshot
from podfit.answers.facts.target import POD, Target
from podfit.answers.plan.amounts import parse_amount
from podfit.answers.plan.plan import plan
from podfit.answers.plan.resize_request import ResizeRequest
from podfit.answers.plan.result import DEFERRED, PodPlan
from podfit.answers.why.pods import PodWhy, why_pod
from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert, to_dict
from podfit.api.policy.v1.types import PodDisruptionBudget
from podfit.api.scheduling.v1.types import PriorityClass
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.controllers.make_room import ACCOUNT, BUDGET_SECONDS, COMPONENT, EVICTING_ACCOUNT, RoomController
from podfit.controllers.room_notice import keep_notice
from podfit.core.errors import ApiError
from podfit.decide.node.room.minimum import MINIMUM
from podfit.process.identities import controller as account
from support.background import beside
from support.server import Server, running_server


class World:
    """A node of 4 CPUs and 4Gi, a server, and the controller."""

    def __init__(self, node: Node, server: Server) -> None:
        self.node, self.server, self.client = node, server, server.client

    async def add(
        self,
        name: str,
        requests: dict[str, str],
        *,
        limits: dict[str, str] | None = None,
        minimum: str = "",
        klass: str = "",
        **more: Any,
    ) -> None:
        """A pod that runs."""
        container = {"name": "c", "image": "app:1", "resources": {"requests": requests, "limits": limits or {}}, **more}
        document = {
            "metadata": {"name": name, "namespace": "default", "annotations": {MINIMUM: minimum} if minimum else {}},
            "spec": {
                "nodeName": "n1",
                "priorityClassName": klass,
                "containers": [container],
                "terminationGracePeriodSeconds": 1,
            },
        }
        await self.client.create(convert(document, Pod))
        await self.until(name, lambda pod: pod.status.phase == "Running")

    async def resize(self, name: str, **requests: str) -> None:
        patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}}
        await self.client.patch(Pod, name, "default", patch, subresource="resize")

    async def pod(self, name: str) -> Pod:
        return await self.client.get(Pod, name, "default")

    async def until(self, name: str, holds: Callable[[Pod], Any]) -> Pod:
        await self.node.rest()
        pod = await self.pod(name)
        assert holds(pod), f"{name} never got there: {to_dict(pod)}, {await self.events()}"
        return pod

    async def has(self, name: str, **requests: str) -> Pod:
        """Once the pod asks for, was promised and holds just this."""

        def holds(pod: Pod) -> bool:
            container, status = pod.spec.containers[0], pod.status.container_statuses[0]
            seen = (
                container.resources.requests,
                status.allocated_resources,
                status.resources.requests if status.resources else {},
            )
            return not waiting(pod) and all(
                {name: str(amount) for name, amount in amounts.items()} == requests for amounts in seen
            )

        return await self.until(name, holds)

    async def events(self) -> dict[tuple[str, str], list[str]]:
        """What the controller said, by pod and reason."""
        said: dict[tuple[str, str], list[str]] = {}
        for event in (await self.client.list(Event, "default")).items:
            if event.source.component == COMPONENT:
                said.setdefault((event.involved_object.name, event.reason), []).append(
                    f"{event.message} x{event.count}"
                )
        return said

    async def heard(self, name: str, reason: str) -> str:
        await self.node.rest()
        (said,) = (await self.events())[name, reason]
        return said.removesuffix(" x1")

    async def snapshot(self, name: str, mode: str = "shrink") -> Snapshot:
        found = await Reader(self.client, "default", self.node.clock).read(Target(POD, name), usage=True)
        budgets = await read_budgets(self.client, ("default",))
        return replace(found, room=MakeRoomSetting(mode), budgets=budgets)

    async def plan(self, name: str, cpu: str, *, mode: str = "shrink") -> PodPlan:
        return plan(await self.snapshot(name, mode), ResizeRequest({"cpu": parse_amount("--cpu", cpu)})).pods[0]

    async def why(self, name: str, *, mode: str = "shrink") -> PodWhy:
        found = await self.snapshot(name, mode)
        return why_pod(found.pods[0], found, self.node.clock.now())

    async def rest(self) -> None:
        await self.node.rest()


def waiting(pod: Pod) -> list[str]:
    return [condition.type for condition in pod.status.conditions if condition.type.startswith("PodResize")]


@asynccontextmanager
async def world_of(root: Path, *, evict: bool = False) -> AsyncIterator[World]:
    node = Node(root / "node")
    async with running_server(root, clock=node.clock, certificate=True) as server:
        for name, value in (("vip", 1000), ("low", -5)):
            await server.client.create(convert({"metadata": {"name": name}, "value": value}, PriorityClass))
        node.use(Client(Local(server.api.handler, IDENTITY)))
        client = server.as_identity(account(EVICTING_ACCOUNT if evict else ACCOUNT))
        recorder = EventRecorder(client, component=COMPONENT, clock=node.clock)
        informers = Informers(client, node.clock)
        controller = RoomController(
            client, informers=informers, recorder=recorder, clock=node.clock, gates=server.context.gates, evict=evict
        )
        try:
            await node.start()
            async with beside(controller.run(), informers.run(), recorder.run()):
                yield World(node, server)
        finally:
            await node.kubelet.stop(stop_pods=False)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_of(tmp_path) as made:
        yield made


@pytest.fixture
async def harsh(tmp_path: Path) -> AsyncIterator[World]:
    """Where pods may be evicted."""
    async with world_of(tmp_path, evict=True) as made:
        yield made


async def test_a_neighbour_shrinks_and_the_resize_goes_through(world: World) -> None:
    await world.add("web", {"cpu": "1"}, klass="vip")
    await world.add("batch", {"cpu": "2500m"}, minimum="cpu=500m")
    await world.resize("web", cpu="2")
    web, batch = await world.has("web", cpu="2"), await world.has("batch", cpu="2")
    assert [pod.status.container_statuses[0].restart_count for pod in (web, batch)] == [0, 0]
    assert await world.heard("web", "MakingRoom") == "Resize lacks cpu 500m: default/batch gives cpu 500m"
    text = "Shrunk to make room for the resize of default/web (priority 1000): c cpu 2500m to 2"
    assert await world.heard("batch", "GaveRoom") == text


async def test_a_guaranteed_neighbour_stays_guaranteed(world: World) -> None:
    both = {"cpu": "3", "memory": "1Gi"}
    await world.add("web", {"cpu": "500m"}, klass="vip")
    await world.add("batch", both, limits=both, minimum="cpu=1")
    await world.resize("web", cpu="2")
    batch = await world.has("batch", cpu="2", memory="1Gi")
    assert batch.status.qos_class == "Guaranteed"
    assert str(batch.spec.containers[0].resources.limits["cpu"]) == "2"
    await world.has("web", cpu="2")


async def test_several_give_lowest_priority_first(world: World) -> None:
    await world.add("web", {"cpu": "500m"}, klass="vip")
    await world.add("batch", {"cpu": "1500m"}, minimum="cpu=500m")
    await world.add("nightly", {"cpu": "1500m"}, minimum="cpu=1", klass="low")
    await world.resize("web", cpu="1600m")
    await world.has("web", cpu="1600m")
    await world.has("nightly", cpu="1")
    await world.has("batch", cpu="1400m")


@pytest.mark.parametrize("minimum", ["", "cpu=2", "cpu=0", "memory=1Mi"])
async def test_nobody_shrinks_for_nothing(world: World, minimum: str) -> None:
    await world.add("web", {"cpu": "1"}, klass="vip")
    await world.add("batch", {"cpu": "2500m"}, minimum=minimum)
    await world.resize("web", cpu="3")
    assert (await world.heard("web", "NoRoomToMake")).startswith("Resize lacks cpu 1500m; neighbours of lower")
    if minimum == "cpu=0":
        text = f"Annotation {MINIMUM} is ignored: cpu=0: a minimum is more than nothing"
        assert await world.heard("batch", "InvalidMinimum") == text
    assert waiting(await world.pod("web")) == ["PodResizePending"]
    assert (await world.pod("batch")).metadata.generation == 1


async def test_who_gave_does_not_grow_back_when_the_grower_goes(world: World) -> None:
    await world.add("web", {"cpu": "1"}, klass="vip")
    await world.add("batch", {"cpu": "2500m"}, minimum="cpu=500m")
    await world.resize("web", cpu="2")
    await world.has("web", cpu="2")
    await world.client.delete(Pod, "web", "default", grace=0)
    await world.rest()
    await world.has("batch", cpu="2")


async def test_a_refused_shrink_is_told_and_another_neighbour_gives(world: World) -> None:
    """Nobody has given before all have agreed."""
    await world.add("web", {"cpu": "500m"}, klass="vip")
    await world.add("batch", {"cpu": "1900m"}, minimum="cpu=100m")
    await world.add("nightly", {"cpu": "1100m"}, minimum="cpu=100m", klass="low")
    limit = {"type": "Container", "min": {"cpu": "700m"}}
    document = {"metadata": {"name": "floor", "namespace": "default"}, "spec": {"limits": [limit]}}
    await world.client.create(convert(document, LimitRange))
    await world.resize("web", cpu="1500m")
    assert "minimum cpu usage per Container is 700m" in await world.heard("web", "ShrinkRefused")
    await world.has("web", cpu="1500m")
    await world.has("nightly", cpu="1100m")
    await world.has("batch", cpu="1400m")


async def test_eviction_only_where_it_was_asked_for(world: World) -> None:
    await world.add("web", {"cpu": "1"}, klass="vip")
    await world.add("batch", {"cpu": "2500m"}, klass="low")
    await world.resize("web", cpu="3")
    await world.heard("web", "NoRoomToMake")
    assert (await world.pod("batch")).metadata.deletion_timestamp is None
    with pytest.raises(ApiError, match='User "system:serviceaccount:kube-system:room-controller" cannot delete'):
        await world.server.as_identity(account(ACCOUNT)).delete(Pod, "batch", "default")


async def test_eviction_where_shrinking_is_not_enough(harsh: World) -> None:
    await harsh.add("web", {"cpu": "1"}, klass="vip")
    await harsh.add("batch", {"cpu": "1500m"}, minimum="cpu=1")
    await harsh.add("nightly", {"cpu": "1"}, klass="low")
    version = (await harsh.client.list(Pod, "default")).resource_version
    await harsh.resize("web", cpu="2900m")
    await harsh.rest()
    await harsh.node.advance(2)
    seen = harsh.client.watch(Pod, "default", resource_version=version, fields="metadata.name=nightly")
    last = await anext(event.object async for event in seen if event.type == "DELETED")
    condition = next(condition for condition in last.status.conditions if condition.type == "DisruptionTarget")
    text = "Evicted to make room for the resize of default/web (priority 1000)"
    assert (condition.status, condition.reason) == ("True", "EvictionByEvictionAPI")
    await harsh.has("web", cpu="2900m")
    await harsh.has("batch", cpu="1100m")
    assert await harsh.heard("web", "MakingRoom") == (
        "Resize lacks cpu 1400m: default/batch gives cpu 400m, default/nightly is evicted"
    )
    assert (await harsh.heard("nightly", "EvictedToMakeRoom")).startswith(f"{text}: shrinking neighbours does not")
    with pytest.raises(ApiError, match="not found"):
        await harsh.pod("nightly")


async def test_a_disruption_budget_is_asked_and_nobody_gives_in_vain(harsh: World) -> None:
    await harsh.add("web", {"cpu": "1"}, klass="vip")
    await harsh.add("batch", {"cpu": "1500m"}, minimum="cpu=1")
    await harsh.add("nightly", {"cpu": "1"}, klass="low")
    budget = {
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "nightly"}}},
    }
    made = await harsh.client.create(convert(budget, PodDisruptionBudget))
    await harsh.client.patch(Pod, "nightly", "default", {"metadata": {"labels": {"app": "nightly"}}})

    async def allows(disruptions: int) -> None:
        status = {"disruptionsAllowed": disruptions, "observedGeneration": made.metadata.generation, "expectedPods": 1}
        await harsh.client.patch(PodDisruptionBudget, "all", "default", {"status": status}, subresource="status")

    await allows(0)
    await harsh.resize("web", cpu="2900m")
    said = await harsh.heard("web", "EvictionRefused")
    assert said.startswith("default/nightly cannot be evicted: Cannot evict pod as it would violate")
    await harsh.has("batch", cpu="1500m")
    found = await harsh.why("web", mode="preempt")
    assert found.room == (
        "default/batch shrinks cpu 1500m → 1100m",
        "default/nightly cannot be evicted: The disruption budget all needs 0 healthy pods and has 0 currently",
    )
    await allows(1)
    await harsh.node.advance(BUDGET_SECONDS + 1)
    await harsh.rest()
    await harsh.node.advance(2)
    await harsh.has("web", cpu="2900m")
    await harsh.has("batch", cpu="1100m")


# ------------------------------------------------------------------ what is foretold, and what is told of it later


async def test_a_plan_names_who_shrinks_as_it_then_happens(world: World) -> None:
    await world.add("web", {"cpu": "1500m"}, klass="vip")
    await world.add("batch", {"cpu": "2"}, minimum="cpu=500m")
    promised = await world.plan("web", "3")
    assert (promised.verdict, promised.text) == ("fits", "fits after default/batch shrinks cpu 2 → 1")
    assert (await world.plan("web", "3", mode="")).verdict == "deferred"
    assert (await world.plan("web", "3600m")).verdict == "deferred"
    await world.resize("web", cpu="3")
    await world.has("web", cpu="3")
    await world.has("batch", cpu="1")
    assert (await world.why("batch")).gave == "shrunk to make room for default/web: cpu 2 → 1"
    sizes = export(Target(POD, "batch"), await world.snapshot("batch"))
    assert sizes.sizes[0].requests == {"cpu": "2"}
    assert sizes.notes[0] == (
        "batch was shrunk to make room for default/web (cpu 2 → 1); the size that it had before is exported"
    )
    await world.resize("batch", cpu="700m")
    await world.has("batch", cpu="700m")
    assert (await world.why("batch")).gave == ""
    sizes = export(Target(POD, "batch"), await world.snapshot("batch"))
    assert (sizes.sizes[0].requests, sizes.notes) == ({"cpu": "700m"}, ())


async def test_why_nobody_gives_is_told(world: World) -> None:
    await world.add("web", {"cpu": "1500m"}, klass="vip")
    await world.add("batch", {"cpu": "1500m"}, minimum="cpu=1")
    await world.add("odd", {"cpu": "500m"}, minimum="cpu:lots")
    promised = await world.plan("web", "3")
    await world.resize("web", cpu="3")
    said = await world.heard("web", "NoRoomToMake")
    found = await world.why("web")
    assert f"no room can be made: {said}" in found.room
    assert (promised.verdict, promised.room) == (DEFERRED, found.room), "the plan says it before"
    assert (await world.plan("web", "3", mode="")).room == ()
    assert any(
        room.startswith("default/odd is not shrunk: its annotation podfit.dev/minimum is ignored: 'cpu:lots'")
        for room in found.room
    )
    assert (await world.why("web", mode="")).room == ()


async def test_two_gifts_remember_the_first_size(world: World) -> None:
    await world.add("web", {"cpu": "1500m"}, klass="vip")
    await world.add("batch", {"cpu": "2500m"}, minimum="cpu=500m")
    await world.resize("web", cpu="2")
    await world.has("batch", cpu="2")
    await world.resize("web", cpu="3")
    await world.has("batch", cpu="1")
    assert (await world.why("batch")).gave == "shrunk to make room for default/web: cpu 2500m → 1"


async def test_that_room_is_made_is_told_as_long_as_it_is(world: World) -> None:
    user = world.server.as_user("jo", "system:authenticated")
    clock = world.node.clock
    assert await read_room(user, clock.now()) == MakeRoomSetting()
    notice = asyncio.create_task(keep_notice(world.server.as_identity(account(ACCOUNT)), clock, "preempt"))
    await world.rest()
    assert await read_room(user, clock.now()) == MakeRoomSetting("preempt")
    for _ in range(6):
        await world.node.advance(10)
        assert await read_room(user, clock.now()) == MakeRoomSetting("preempt")
    notice.cancel()
    await asyncio.gather(notice, return_exceptions=True)
    await world.node.advance(41)
    assert await read_room(user, clock.now()) == MakeRoomSetting()


async def test_two_that_wait_are_served_in_the_order_of_the_node(world: World) -> None:
    await world.add("web", {"cpu": "500m"}, klass="vip")
    await world.add("app", {"cpu": "500m"})
    await world.add("batch", {"cpu": "3"}, minimum="cpu=1200m", klass="low")
    await world.resize("app", cpu="1")
    await world.resize("web", cpu="1500m")
    await world.has("web", cpu="1500m")
    await world.has("app", cpu="1")
    await world.has("batch", cpu="1500m")
