"""Which pods a VPA is for, asked of a real API server."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from podfit.api.apiextensions.v1.types import CustomResourceDefinition
from podfit.api.autoscaling_k8s.v1 import CrossVersionObjectReference
from podfit.api.meta.codec import convert
from podfit.api.meta.owners import named_by
from podfit.api.meta.v1.types import OwnerReference
from podfit.client.resource import dynamic
from podfit.client.rest import MERGE_PATCH
from podfit.client.targets import Targets, Unsupported
from podfit.client.workloads import WELL_KNOWN
from podfit.core.errors import ApiError
from podfit.core.selectors import Selector
from support.background import beside
from support.clock import FakeClock
from support.server import Server, running_server

LABELS = {"app": "web"}
TEMPLATE: dict[str, Any] = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
ONCE = {"metadata": {"labels": LABELS}, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
SPECS: dict[str, dict[str, Any]] = {
    "ReplicationController": {"selector": LABELS, "template": TEMPLATE},
    "Job": {"manualSelector": True, "selector": {"matchLabels": LABELS}, "template": ONCE},
    "CronJob": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ONCE}}},
    "StatefulSet": {"serviceName": "web", "selector": {"matchLabels": LABELS}, "template": TEMPLATE},
}
USUAL = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}
RACKS = dynamic("example.com", "v1", "racks")
RACK: dict[str, Any] = {
    "metadata": {"name": "racks.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Rack", "plural": "racks"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                "subresources": {
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    }
                },
            }
        ],
    },
}


class World:
    def __init__(self, server: Server, clock: FakeClock, targets: Targets) -> None:
        self.server, self.clock, self.targets = server, clock, targets

    async def make(self, kind: str, name: str = "web", owner: tuple[str, str, str] | None = None) -> None:
        known = next(target for target in WELL_KNOWN if target.kind == kind)
        group, _, version = known.api_version.rpartition("/")
        metadata: dict[str, Any] = {"name": name, "namespace": "default"}
        if owner:
            metadata["ownerReferences"] = [await self.reference(*owner)]
        document = {"apiVersion": known.api_version, "kind": kind, "metadata": metadata}
        spec = SPECS.get(kind, USUAL)
        await self.server.client.create_in(dynamic(group, version, known.resource), {**document, "spec": spec})
        await self.clock.settle()

    async def reference(self, api_version: str, kind: str, name: str) -> dict[str, Any]:
        """To what is there; to something with a UID that nothing has where it is not."""
        group, _, version = api_version.rpartition("/")
        try:
            found = await self.server.client.get(dynamic(group, version, f"{kind.lower()}s"), name, "default")
            uid = found["metadata"]["uid"]
        except ApiError:
            uid = "1"
        return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}

    async def own(self, kind: str, name: str, owner: tuple[str, str, str]) -> None:
        """Give an object an owner."""
        known = next(target for target in WELL_KNOWN if target.kind == kind)
        group, _, version = known.api_version.rpartition("/")
        patch = {"metadata": {"ownerReferences": [await self.reference(*owner)]}}
        resource = dynamic(group, version, known.resource)
        await self.server.client.patch(resource, name, "default", patch, content_type=MERGE_PATCH)
        await self.clock.settle()

    async def rack(self, **status: Any) -> None:
        document = {"apiVersion": "example.com/v1", "kind": "Rack", "metadata": {"name": "r", "namespace": "default"}}
        await self.server.client.create_in(RACKS, {**document, "spec": {"replicas": 1}, "status": status})

    async def selector(self, kind: str, name: str = "web", api_version: str = "apps/v1") -> Selector:
        target = CrossVersionObjectReference(kind=kind, name=name, api_version=api_version)
        return await self.targets.selector("default", target)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock = FakeClock()
    async with running_server(tmp_path, clock=clock) as server:
        targets = Targets(server.client, clock)
        async with beside(*(informer.run() for informer in targets.informers)):
            await targets.synced()
            yield World(server, clock, targets)


@pytest.mark.parametrize("known", WELL_KNOWN, ids=lambda known: known.kind)
async def test_a_well_known_kind_selects_its_pods(world: World, known: Any) -> None:
    await world.make(known.kind)
    found = await world.selector(known.kind, api_version=known.api_version)
    assert found.matches(LABELS)
    assert not found.matches({"app": "other"})


@pytest.mark.parametrize(
    ("kind", "api_version", "why"),
    [
        ("Deployment", "apps/v1", "Deployment default/web does not exist"),
        ("Shelf", "example.com/v1", "example.com/v1 Shelf default/web has no scale subresource"),
        ("ConfigMap", "v1", "v1 ConfigMap default/web has no scale subresource"),
    ],
)
async def test_a_target_that_gives_no_selector_says_why(world: World, kind: str, api_version: str, why: str) -> None:
    with pytest.raises(Unsupported, match="^Cannot read targetRef. Reason: " + why):
        await world.selector(kind, api_version=api_version)


@pytest.mark.row("V-054")
async def test_no_target(world: World) -> None:
    with pytest.raises(Unsupported, match=r"^Cannot read targetRef. Reason: targetRef not defined$"):
        await world.targets.selector("default", None)


@pytest.mark.row("V-054")
async def test_a_target_that_another_controller_owns_is_refused(world: World) -> None:
    await world.make("Deployment")
    await world.make("ReplicaSet", "web-1", owner=("apps/v1", "Deployment", "web"))
    with pytest.raises(Unsupported, match=r"^The target ReplicaSet/web-1 has a parent controller but it should point"):
        await world.selector("ReplicaSet", "web-1")


async def test_an_owner_that_cannot_be_scaled_is_nobody(world: World) -> None:
    await world.make("Deployment", owner=("example.com/v1", "Shelf", "s"))
    assert (await world.selector("Deployment")).matches(LABELS)


async def test_an_owner_is_the_one_of_that_kind_name_and_uid(world: World) -> None:
    await world.make("ReplicaSet", "web-1")
    true = convert(await world.reference("apps/v1", "ReplicaSet", "web-1"), OwnerReference)
    assert str(await world.targets.topmost_of("default", true)) == "ReplicaSet/web-1"
    identity = named_by(true, "default")
    assert world.targets.wanted(identity) == 1
    assert world.targets.wanted(identity._replace(uid="another")) == 0
    assert world.targets.wanted(identity._replace(group="example.org")) is None
    for false in ({"uid": "another"}, {"name": "web-2"}, {"api_version": "example.org/v1"}):
        assert await world.targets.topmost_of("default", replace(true, **false)) is None
    assert await world.targets.topmost_of("elsewhere", true) is None


@pytest.mark.row("V-054")
async def test_owners_in_a_circle_are_refused(world: World) -> None:
    await world.make("Deployment")
    await world.make("StatefulSet", owner=("apps/v1", "Deployment", "web"))
    await world.own("Deployment", "web", ("apps/v1", "StatefulSet", "web"))
    with pytest.raises(Unsupported, match="cycle detected"):
        await world.selector("Deployment")


async def test_another_kind_is_asked_for_its_scale(world: World) -> None:
    await world.server.client.create(convert(RACK, CustomResourceDefinition))
    await world.clock.settle()
    with pytest.raises(Unsupported, match=r"Reason: Rack default/r does not exist$"):
        await world.selector("Rack", "r", "example.com/v1")
    await world.rack(selector="app=web", replicas=1)
    assert (await world.selector("Rack", "r", "example.com/v1")).matches(LABELS)
    await world.make("Deployment", owner=("example.com/v1", "Rack", "r"))
    with pytest.raises(Unsupported, match="has a parent controller"):
        await world.selector("Deployment")


async def test_a_scale_without_a_selector_is_refused(world: World) -> None:
    await world.server.client.create(convert(RACK, CustomResourceDefinition))
    await world.clock.settle()
    await world.rack(replicas=1)
    with pytest.raises(Unsupported, match="default/r has an empty selector"):
        await world.selector("Rack", "r", "example.com/v1")
