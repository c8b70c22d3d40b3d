"""Scale-up: which node group grows, and by how much, for pods that have no room (C-021 to C-043).

pods ─▶ equivalence groups ─┐
node groups that can grow ──┼─▶ an estimate for each ─▶ expanders, one after another ─▶ caps ─▶ balancing
                            └─▶ why the others cannot
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import ZERO
from podfit.core.resources import subtract
from podfit.decide.capacity.estimator import estimate, schedulable_groups
from podfit.decide.capacity.expanders import FILTERS, ExpanderEvent, Option, Priorities
from podfit.decide.capacity.hypothetical import HypotheticalCluster
from podfit.decide.capacity.look import Increase
from podfit.decide.capacity.node_groups import NodeGroup
from podfit.decide.capacity.pod_groups import PodGroup, pod_groups
from podfit.decide.capacity.registered import NOT_READY, GroupState
from podfit.decide.capacity.settings import CHANCE, PRIORITY, ScaleUpSettings
from podfit.decide.placement.view import NodeInfo

GIB = 1 << 30
MAX_TOTAL = "max total nodes in cluster reached"
_OWN_LABELS = (
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
MEMORY_DIFFERENCE, ALLOCATABLE_DIFFERENCE = 0.015, 0.05
"""Shares by which nodes of similar groups may differ."""


class GrowthLeft(msgspec.Struct, frozen=True):
    """How much the cluster may still grow: nodes, CPUs and GiB; None is without a limit."""

    nodes: int | None
    cores: float
    gib: float


class ScaleUpPlan(msgspec.Struct, frozen=True, kw_only=True):
    """`increases` is empty when nothing helps. `rejected` says by UID of a pod why not, in upstream's words; `capped`:
    more nodes would have helped than the cluster may have."""

    increases: tuple[Increase, ...] = ()
    pods: tuple[Pod, ...] = ()
    rejected: Mapping[str, str] = msgspec.field(default_factory=dict)
    events: tuple[ExpanderEvent, ...] = ()
    capped: bool = False


def plan_scale_up(
    cluster: HypotheticalCluster,
    pods: Sequence[Pod],
    groups: Sequence[tuple[GroupState, NodeInfo | None]],
    room: GrowthLeft,
    settings: ScaleUpSettings,
    chance: tuple[Priorities, float],
) -> ScaleUpPlan:
    """`pods` are those that fit on no node of the cluster; `groups` come with their templates. `chance` are the
    priority expander's map, and a number from 0 up to 1 that decides between equals."""
    alike = pod_groups(pods)
    skipped, able = _able(groups, settings)
    options: list[Option] = []
    refused: dict[str, Counter[str]] = {}
    for group, template in able:
        helped = schedulable_groups(cluster, template, alike)
        _note_refusals(cluster, template, alike, helped, refused)
        if helped:
            most = min(filter(None, (settings.most_at_once, group.headroom)), default=0)
            estimated = estimate(cluster, template, helped, most_nodes=most)
            if estimated.nodes and estimated.pods:
                options.append(Option(group.id, estimated.nodes, estimated.pods, template.node))
    best, events = choose(options, settings.expander, *chance)
    rejected = {uid: _listed(skipped, refused.get(uid, Counter())) for uid in (pod.metadata.uid for pod in pods)}
    if best is None:
        return ScaleUpPlan(rejected=rejected, events=events)
    nodes = _capped(best, room)
    if not nodes:
        none = dict.fromkeys(rejected, MAX_TOTAL) if room.nodes == 0 else rejected
        return ScaleUpPlan(rejected=none, events=events, capped=True)
    increases = _balanced(best, nodes, able, balance=settings.balance_similar)
    placed = {pod.metadata.uid for pod in best.pods}
    return ScaleUpPlan(
        increases=increases,
        pods=best.pods,
        rejected={uid: text for uid, text in rejected.items() if uid not in placed},
        events=events,
        capped=nodes < best.nodes,
    )


