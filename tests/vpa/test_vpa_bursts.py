"""Bursts as the updater has them: ceilings beforehand, the spec after the node, and nothing that the API refuses."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podfit.api.apps.v1.deployments import ReplicaSet
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.burst import CEILING
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.client.rest import MERGE_PATCH, Client
from podfit.client.vpa_kinds import VPAS
from podfit.decide.autoscaling.burst import Sample
from podfit.decide.autoscaling.ceilings import ANNOTATION
from podfit.decide.autoscaling.conditions import BURST_REFUSED
from podfit.decide.pod.resize_state import BURST
from podfit.vpa.updater.burst_poller import samples
from podfit.vpa.updater.settings import UpdaterSettings
from podfit.vpa.updater.updater import Updater
from support.bursts import ceiling
from support.vpa_world import NAMESPACE, World, recommending

POLICY = {"containerPolicies": [{"containerName": "app", "maxAllowed": {"cpu": "2", "memory": "1Gi"}}]}
GRANTED = ceiling(app={"cpu": ("200m", "2"), "memory": ("600Mi", "1Gi")})


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with recommending(tmp_path) as made:
        yield made


async def web(world: World, *, policy: dict[str, Any] | None = POLICY) -> None:
    """A Deployment of a pod with twice the requests for limits, whose VPA asks for bursts."""
    await world.deployment("web")
    await world.replicaset("web-rs", "web", 1)
    resources = {"requests": {"cpu": "100m", "memory": "300Mi"}, "limits": {"cpu": "200m", "memory": "600Mi"}}
    owner = await world.reference(ReplicaSet, "web-rs")
    metadata = {"name": "web-0", "namespace": NAMESPACE, "labels": {"app": "web"}, "ownerReferences": [owner]}
    containers = [{"name": "app", "image": "i", "resources": resources}]
    spec = {"nodeName": "n", "tolerations": [{"operator": "Exists"}], "containers": containers}
    await world.client.create(convert({"metadata": metadata, "spec": spec}, Pod))
    await world.report("web-0", phase="Running", containerStatuses=[reported("200m", "600Mi")])
    await world.vpa("web", **({"resourcePolicy": policy} if policy else {}))
    await world.annotate_vpa("web", {ANNOTATION: "enabled"})


def reported(cpu: str, memory: str) -> dict[str, Any]:
    requests = {"cpu": "100m", "memory": "300Mi"}
    return {
        "name": "app",
        "image": "i",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        "allocatedResources": requests,
        "resources": {"requests": requests, "limits": {"cpu": cpu, "memory": memory}},
    }


async def moved(world: World, cpu: str, memory: str) -> None:
    """The node says that it has moved limits."""
    generation = (await pod(world)).metadata.generation
    said = {"type": BURST, "status": "True", "reason": "LimitsMoved", "observedGeneration": generation}
    status = {"conditions": [said], "containerStatuses": [reported(cpu, memory)], "observedGeneration": generation}
    await world.report("web-0", **status)
    await world.clock.advance(2)


async def updating(world: World) -> None:
    await world.run(Updater(world.client, clock=world.clock, settings=UpdaterSettings(admission=None)).run())
    await world.clock.advance(2)


async def pod(world: World) -> Pod:
    return await world.client.get(Pod, "web-0", NAMESPACE)


async def limits(world: World) -> tuple[str, str]:
    found = (await pod(world)).spec.containers[0].resources.limits
    return str(found["cpu"]), str(found["memory"])


async def granted(world: World) -> str | None:
    return (await pod(world)).metadata.annotations.get(CEILING)


async def test_a_ceiling_is_there_before_it_is_needed(world: World) -> None:
    await web(world)
    assert await granted(world) is None
    await updating(world)
    assert await granted(world) == GRANTED
    assert await limits(world) == ("200m", "600Mi")


async def test_without_a_maximum_it_is_twice_the_limit(world: World) -> None:
    await web(world, policy=None)
    await updating(world)
    assert await granted(world) == ceiling(app={"cpu": ("200m", "400m"), "memory": ("600Mi", "1200Mi")})


async def test_a_vpa_that_does_not_ask_or_only_recommends_has_none(world: World) -> None:
    await web(world)
    off = {"spec": {"updatePolicy": {"updateMode": "Off"}}}
    await world.client.patch(VPAS, "web", NAMESPACE, off, content_type=MERGE_PATCH)
    await updating(world)
    assert await granted(world) is None


async def test_the_spec_follows_what_the_node_has_moved_up_and_down(world: World) -> None:
    await web(world)
    await updating(world)
    before = (await pod(world)).spec.containers[0].resources.requests
    for size in (("600m", "600Mi"), ("2", "1Gi"), ("1600m", "820Mi")):
        await moved(world, *size)
        assert await limits(world) == size
        assert await granted(world) == GRANTED, "what it was sized to stays the floor"
    assert (await pod(world)).spec.containers[0].resources.requests == before


async def test_what_a_node_says_beyond_the_ceiling_is_not_followed(world: World) -> None:
    await web(world)
    await updating(world)
    await moved(world, "3", "600Mi")
    assert await limits(world) == ("200m", "600Mi")


async def test_without_the_vpas_wish_the_ceiling_goes_and_limits_come_back(world: World) -> None:
    await web(world)
    await updating(world)
    await moved(world, "2", "1Gi")
    await world.annotate_vpa("web", {ANNOTATION: "disabled"})
    await world.clock.advance(2)
    assert await granted(world) is None
    assert await limits(world) == ("200m", "600Mi")


async def test_a_refusal_is_said_and_tried_again(world: World) -> None:
    await web(world)
    item = {"type": "Container", "max": {"cpu": "1", "memory": "2Gi"}}
    metadata = {"name": "l", "namespace": NAMESPACE}
    await world.client.create(convert({"metadata": metadata, "spec": {"limits": [item]}}, LimitRange))
    await updating(world)
    assert await granted(world) is None
    await world.minutes(1)
    status, message = (await world.conditions("web"))[BURST_REFUSED]
    assert status == "True"
    assert 'web-0: pods "web-0" is forbidden: maximum cpu usage per Container is 1, but limit is 2' in message
    await world.client.delete(LimitRange, "l", NAMESPACE)
    await world.minutes(2)
    assert await granted(world) == GRANTED
    assert BURST_REFUSED not in await world.conditions("web")


async def test_a_recommendation_keeps_the_proportion_from_before_the_burst(world: World) -> None:
    """300m and 400Mi are recommended while the pod bursts at 2 cores: its limits become twice that again."""
    await web(world)
    await updating(world)
    await moved(world, "2", "1Gi")
    await world.recommend("web", "300m", "400Mi")
    await world.clock.advance(3)
    assert await limits(world) == ("600m", "800Mi")
    await world.report("web-0", conditions=[{"type": BURST, "status": "False"}])
    await world.clock.advance(2)
    assert await granted(world) == ceiling(app={"cpu": ("600m", "2"), "memory": ("800Mi", "1Gi")})


class Polled:
    """A node of another kubelet, whose summary a test says; what it is asked stands for an answer through the API."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world, self.cpu, self.memory, self.body = world, 0.0, 100, b""
        send = type(world.client).request

        async def request(client: Client, method: str, path: str, *rest: Any, **more: Any) -> bytes:
            if path == "/api/v1/nodes/n/proxy/stats/summary":
                return self.body
            return await send(client, method, path, *rest, **more)

        monkeypatch.setattr(type(world.client), "request", request)

    async def seconds(self, number: int, *, uses: float, memory: int) -> None:
        """So many cores and MiB for so long."""
        for _ in range(number):
            self.cpu += uses
            uid = (await pod(self.world)).metadata.uid
            usage = {"cpu": {"usageCoreNanoSeconds": int(self.cpu * 1e9)}, "memory": {"workingSetBytes": memory << 20}}
            summary = {"pods": [{"podRef": {"uid": uid}, "containers": [{"name": "app", **usage}]}]}
            self.body = msgspec.json.encode(summary)
            await self.world.clock.advance(1)


async def test_a_node_of_others_is_polled_and_resized(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its API server drops annotations from a resize, and judges each raise as it comes."""
    node = Polled(world, monkeypatch)
    await web(world)
    settings = UpdaterSettings(admission=None, poll_bursts=1.0)
    await world.run(Updater(world.client, clock=world.clock, settings=settings).run())
    await node.seconds(5, uses=0.05, memory=400)
    assert await limits(world) == ("200m", "600Mi")
    await node.seconds(4, uses=0.2, memory=400)
    raised = await limits(world)
    assert raised == ("600m", "600Mi")
    node.body = b"not a summary"
    await world.clock.advance(10)
    assert await limits(world) == raised


@pytest.mark.parametrize("body", [b"", b"{", b'{"pods": 1}', b" " * (17 << 20)])
def test_what_is_no_summary_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        samples(body)


def test_a_summary_leaves_out_what_is_not_known() -> None:
    containers = [{"name": "a"}, {"name": "b", "cpu": {}}]
    pods = [{"podRef": {"uid": "u"}, "containers": containers}, {"podRef": {"uid": "v"}}]
    body = msgspec.json.encode({"node": {}, "pods": pods})
    assert samples(body) == {("u", "a"): Sample(), ("u", "b"): Sample()}
