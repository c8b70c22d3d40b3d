"""Walks over owners, with sizes doubled: however long a chain is and however many name one owner, no turn is too long.

What a tenant can make is bounded beside: 15,000 values of an object are 2,500 owner references.
"""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec
import pytest

from podfit.api.autoscaling_k8s.v1 import CrossVersionObjectReference, VerticalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.meta.v1.types import ObjectMeta, OwnerReference
from podfit.client.controlling import Controlling
from podfit.client.rest import Client
from podfit.client.targets import Targets, Unsupported
from podfit.client.workloads import Selecting
from podfit.controllers.garbage import collector
from podfit.controllers.garbage.graph import Graph, Item
from podfit.controllers.served_kinds import Served
from podfit.decide.workload.ownership import OwnerState, blocks, judge, owners_of, without
from support.clock import FakeClock
from support.turns import worst_ms

BOUND_MS = 100.0
FIRST = 64
Walk = Callable[[], Awaitable[None]]


class _Nobody:
    random: Any = None


def reference(number: int | str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"rs-{number}", "uid": f"u-{number}",
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip


def replica_set(number: int, owner: int | None) -> Selecting:
    owners = [] if owner is None else [reference(owner)]
    meta = {"name": f"rs-{number}", "namespace": "d", "uid": f"u-{number}", "resourceVersion": "1"}
    spec = {"selector": {"matchLabels": {"app": "x"}}}
    return msgspec.convert({"metadata": {**meta, "ownerReferences": owners}, "spec": spec}, Selecting)


def targets(size: int, *, ring: bool = False) -> Targets:
    """So many ReplicaSets, each owned by the one before; in a ring the first by the last."""
    made = Targets(cast(Client, _Nobody()), FakeClock())
    informer = made._informers["ReplicaSet"]
    for number in range(size):
        above = number - 1 if number else size - 1 if ring else None
        informer._changed(replica_set(number, above))
    return made


def vpa_s_target(size: int, *, ring: bool = False) -> Walk:
    chain = targets(size, ring=ring)

    async def walk() -> None:
        for number in range(min(10, size)):
            ref = CrossVersionObjectReference(api_version="apps/v1", kind="ReplicaSet", name=f"rs-{size - 1 - number}")
            with pytest.raises(Unsupported, match=r"more than 8 owners|cycle detected"):
                await chain.selector("d", ref)

    return walk


def ring_above_a_target(size: int) -> Walk:
    return vpa_s_target(size, ring=True)


def pod_s_controller(size: int) -> Walk:
    chain = targets(size)
    owner = msgspec.convert(reference(size - 1), OwnerReference)

    async def walk() -> None:
        for _ in range(10):
            assert await chain.topmost_of("d", owner) is None

    return walk


def vpas_of_one_target(size: int) -> Walk:
    """None of them selects the pod, so that every one is looked at."""
    chain = targets(1)
    target = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs-0"}
    metas = [{"name": f"v{number}", "namespace": "d", "uid": f"v{number}"} for number in range(size)]
    named = [convert({"metadata": meta, "spec": {"targetRef": target}}, VerticalPodAutoscaler) for meta in metas]
    pod = convert({"metadata": {"name": "p", "namespace": "d", "ownerReferences": [reference(0)]}}, Pod)

    async def walk() -> None:
        assert await Controlling(chain, named).vpa_of(pod) is None

    return walk


KIND = Served("", "v1", "configmaps", "ConfigMap", True)


def item(name: str, owners: list[dict[str, Any]]) -> Item:
    meta = {"name": name, "namespace": "d", "uid": f"u-{name}", "ownerReferences": owners}
    return Item(KIND, convert(meta, ObjectMeta))


def owners_of_one_object(size: int) -> Walk:
    """It names so many, and then blocks none of them any more."""
    before = item("x", [reference(number) for number in range(size)])
    after = item("x", [reference(number) | {"blockOwnerDeletion": False} for number in range(size)])
    graph = Graph()

    async def walk() -> None:
        graph.put(before)
        graph.put(after)
        assert len(collector._released(before, after)) == size
        known = dict.fromkeys(owners_of(after.meta), OwnerState.DANGLING)
        judge(after.meta, known, [])
        assert not without(after.meta, frozenset(known))
        graph.pop(after.meta.uid)

    return walk


def dependents_of_one_owner(size: int) -> Walk:
    graph = Graph()
    owner = item("owner", [])
    named = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "u-owner", "controller": True}
    graph.put(owner)
    for number in range(size):
        graph.put(item(f"x{number}", [named]))

    async def walk() -> None:
        dependents = graph.dependents(owner.identity)
        assert len(dependents) == size
        assert not any(blocks(dependent.meta, owner.identity) for dependent in dependents)

    return walk


WALKS = {
    "a chain above a VPA's target": (vpa_s_target, 16_384),
    "a ring above a VPA's target": (ring_above_a_target, 8),
    "a chain above a pod's controller": (pod_s_controller, 16_384),
    "VPAs of one target": (vpas_of_one_target, 8_192),
    "owners of one object": (owners_of_one_object, 4_096),
    "dependents of one owner": (dependents_of_one_owner, 16_384),
}


@pytest.mark.parametrize("name", WALKS)
async def test_no_walk_over_owners_takes_a_turn_too_long(name: str) -> None:
    make, _ = WALKS[name]
    size = min(WALKS[name][1], 2048)
    assert await worst_ms(make(size)) < BOUND_MS


async def test_eight_owners_above_a_controller_are_followed() -> None:
    chain = targets(10)
    owner = msgspec.convert(reference(8), OwnerReference)
    assert str(await chain.topmost_of("d", owner)) == "ReplicaSet/rs-0"
    target = CrossVersionObjectReference(api_version="apps/v1", kind="ReplicaSet", name="rs-9")
    with pytest.raises(Unsupported, match=r"controller: more than 8 owners stand above ReplicaSet/rs-9$"):
        await chain.selector("d", target)


@pytest.mark.campaign
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", WALKS)
async def test_chains_of_owners_are_doubled(name: str, figure: Callable[[str, object], None]) -> None:
    """Chains: a walk over owners with sizes doubled from 64, as far as a tenant gets: the worst turn of the loop."""
    make, most = WALKS[name]
    size, worst = min(FIRST, most), 0.0
    while size <= most:
        worst = await worst_ms(make(size))
        assert worst < BOUND_MS, size
        size *= 2
    figure(f"worst turn of {name} at {size // 2}", f"{worst:.1f} ms")
