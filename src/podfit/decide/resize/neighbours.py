"""What the pods of a node hold of it: each by itself, and in sum."""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.features import FeatureGates
from podfit.decide.placement.view import HostPort, host_ports
from podfit.decide.pod.requests import pod_requests


class Neighbour(msgspec.Struct, frozen=True):
    """Another pod of the node: `name` is namespace/name, `requests` those of its allocated form, status considered;
    `ports` are those of the host that it holds.
    """

    name: str
    requests: ResourceList
    ports: frozenset[HostPort] = frozenset()


def neighbour(allocated: Pod, gates: FeatureGates) -> Neighbour:
    meta, requests = allocated.metadata, pod_requests(allocated, gates=gates, use_status=True)
    return Neighbour(f"{meta.namespace}/{meta.name}", requests, host_ports(allocated))


class Totals(msgspec.Struct, frozen=True):
    """So many pods, and what they request together: nano units by resource name, without those of which it is none."""

    pods: int = 0
    nano: Mapping[str, int] = msgspec.field(default_factory=dict)

    def plus(self, held: Neighbour) -> "Totals":
        return Totals(self.pods + 1, _sums(self.nano, held.requests, 1))

    def minus(self, held: Neighbour) -> "Totals":
        return Totals(self.pods - 1, _sums(self.nano, held.requests, -1))


def _sums(nano: Mapping[str, int], requests: ResourceList, sign: int) -> dict[str, int]:
    sums = dict(nano)
    for name, amount in requests.items():
        total = sums.get(name, 0) + sign * amount.nano
        if total:
            sums[name] = total
        else:
            sums.pop(name, None)
    return sums


class Others(msgspec.Struct, frozen=True):
    """What the other pods of a node hold. `totals` answers whether there is room; who they are, one by one, is asked
    only when there is none, or when ports of the host are wanted.
    """

    totals: Totals
    one_by_one: Callable[[], Iterable[Neighbour]]


def others_of(neighbours: Iterable[Neighbour]) -> Others:
    listed, totals = tuple(neighbours), Totals()
    for held in listed:
        totals = totals.plus(held)
    return Others(totals, lambda: listed)


NOBODY = others_of(())
