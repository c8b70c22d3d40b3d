"""Cluster state: which nodes of which group are there, which are to come, and whether that is well (upstream's
clusterstate).

    upcoming = target - (ready + unready + long unregistered)      while a request is open, not in backoff

Nodes that have registered and are not ready yet are upcoming ones.
"""

from collections.abc import Iterable, Mapping

import msgspec

from podfit.api.core.v1.nodes.types import Node
from podfit.decide.capacity.backoff import Backoff
from podfit.decide.capacity.look import Look, Moment, Request, State
from podfit.decide.capacity.node_groups import Instance, NodeGroup
from podfit.decide.capacity.readiness import Counts, NodeReadiness, counted, state_of, total
from podfit.decide.capacity.settings import AutoscalerSettings

NOT_READY = "not ready for scale-up"
IN_BACKOFF = "in backoff after failed scale-up"
AT_MAX = "max node group size reached"


class GroupState(msgspec.Struct, frozen=True, kw_only=True):
    """A group with its Nodes and their states; `upcoming` nodes are counted on, `missing` are those that have yet to be
    ready whoever asked for them. `backoff` holds now."""

    group: NodeGroup
    nodes: tuple[tuple[Node, NodeReadiness], ...]
    counts: Counts
    healthy: bool
    missing: int
    upcoming: int
    request: Request | None
    backoff: Backoff | None
    without_node: tuple[Instance, ...]
    late: tuple[Instance, ...]

    @property
    def cannot_grow(self) -> str:
        """Upstream's words for why it is left out of a scale-up; empty when it is not."""
        if self.group.problem or not self.healthy:
            return NOT_READY
        if self.backoff is not None:
            return IN_BACKOFF
        return "" if self.group.headroom else AT_MAX


class ClusterCounts(msgspec.Struct, frozen=True):
    """`groups` in the provider's order; `others` are Nodes of no group."""

    groups: tuple[GroupState, ...]
    counts: Counts
    healthy: bool

    def by_id(self) -> Mapping[str, GroupState]:
        return {group.group.id: group for group in self.groups}


def registered(look: Look, state: State, moment: Moment, settings: AutoscalerSettings) -> ClusterCounts:
    by_group: dict[str, list[Node]] = {}
    loose: list[Node] = []
    known = {group.id for group in look.groups}
    for node in look.nodes:
        group = look.members.get(node.metadata.name, "")
        by_group.setdefault(group, []).append(node) if group in known else loose.append(node)
    there = {node.spec.provider_id for node in look.nodes if node.spec.provider_id}
    groups = tuple(_group(group, by_group.get(group.id, ()), there, state, (moment, settings)) for group in look.groups)
    others = counted(
        state_of(node, moment.now, startup_time=settings.startup_time, has_instance=True) for node in loose
    )
    counts = total({group.group.id: group.counts for group in groups}, others)
    healthy = _is_well(counts.unready, counts.registered, settings)
    return ClusterCounts(groups, counts, healthy)


def _group(
    group: NodeGroup, nodes: Iterable[Node], there: set[str], state: State, at: tuple[Moment, AutoscalerSettings]
) -> GroupState:
    moment, settings = at
    ids = {instance.id for instance in group.instances}
    states = tuple(
        (
            node,
            state_of(node, moment.now, startup_time=settings.startup_time, has_instance=node.spec.provider_id in ids),
        )
        for node in nodes
    )
    without = tuple(instance for instance in group.instances if instance.id not in there and not instance.failed)
    late = tuple(
        instance
        for instance in without
        if moment.at - state.unregistered.get(instance.id, moment.at) >= settings.provision_time
    )
    counts = counted((node_state for _, node_state in states), len(without) - len(late), len(late))
    request, pause = state.requests.get(group.id), state.backoffs.get(group.id)
    pause = pause if pause is not None and pause.holds(moment.at) else None
    missing = max(group.target - counts.ready - counts.unready - counts.long_unregistered, 0)
    open_nodes = request.nodes if request is not None else 0
    acceptable = group.target - counts.long_unregistered - open_nodes
    all_nodes = counts.ready + counts.unready + counts.not_started
    return GroupState(
        group=group,
        nodes=states,
        counts=counts,
        healthy=_is_well(max(acceptable - counts.ready, 0), all_nodes, settings),
        missing=missing,
        upcoming=missing if request is not None and pause is None and not group.problem else 0,
        request=request,
        backoff=pause,
        without_node=without,
        late=late,
    )


def _is_well(unready: int, nodes: int, settings: AutoscalerSettings) -> bool:
    """C-017: more than so many, and more than such a share."""
    return unready <= settings.unready_allowed or unready <= nodes * settings.unready_percent / 100
