"""Which Nodes are played, by KWOK's contract: whoever makes a Node annotated `kwok.x-k8s.io/node: fake` wants somebody
to say that it is Ready and that its pods run.

The contract is KWOK's (`kustomize/stage/node/fast/node-initialize.yaml` of kubernetes-sigs/kwok); what the autoscalers'
kwok providers write is in `tests/process/test_kwok_nodes.py`. A Node that a kubelet has or may have is never played: it
would tell of pods that they run where nobody has started them.
"""

from collections.abc import Collection
from datetime import datetime

import msgspec

from podfit.api.coordination.v1.types import Lease
from podfit.api.core.v1.nodes.types import Node
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import Quantity
from podfit.core.times import parse_time, seconds_later

SIMULATED = "podfit.dev/simulated"
"""Label and annotation of each Node whose containers are simulated."""
FAKE_ANNOTATION, FAKE = "kwok.x-k8s.io/node", "fake"
MOST_PLAYED = 1000
LEASE_SECONDS = 40
"""Of a Lease that does not say how long it lasts; what kubelets write."""
USUAL: ResourceList = {"cpu": Quantity.of(4), "memory": Quantity.of_bytes(8 << 30), "pods": Quantity.of(110)}
"""Of a Node that says nothing of it: a simulated node of podfit."""
MOST: ResourceList = {
    "cpu": Quantity.of(1_000_000),
    "memory": Quantity.of_bytes(1 << 60),
    "pods": Quantity.of(1_000_000),
    "ephemeral-storage": Quantity.of_bytes(1 << 60),
}
MOST_RESOURCES = 64
FAKE_VERSIONS = ("fake", "kwok")
"""How versions begin that no kubelet has: of the cluster autoscaler's templates, and of KWOK."""
_WORDS = {"cpu": "1 million CPUs", "memory": "1Ei", "pods": "1 million pods", "ephemeral-storage": "1Ei"}


class Played(msgspec.Struct, frozen=True):
    """The Node is to be played, with these resources."""

    capacity: ResourceList
    allocatable: ResourceList


class Left(msgspec.Struct, frozen=True):
    """It is not. `why` is for people, empty where nobody asked for it. It may be in `seconds` (None: not before
    something changes), or when another goes (`full`)."""

    why: str = ""
    seconds: float | None = None
    full: bool = False


def is_played(node: Node) -> bool:
    """Whether it says so of itself."""
    return SIMULATED in node.metadata.labels and node.metadata.annotations.get(FAKE_ANNOTATION) == FAKE


def judge(
    node: Node, lease: Lease | None, *, holder: str, own: Collection[str], others: int, now: datetime
) -> Played | Left:
    """`holder` is who we are in Leases, `own` are the nodes of this process, `others` is how many Nodes are played
    beside this one. `lease` is the one of its name."""
    name = node.metadata.name
    if node.metadata.annotations.get(FAKE_ANNOTATION) != FAKE or node.metadata.deletion_timestamp:
        return Left()
    if name in own:
        return Left(f"{name} is a node of podfit itself")
    if why := _kubelet(node, lease, holder):
        return Left(why)
    if lease is not None and (seconds := _held(lease, holder, now)) > 0:
        return Left(f"its Lease is held by {lease.spec.holder_identity!r:.80}", seconds)
    if others >= MOST_PLAYED:
        return Left(f"{MOST_PLAYED} Nodes are played already, which is the most", full=True)
    return _sized(node)


def _kubelet(node: Node, lease: Lease | None, holder: str) -> str:
    """What shows that a kubelet has this Node, even if that is silent now; empty when none is known."""
    uid, name = node.metadata.uid, node.metadata.name
    own = lease is not None and any(owner.uid == uid for owner in lease.metadata.owner_references)
    if lease is not None and own and lease.spec.holder_identity == name != holder:
        return "a kubelet has this Node: its Lease says so"
    version = node.status.node_info.kubelet_version
    if version and SIMULATED not in node.metadata.labels and not version.startswith(FAKE_VERSIONS):
        return f"a kubelet has this Node: status.nodeInfo.kubeletVersion is {version!r:.80}"
    return ""


def _held(lease: Lease, holder: str, now: datetime) -> float:
    """Seconds for which somebody else has it."""
    spec = lease.spec
    if not spec.holder_identity or spec.holder_identity == holder or not spec.renew_time:
        return 0.0
    lasts = min(spec.lease_duration_seconds or LEASE_SECONDS, 3600)
    return min((seconds_later(parse_time(spec.renew_time), lasts) - now).total_seconds(), lasts)


def _sized(node: Node) -> Played | Left:
    """What the Node says of its size; capacity and allocatable serve for each other where one is not said."""
    status = node.status
    capacity = {**USUAL, **status.allocatable, **status.capacity}
    allocatable = {**capacity, **status.allocatable}
    if len(capacity) > MOST_RESOURCES:
        return Left(f"it has {len(capacity)} resources, the most is {MOST_RESOURCES}")
    for name, most in MOST.items():
        if any(amounts.get(name, most) > most for amounts in (capacity, allocatable)):
            return Left(f"its {name} is {_more(capacity, allocatable, name)}, the most is {_WORDS[name]}")
    for name, amount in allocatable.items():
        if min(amount, capacity[name]) < Quantity.of(0):
            return Left(f"its {name} is below zero")
        if amount > capacity[name]:
            return Left(f"its allocatable {name} is {amount}, more than its capacity of {capacity[name]}")
    return Played(capacity, allocatable)


def _more(capacity: ResourceList, allocatable: ResourceList, name: str) -> Quantity:
    return max(amounts[name] for amounts in (capacity, allocatable) if name in amounts)
