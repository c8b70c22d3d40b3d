"""The allocation of a node by pod, and why the scheduler counts more than is allocated."""

from collections.abc import Iterator, Sequence

import msgspec

from podfit.answers.facts.pod_state import RESOURCES
from podfit.answers.node.live_node import NodePod
from podfit.api.meta.base import ResourceList
from podfit.core.features import FeatureGates
from podfit.core.quantity import ZERO, Format, Quantity
from podfit.decide.pod.requests import pod_requests


class Holder(msgspec.Struct, frozen=True):
    pod: str
    amount: str
    priority: int


def holders_of(resource: str, members: Sequence[NodePod]) -> Iterator[Holder]:
    held = [(member.counts.requests.get(resource, ZERO), member) for member in members]
    for amount, holder in sorted(held, key=lambda pair: (-pair[0].nano, pair[1].name)):
        if amount:
            yield Holder(holder.name, f"{amount} {resource}", holder.desired.spec.priority or 0)


def allocated_to(members: Sequence[NodePod]) -> ResourceList:
    return _total([member.counts.requests for member in members])


def counted_for(members: Sequence[NodePod], gates: FeatureGates) -> ResourceList:
    """What the scheduler counts; `gates` are the cluster's."""
    return _total([pod_requests(member.desired, gates=gates, use_status=True) for member in members])


def _total(lists: Sequence[ResourceList]) -> ResourceList:
    return {
        name: Quantity(sum(amounts.get(name, ZERO).nano for amounts in lists), _form(lists, name)) for name in RESOURCES
    }


def _form(lists: Sequence[ResourceList], name: str) -> Format:
    return next((amounts[name].format for amounts in lists if amounts.get(name)), Format.DECIMAL_SI)


def seen_fuller(members: Sequence[NodePod], gates: FeatureGates) -> Iterator[str]:
    """The scheduler counts desires that wait, so it sees the node fuller than it is (R-078)."""
    counted, held = counted_for(members, gates), allocated_to(members)
    more = [f"{counted[name] - held[name]} {name}" for name in RESOURCES if counted[name] > held[name]]
    if more:
        yield f"the scheduler counts what waits as well: it sees this node {' and '.join(more)} fuller than it is"


class PodShare(msgspec.Struct, frozen=True, rename="camel"):
    """What a pod holds of a node, and what the scheduler counts for it; `why` when that is more."""

    pod: str
    qos: str
    priority: int
    promised: dict[str, str]
    counted: dict[str, str]
    why: str


def held_by(member: NodePod, gates: FeatureGates) -> PodShare:
    counted = pod_requests(member.desired, gates=gates, use_status=True)
    more = any(counted.get(name, ZERO) > member.counts.requests.get(name, ZERO) for name in RESOURCES)
    waits = "infeasible" if member.infeasible else "waiting"
    return PodShare(
        member.name,
        member.desired.status.qos_class,
        member.desired.spec.priority or 0,
        texts_of(member.counts.requests),
        texts_of(counted),
        f"its {waits} resize counts already" if more else "",
    )


def texts_of(amounts: ResourceList) -> dict[str, str]:
    return {name: str(amounts[name]) for name in RESOURCES if name in amounts}
