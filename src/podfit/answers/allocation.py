"""What is requested, set aside, used and recommended, summed by node, namespace or workload (`podfit allocation`).

    requested      what pods ask for, a resize that waits included
    allocated      what their nodes have set aside for them
    used           now, by metrics.k8s.io or the kubelets
    recommended    the targets of VPAs; of containers without one, what they request

Counted are pods with a node that have not ended, as the scheduler counts them: init containers, pod-level resources and
overhead too. What is used is the containers' own.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from podfit.answers.autoscaling.vpas import Vpas, read_vpas
from podfit.answers.facts.ages import Age
from podfit.answers.facts.kinds import NODES, PODS
from podfit.answers.facts.rights import why_unread
from podfit.answers.facts.snapshot import Reader
from podfit.answers.facts.usage import UsageFacts, UsageReader
from podfit.answers.facts.workloads import Controllers, WorkloadName, listed_controllers, topmost
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.quantity import ZERO, Quantity
from podfit.core.resources import CPU, MEMORY
from podfit.decide.autoscaling.container_view import WHOLE
from podfit.decide.autoscaling.policies import recommended
from podfit.decide.autoscaling.slices import told_to
from podfit.decide.node.room.plan import allocated_form
from podfit.decide.pod.requests import pod_requests

By = Literal["node", "namespace", "workload"]
RESOURCES = (CPU, MEMORY)


class Shares(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One resource of a row, as quantities. `capacity` is what a node can give, `used` is empty where it is not known
    of every pod, `recommended` where no container of the row has a VPA with a target.
    """

    requested: str
    allocated: str
    used: str = ""
    recommended: str = ""
    capacity: str = ""

    def share(self, amount: str, whole: str) -> float | None:
        """The share of `whole`, or None when one of them is not known."""
        of = Quantity.parse(whole or "0").nano
        return Quantity.parse(amount).nano / of if amount and of else None


class AllocationRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`name` of a node, of a namespace, or of a workload as kind/name, which is in `namespace`."""

    name: str
    namespace: str = ""
    pods: int
    cpu: Shares
    memory: Shares


class Allocation(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`total` sums the rows; `missing` are figures that are not there, each with its reason."""

    server: str
    by: By
    source: str = ""
    rows: tuple[AllocationRow, ...]
    total: AllocationRow
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class AllocationFacts(msgspec.Struct, frozen=True, kw_only=True):
    """All that was read at one moment; `nodes` is empty where they may not be read, `controllers` None where the
    question is not about workloads.
    """

    age: Age
    pods: tuple[Pod, ...]
    nodes: Mapping[str, Node]
    usage: UsageFacts
    vpas: Vpas
    controllers: Controllers | None = None
    unread: tuple[str, ...] = ()


async def read_allocation(client: Client, namespace: str, by: By, clock: Clock, *, labels: str = "") -> AllocationFacts:
    """What pods of a namespace ask for and use, or of all when it is empty. Raises ApiError for the pods themselves,
    ConnectionError."""
    age = await Reader(client, namespace).age()
    listed = (await client.list(PODS, namespace, labels=labels)).items
    pods = tuple(pod for pod in listed if pod.spec.node_name and not has_ended(pod))
    unread: list[str] = []
    places = {(pod.metadata.namespace, pod.metadata.name): pod.spec.node_name for pod in pods}
    usage, vpas, nodes = await asyncio.gather(
        UsageReader(client, clock).read(namespace, places),
        read_vpas(client, namespace, pods),
        _nodes(client, unread.append) if by == "node" else _none(),
    )
    controllers = await listed_controllers(client, namespace, pods, unread.append) if by == "workload" else None
    return AllocationFacts(
        age=age, pods=pods, nodes=nodes, usage=usage, vpas=vpas, controllers=controllers, unread=tuple(unread)
    )


async def _nodes(client: Client, unread: Callable[[str], None]) -> dict[str, Node]:
    try:
        return {node.metadata.name: node for node in (await client.list(NODES)).items}
    except ApiError as error:
        unread(f"nodes: {why_unread(error)}")
        return {}


async def _none() -> dict[str, Node]:
    return {}


def allocation(facts: AllocationFacts, by: By) -> Allocation:
    """Nodes without pods have rows too. The largest request of CPU comes first."""
    groups: dict[tuple[str, str], list[Pod]] = {("", name): [] for name in facts.nodes} if by == "node" else {}
    for pod in facts.pods:
        groups.setdefault(_group(pod, facts, by), []).append(pod)
    rows = [_row(name, where, pods, facts) for (where, name), pods in groups.items()]
    rows.sort(key=lambda row: (-Quantity.parse(row.cpu.requested).nano, row.namespace, row.name))
    return Allocation(
        server=facts.age.version,
        by=by,
        source=facts.usage.source,
        rows=tuple(rows),
        total=_total(rows, facts),
        notes=tuple(_notes(facts)),
        missing=tuple(_missing(facts)),
    )