def choose(
    options: Sequence[Option], expanders: Iterable[str], priorities: Priorities, draw: float
) -> tuple[Option | None, tuple[ExpanderEvent, ...]]:
    """What the expanders leave, one after another; of equals the one at `draw`."""
    left, events = list(options), list[ExpanderEvent]()
    for name in expanders:
        if not left or name == CHANCE:
            break
        if name == PRIORITY:
            left, said = priorities.filter(left)
            events += said
        else:
            left = FILTERS[name](left)
        if len(left) == 1:
            break
    return (left[int(draw * len(left))] if left else None), tuple(events)


def _able(
    groups: Sequence[tuple[GroupState, NodeInfo | None]], settings: ScaleUpSettings
) -> tuple[Counter[str], list[tuple[NodeGroup, NodeInfo]]]:
    """Why some cannot grow, and those that can."""
    skipped: Counter[str] = Counter()
    able = []
    for state, template in groups:
        empty = not settings.from_zero and not state.nodes
        reason = state.cannot_grow or (NOT_READY if template is None or empty else "")
        if reason or template is None:
            skipped[reason] += 1
        else:
            able.append((state.group, template))
    return skipped, able


def _note_refusals(
    cluster: HypotheticalCluster,
    template: NodeInfo,
    groups: Iterable[PodGroup],
    helped: Iterable[PodGroup],
    refused: dict[str, Counter[str]],
) -> None:
    """Why a new node of the template would not take the pods of the other groups."""
    fits = {group.first.metadata.uid for group in helped}
    fresh = cluster.copy()
    index = fresh.add(template, template.name)
    for group in groups:
        if group.first.metadata.uid in fits:
            continue
        refusal = fresh.asker(fresh.newcomer(group.first))(index)
        for pod in group.pods if refusal is not None else ():
            assert refusal is not None
            refused.setdefault(pod.metadata.uid, Counter()).update([refusal.reasons[0] if refusal.reasons else ""])


def _listed(skipped: Counter[str], refused: Counter[str]) -> str:
    """`1 Insufficient cpu, 2 max node group size reached`, sorted (C-091)."""
    counts = skipped + refused
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))


def _capped(option: Option, room: GrowthLeft) -> int:
    """As many whole nodes as the cluster may have (C-039, C-041)."""
    capacity = option.template.status.capacity
    cores, memory = capacity.get("cpu", ZERO).milli() / 1000, capacity.get("memory", ZERO).value() / GIB
    limits = [option.nodes]
    if room.nodes is not None:
        limits.append(room.nodes)
    if cores:
        limits.append(int(room.cores // cores))
    if memory:
        limits.append(int(room.gib // memory))
    return max(min(limits), 0)


def _balanced(
    option: Option, nodes: int, able: Sequence[tuple[NodeGroup, NodeInfo]], *, balance: bool
) -> tuple[Increase, ...]:
    """One node at a time to the smallest of the groups whose nodes are alike (C-042)."""
    chosen = next(pair for pair in able if pair[0].id == option.group)
    similar = [chosen[0]]
    if balance:
        similar += [group for group, view in able if group is not chosen[0] and are_similar(view, chosen[1])]
    added = {group.id: 0 for group in similar}
    for _ in range(nodes):
        open_groups = [group for group in similar if added[group.id] < group.headroom]
        if not open_groups:
            break
        smallest = min(open_groups, key=lambda group: group.target + added[group.id])
        added[smallest.id] += 1
    return tuple(Increase(group, added[group.id]) for group in similar if added[group.id])


def are_similar(one: NodeInfo, other: NodeInfo) -> bool:
    """Whether nodes of two groups are alike but for where they are."""
    labels = [
        {key: value for key, value in view.labels.items() if key not in _OWN_LABELS and "nodegroup" not in key}
        for view in (one, other)
    ]
    if labels[0] != labels[1] or one.node.status.capacity.keys() != other.node.status.capacity.keys():
        return False
    for name, amount in one.node.status.capacity.items():
        there = other.node.status.capacity[name]
        allowed = MEMORY_DIFFERENCE if name == "memory" else 0.0
        if abs((amount - there).nano) > allowed * max(amount.nano, there.nano):
            return False
    free = [subtract(view.node.status.allocatable, view.requested) for view in (one, other)]
    return all(
        abs((amount - free[1].get(name, ZERO)).nano)
        <= ALLOCATABLE_DIFFERENCE * max(amount.nano, free[1].get(name, ZERO).nano)
        for name, amount in free[0].items()
    )
