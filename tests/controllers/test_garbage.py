"""The garbage collector beside a real API server; owners and dependents are config maps and pods."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from podfit.api.apiregistration.v1.types import APIService
from podfit.api.core.v1.config.types import ConfigMap
from podfit.api.core.v1.events.types import Event
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.meta.v1.types import ObjectMeta, OwnerReference
from podfit.controllers.served_kinds import served
from podfit.core.errors import ApiError
from support.clock import FakeClock
from support.garbage import collecting
from support.server import Server, running_server

STEP, LONGEST = 0.1, 20.0
"""Seconds of the clock."""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    clock = FakeClock()
    async with running_server(tmp_path, clock=clock) as made, collecting(made, clock):
        yield made


def reference(owner: ConfigMap | Node, *, block: bool = True, **changed: str) -> OwnerReference:
    kind = type(owner).__name__
    made = OwnerReference(
        api_version="v1", kind=kind, name=owner.metadata.name, uid=owner.metadata.uid, block_owner_deletion=block
    )
    return replace(made, **changed)


async def create(
    server: Server, name: str, *owners: OwnerReference, namespace: str = "default", finalizers: tuple[str, ...] = ()
) -> ConfigMap:
    meta = ObjectMeta(name=name, namespace=namespace, owner_references=owners, finalizers=finalizers)
    return await server.client.create(ConfigMap(metadata=meta))


async def names(server: Server, namespace: str = "default") -> set[str]:
    found = (await server.client.list(ConfigMap, namespace)).items
    return {config_map.metadata.name for config_map in found} - {"kube-root-ca.crt"}


async def until(server: Server, wanted: set[str], namespace: str = "default") -> None:
    """Within some seconds: what was refused is tried again."""
    clock = server.context.clock
    assert isinstance(clock, FakeClock)
    await clock.settle()
    end = clock.monotonic() + LONGEST
    while await names(server, namespace) != wanted and clock.monotonic() < end:
        await clock.advance(STEP)
    assert await names(server, namespace) == wanted


async def settled(server: Server) -> None:
    """Time for what must not happen."""
    clock = server.context.clock
    assert isinstance(clock, FakeClock)
    await clock.advance(3)


async def delete(server: Server, name: str, policy: str = "") -> None:
    await server.client.delete(ConfigMap, name, "default", propagation=policy)


async def test_in_the_background_dependents_follow(server: Server) -> None:
    a = await create(server, "a")
    b = await create(server, "b", reference(a))
    await create(server, "c", reference(b))
    await delete(server, "a")
    await until(server, set())


async def test_in_the_foreground_dependents_go_first(server: Server) -> None:
    a = await create(server, "a")
    b = await create(server, "b", reference(a), finalizers=("example.org/held",))
    await create(server, "c", reference(b))
    await create(server, "lax", reference(a, block=False))
    await delete(server, "a", "Foreground")
    await until(server, {"a", "b"})
    waiting = await server.client.get(ConfigMap, "a", "default")
    assert waiting.metadata.finalizers == ("foregroundDeletion",)
    assert waiting.metadata.deletion_timestamp
    await settled(server)
    assert await names(server) == {"a", "b"}
    await server.client.patch(
        ConfigMap, "b", "default", {"metadata": {"finalizers": None}}, content_type="application/merge-patch+json"
    )
    await until(server, set())


async def test_who_does_not_block_is_not_waited_for(server: Server) -> None:
    a = await create(server, "a")
    await create(server, "lax", reference(a, block=False), finalizers=("example.org/held",))
    await delete(server, "a", "Foreground")
    await until(server, {"lax"})


async def test_orphans_stay_and_forget_their_owner(server: Server) -> None:
    a, other = await create(server, "a"), await create(server, "other")
    await create(server, "b", reference(a), reference(other))
    await create(server, "c", reference(a))
    await delete(server, "a", "Orphan")
    await until(server, {"other", "b", "c"})
    await settled(server)
    assert await names(server) == {"other", "b", "c"}
    owners = [(await server.client.get(ConfigMap, name, "default")).metadata.owner_references for name in "bc"]
    assert [[reference.name for reference in references] for references in owners] == [["other"], []]


async def test_with_another_owner_left_an_object_stays(server: Server) -> None:
    a, other = await create(server, "a"), await create(server, "other")
    await create(server, "b", reference(a), reference(other))
    await delete(server, "a", "Foreground")
    await until(server, {"other", "b"})
    kept = await server.client.get(ConfigMap, "b", "default")
    assert [reference.name for reference in kept.metadata.owner_references] == ["other"]


async def test_owners_that_never_were_and_namesakes(server: Server) -> None:
    a = await create(server, "a")
    await create(server, "b", reference(a, uid="11111111-2222-3333-4444-555555555555"))
    await create(server, "c", reference(a, name="nobody", uid="21111111-2222-3333-4444-555555555555"))
    await until(server, {"a"})


async def test_a_kind_that_is_not_served_decides_nothing(server: Server) -> None:
    a = await create(server, "a")
    await create(server, "b", reference(a, kind="Widget", api_version="example.org/v1"))
    await settled(server)
    assert await names(server) == {"a", "b"}


async def test_a_circle_in_the_foreground_comes_apart(server: Server) -> None:
    a = await create(server, "a")
    b = await create(server, "b", reference(a))
    await server.client.patch(
        ConfigMap,
        "a",
        "default",
        {
            "metadata": {
                "ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "ConfigMap",
                        "name": "b",
                        "uid": b.metadata.uid,
                        "blockOwnerDeletion": True,
                    }
                ]
            }
        },
        content_type="application/merge-patch+json",
    )
    await delete(server, "a", "Foreground")
    await until(server, set())


async def test_an_owner_in_another_namespace_is_none_and_an_event_says_so(server: Server) -> None:
    await server.namespace("room")
    elsewhere = await create(server, "a", namespace="room")
    await create(server, "b", reference(elsewhere))
    await until(server, set())
    assert await names(server, "room") == {"a"}
    await settled(server)
    told = (await server.client.list(Event, "default")).items
    assert {event.reason for event in told} == {"OwnerRefInvalidNamespace"}
    assert {event.involved_object.name for event in told} == {"b"}


async def test_a_node_takes_along_what_belongs_to_it(server: Server) -> None:
    """Owners without a namespace may have dependents in any, of any kind."""
    node = await server.client.create(Node(metadata=ObjectMeta(name="n")))
    await create(server, "a", reference(node))
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": node.metadata.uid}
    pod = {
        "metadata": {"name": "p", "namespace": "default", "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    await server.client.create(convert(pod, Pod))
    await server.client.delete(Node, "n")
    await until(server, set())
    assert not (await server.client.list(Pod, "default")).items


async def test_namespaces_and_events_wait_for_nobody(server: Server) -> None:
    await server.namespace("room")
    await server.client.delete(Namespace, "room", propagation="Foreground")
    assert "foregroundDeletion" not in (await server.client.get(Namespace, "room")).metadata.finalizers


async def test_which_kinds_there_are(server: Server) -> None:
    inventory = await served(server.client, "delete", "list", "watch")
    found = {f"{kind.group}/{kind.resource}": kind for kind in inventory.kinds}
    assert not inventory.silent
    assert {"/pods", "/configmaps", "coordination.k8s.io/leases", "rbac.authorization.k8s.io/roles"} <= found.keys()
    assert not any("/" in served.resource for served in found.values())
    assert (found["/pods"].kind, found["/pods"].namespaced, found["/nodes"].namespaced) == ("Pod", True, False)


async def test_a_component_that_is_away_does_not_stop_the_collection(tmp_path: Path) -> None:
    spec = {
        "group": "example.org",
        "version": "v1",
        "service": {"namespace": "x", "name": "away"},
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
    }
    registration = convert({"metadata": {"name": "v1.example.org"}, "spec": spec}, APIService)
    clock = FakeClock()
    async with running_server(tmp_path, clock=clock) as server:
        await server.client.create(registration)
        owner = await create(server, "a")
        await create(server, "b", reference(owner))
        await clock.settle()
        assert (await served(server.client, "list")).silent == {("example.org", "v1")}
        async with collecting(server, clock):
            await delete(server, "a")
            await until(server, set())


async def test_a_deletion_can_change_its_mind(server: Server) -> None:
    await create(server, "a", finalizers=("example.org/held",))
    for policy, wanted in (("Foreground", "foregroundDeletion"), ("Orphan", "orphan")):
        await server.client.delete(ConfigMap, "a", "default", propagation=policy, dry_run=True)
        answer = await server.ask("DELETE", f"/api/v1/namespaces/default/configmaps/a?propagationPolicy={policy}")
        assert wanted.encode() in await answer.read()
    await settled(server)
    try:
        left = await server.client.get(ConfigMap, "a", "default")
    except ApiError:
        pytest.fail("it was held")
    assert left.metadata.finalizers == ("example.org/held",)