def _group(pod: Pod, facts: AllocationFacts, by: By) -> tuple[str, str]:
    """Namespace and name of the row."""
    if by == "node":
        return "", pod.spec.node_name
    if by == "namespace" or facts.controllers is None:
        return "", pod.metadata.namespace
    workload: WorkloadName = topmost(pod, facts.controllers)
    return workload.namespace, str(workload)


def _row(name: str, namespace: str, pods: Sequence[Pod], facts: AllocationFacts) -> AllocationRow:
    node = facts.nodes.get(name)
    capacity = node.status.allocatable if node is not None else {}
    shares = {resource: _shares(resource, pods, facts, capacity) for resource in RESOURCES}
    return AllocationRow(name=name, namespace=namespace, pods=len(pods), cpu=shares[CPU], memory=shares[MEMORY])


def _shares(resource: str, pods: Sequence[Pod], facts: AllocationFacts, capacity: ResourceList) -> Shares:
    gates = facts.age.gates
    requested = [pod_requests(pod, gates=gates).get(resource, ZERO) for pod in pods]
    allocated = [pod_requests(allocated_form(pod, gates), gates=gates).get(resource, ZERO) for pod in pods]
    used = [_used(pod, resource, facts) for pod in pods]
    targets = [_recommended(pod, resource, request, facts) for pod, request in zip(pods, requested, strict=True)]
    known = any(target is not None for target in targets)
    wanted = [request if target is None else target for target, request in zip(targets, requested, strict=True)]
    return Shares(
        requested=_sum(resource, requested),
        allocated=_sum(resource, allocated),
        used="" if None in used else _sum(resource, (amount for amount in used if amount is not None)),
        recommended=_sum(resource, wanted) if known else "",
        capacity=str(capacity[resource]) if resource in capacity else "",
    )


def _used(pod: Pod, resource: str, facts: AllocationFacts) -> Quantity | None:
    """What its running containers use; None when nobody tells of one of them."""
    total = 0
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        if status.state.running is None:
            continue
        usage = facts.usage.used.get((pod.metadata.namespace, pod.metadata.name, status.name))
        amount = None if usage is None else usage.cpu if resource == CPU else usage.memory
        if amount is None:
            return None
        total += amount
    return Quantity(total) if resource == CPU else Quantity.of_bytes(total)


def _recommended(pod: Pod, resource: str, requested: Quantity, facts: AllocationFacts) -> Quantity | None:
    """The pod's request with the targets in the place of what its containers request; None without any target."""
    vpa = facts.vpas.of(pod)
    if vpa is None:
        return None
    vpa, moved, known = told_to(vpa, pod), 0, False
    whole = recommended(vpa.status.recommendation, WHOLE)
    if whole is not None:
        return whole.target.get(resource)
    for container in all_containers(pod.spec):
        sizes = recommended(vpa.status.recommendation, container.name)
        target = sizes.target.get(resource) if sizes is not None else None
        if target is not None:
            known = True
            moved += target.nano - container.resources.requests.get(resource, ZERO).nano
    return Quantity(requested.nano + moved, requested.format) if known else None


def _sum(resource: str, amounts: Iterable[Quantity]) -> str:
    """CPU in whole thousandths; memory as bytes with the suffix that loses nothing."""
    total = Quantity(sum(amount.nano for amount in amounts))
    return str(total.rounded_to_milli()) if resource == CPU else str(Quantity.of_bytes(total.value()))


def _total(rows: Sequence[AllocationRow], facts: AllocationFacts) -> AllocationRow:
    return AllocationRow(
        name="total",
        pods=len(facts.pods),
        cpu=_together(CPU, [row.cpu for row in rows]),
        memory=_together(MEMORY, [row.memory for row in rows]),
    )


def _together(resource: str, shares: Sequence[Shares]) -> Shares:
    """A sum is known where each part is; what has no recommendation counts with its requests."""

    def whole(amounts: Iterable[str]) -> str:
        texts = list(amounts)
        return _sum(resource, map(Quantity.parse, texts)) if texts and all(texts) else ""

    any_target = any(share.recommended for share in shares)
    return Shares(
        requested=whole(share.requested for share in shares) or "0",
        allocated=whole(share.allocated for share in shares) or "0",
        used=whole(share.used for share in shares),
        recommended=whole(share.recommended or share.requested for share in shares) if any_target else "",
        capacity=whole(share.capacity for share in shares),
    )


def _notes(facts: AllocationFacts) -> Iterator[str]:
    if facts.age.caveat:
        yield facts.age.caveat
    yield from facts.usage.notes
    yield from (f"not read: {line}" for line in (*facts.unread, *facts.vpas.unread))


def _missing(facts: AllocationFacts) -> Iterator[str]:
    if facts.pods and not facts.usage.source:
        yield "usage is not available: neither metrics.k8s.io nor a kubelet provides it"
        return
    lacking = sum(None in (_used(pod, CPU, facts), _used(pod, MEMORY, facts)) for pod in facts.pods)
    if lacking:
        yield f"of {lacking} of {len(facts.pods)} pods usage is not known yet: sums with them are left out"
