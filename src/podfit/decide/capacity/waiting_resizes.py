"""Waiting resizes as demand: for each, which of three acts comes next (docs/cluster-autoscaler.md).

    a neighbour shrinks     where somebody makes room and the plan of `decide.node.room` needs no eviction
    a neighbour moves       the cheapest that is enough and has a place elsewhere now; for a resize that can never be
                            granted on its node, and where no neighbour is enough, the pod itself
    a node comes            for whoever of them would move, who stands in the demand as if it waited for a node

A pod moves by eviction, so it moves itself only where its successor is made with the size that it waits for.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.api.meta.base import ResourceList
from podfit.api.meta.owners import controller_of
from podfit.core.quantity import ZERO
from podfit.core.times import format_time
from podfit.decide.capacity.demand import by_node, with_sizes
from podfit.decide.capacity.drain import DrainContext, Outcome, check_budgets, drainability, is_daemon_set_pod
from podfit.decide.capacity.hypothetical import HypotheticalCluster
from podfit.decide.capacity.look import Look, Moment, MovePod
from podfit.decide.capacity.outlook import MOST_TOLD, Act, PodOutlook
from podfit.decide.capacity.readiness import is_going, is_ready
from podfit.decide.capacity.settings import AutoscalerSettings
from podfit.decide.node.room.minimum import BadMinimum, offers
from podfit.decide.node.room.plan import NothingNeeded, RoomPlan, keeps_node, plan
from podfit.decide.pod.requests import pod_requests
from podfit.decide.pod.resize_state import ResizeStage, ResizeState
from podfit.decide.resize import verdict as fit
from podfit.decide.workload.disruption import why_protected

SHRINK_SECONDS = 120.0
"""How long shrinking neighbours are waited for."""
MOST_MOVES = 10
"""Pods that move for waiting resizes in one look; one on a node, and one of a workload."""


class Waiting(msgspec.Struct, frozen=True):
    """A resize that waits, since when, and whether its node could ever grant it."""

    pod: Pod
    node: Node
    since: datetime
    infeasible: bool


class ResizeDemand(msgspec.Struct, frozen=True):
    """`moves` are done now. `pods` stand for those that would move if there were a node; by their UIDs `real` has the
    pods that wait, and `movers` who moves. `outlooks` tells of all of them."""

    moves: tuple[MovePod, ...] = ()
    pods: tuple[Pod, ...] = ()
    real: Mapping[str, Pod] = msgspec.field(default_factory=dict)
    outlooks: tuple[PodOutlook, ...] = ()


def waiting_resizes(look: Look) -> list[Waiting]:
    """The most important first, of equals who has waited longest."""
    nodes = {node.metadata.name: node for node in look.nodes}
    waiting = []
    for pod in look.pods:
        state, node = ResizeState.of(pod), nodes.get(pod.spec.node_name)
        if node is None or pod.metadata.deletion_timestamp is not None or not keeps_node(pod) or is_going(node):
            continue
        deferred = state.stage is ResizeStage.DEFERRED and state.shortage is not None
        if (deferred or state.stage is ResizeStage.INFEASIBLE) and state.waits_since is not None:
            waiting.append(Waiting(pod, node, state.waits_since, not deferred))
    return sorted(waiting, key=lambda one: (-(one.pod.spec.priority or 0), one.since, one.pod.metadata.uid))


def resize_demand(
    look: Look,
    moment: Moment,
    settings: AutoscalerSettings,
    cluster: HypotheticalCluster,
    context: DrainContext,
    moving: Mapping[str, float],
) -> ResizeDemand:
    """`cluster` is changed: who has a place there gets it. `moving` are pods that were evicted for one already."""
    return _Turns(look, moment, settings, cluster, context, moving).all()


class _Turns:
    """One waiting resize after the other, each counting on what was given to those before."""

    def __init__(
        self,
        look: Look,
        moment: Moment,
        settings: AutoscalerSettings,
        cluster: HypotheticalCluster,
        context: DrainContext,
        moving: Mapping[str, float],
    ) -> None:
        self.look, self.moment, self.settings, self.context = look, moment, settings, context
        self.cluster, self.moving = cluster, moving
        self.on_node = by_node(look.pods)
        self.indexes = {view.name: index for index, view in enumerate(cluster.views)}
        self.real_nodes = {node.metadata.name for node in look.nodes if is_ready(node)}
        self.moves: list[MovePod] = []
        self.pods: list[Pod] = []
        self.real: dict[str, Pod] = {}
        self.busy: set[str] = {
            pod.spec.node_name
            for pod in look.pods
            if pod.metadata.uid in moving or (pod.metadata.deletion_timestamp is not None and pod.spec.node_name)
        }
        """Nodes that a pod is leaving: what waits there is tried again when it has gone."""
        self.owners = {
            owner.uid
            for pod in look.pods
            if not pod.spec.node_name and (owner := controller_of(pod.metadata)) is not None
        }
        """Workloads of which a pod has no node now, so that no other of theirs moves."""

    def all(self) -> ResizeDemand:
        waiting = waiting_resizes(self.look)
        outlooks = [self._turn(one) for one in waiting[:MOST_TOLD]]
        return ResizeDemand(tuple(self.moves), tuple(self.pods), self.real, tuple(outlooks))

    def _turn(self, one: Waiting) -> PodOutlook:
        counts_at = one.since + timedelta(seconds=self.settings.scale_up.resize_delay)
        if self.moment.now < counts_at:
            return _outlook(one, Act.WAIT, due=counts_at, because="it has only begun to wait")
        if one.node.metadata.name in self.busy:
            return _outlook(one, Act.WAIT, because="a pod is leaving its node, then the node looks again")
        movers, because = [one.pod], ""
        if not one.infeasible:
            shrinking = self._shrink(one)
            if shrinking is not None:
                return shrinking
            movers, because = self._cheapest(one)
            if not movers:
                movers = [one.pod]
        return self._move(one, movers, because)

    def _shrink(self, one: Waiting) -> PodOutlook | None:
        """None where no neighbour is going to shrink."""
        others = [pod for pod in self.on_node.get(one.node.metadata.name, ()) if pod is not one.pod]
        offered = offers(others)
        targets = {uid: offer for uid, offer in offered.items() if not isinstance(offer, BadMinimum)}
        answer = plan(one.pod, others, one.node.status.allocatable, targets, gates=self.look.gates)
        if isinstance(answer, NothingNeeded):
            return _outlook(one, Act.WAIT, because="room for it is on its way on its node")
        until = one.since + timedelta(seconds=self.settings.scale_up.resize_delay + SHRINK_SECONDS)
        if not isinstance(answer, RoomPlan) or not self.look.makes_room or self.moment.now >= until:
            return None
        return _outlook(one, Act.SHRINK, who=answer.shrinks[0].pod, due=until) if answer.shrinks else None

    def _cheapest(self, one: Waiting) -> tuple[list[Pod], str]:
        """Neighbours of which each alone would be enough, the cheapest first."""
        gates = self.look.gates
        others = [pod for pod in self.on_node.get(one.node.metadata.name, ()) if pod is not one.pod]
        wanted = pod_requests(one.pod, gates=gates)
        held = {pod.metadata.uid: pod_requests(pod, gates=gates, use_status=True) for pod in others}
        allocatable = one.node.status.allocatable

        def enough(mover: Pod) -> bool:
            staying = [amounts for uid, amounts in held.items() if uid != mover.metadata.uid]
            return not fit.short_by(wanted, allocatable, staying)

        able = [pod for pod in others if enough(pod)]
        if not able:
            return [], "no neighbour that moved would be enough"
        movable = [pod for pod in able if (pod.spec.priority or 0) <= (one.pod.spec.priority or 0)]
        movable = [pod for pod in movable if not self._why_stays(pod)]
        if not movable:
            return [], f"{_name(able[0])} cannot move: {self._why_stays(able[0]) or 'its priority is higher'}"
        return sorted(movable, key=self._cost), ""

    def _move(self, one: Waiting, movers: Sequence[Pod], because: str) -> PodOutlook:
        """The first that has a place, else a node for the first."""
        own = movers[0] is one.pod
        problem = (self._why_stays(one.pod) or self._why_smaller(one.pod)) if own else ""
        if problem:
            text = f"{because}; and {problem}" if because else problem
            return _outlook(one, Act.NOTHING, because=text)
        for mover in movers:
            place = self._place(mover, one)
            if place in self.real_nodes and len(self.moves) < MOST_MOVES and self._is_first(mover):
                self.moves.append(MovePod(mover, one.pod, place))
                self.busy.add(one.node.metadata.name)
                return _outlook(one, Act.MOVE, who=mover, to=place)
            if place:
                why = "the node is not ready yet" if place not in self.real_nodes else "others move first"
                return _outlook(one, Act.MOVE, who=mover, to=place, because=why)
        standing = self._successor(movers[0], one)
        self.pods.append(standing)
        self.real[standing.metadata.uid] = one.pod
        return _outlook(one, Act.NODE, who=movers[0], because=because)

    def _place(self, mover: Pod, one: Waiting) -> str:
        """Where it would go now, other than its own node; empty for nowhere. It has the place from then on."""
        newcomer = self.cluster.newcomer(self._successor(mover, one))
        ask, own = self.cluster.asker(newcomer), self.indexes.get(one.node.metadata.name)
        ready = [index for index, view in enumerate(self.cluster.views) if view.name in self.real_nodes]
        coming = [index for index, view in enumerate(self.cluster.views) if view.name not in self.real_nodes]
        index = next((index for index in (*ready, *coming) if index != own and ask(index) is None), None)
        if index is None:
            return ""
        self.cluster.put(newcomer, index)
        return self.cluster.views[index].name

    def _is_first(self, mover: Pod) -> bool:
        owner = controller_of(mover.metadata)
        key = owner.uid if owner is not None else mover.metadata.uid
        if key in self.owners:
            return False
        self.owners.add(key)
        return True

    def _why_stays(self, pod: Pod) -> str:
        """Why it may not be evicted, by the drain rules and by its budgets; empty when it may."""
        if is_daemon_set_pod(pod):
            return f"{_name(pod)} is a DaemonSet's"
        if ResizeState.of(pod).stage is ResizeStage.IN_PROGRESS:
            return f"a resize of {_name(pod)} is in progress"
        verdict = drainability(pod, self.context)
        if verdict.outcome in (Outcome.BLOCKED, Outcome.SKIPPED, Outcome.WAITS):
            return verdict.text or f"{_name(pod)} is not to be moved"
        beside = [budget for budget in self.context.budgets if budget.metadata.namespace == pod.metadata.namespace]
        if not check_budgets((pod,), beside).can_remove:
            return f"not enough pod disruption budget to move {_name(pod)}"
        return why_protected(pod, beside)

    def _why_smaller(self, pod: Pod) -> str:
        """Why moving the pod itself would not give it what it waits for."""
        template = self.look.templates.get((pod.metadata.namespace, pod.metadata.name))
        made = self._made(pod)
        if template is None and not made:
            return f"nobody makes a successor of {_name(pod)} with the size that it waits for"
        for container in pod.spec.containers:
            for name, amount in container.resources.requests.items():
                if made.get(container.name, {}).get(name, ZERO) < amount:
                    has = made.get(container.name, {}).get(name, ZERO)
                    return f"its successor would request {name} {has}, not {amount}, in container {container.name}"
        return ""

    def _made(self, pod: Pod) -> Mapping[str, ResourceList]:
        """What the pod's successor will request by container: what a VPA recommends, else what the template says."""
        template = self.look.templates.get((pod.metadata.namespace, pod.metadata.name))
        made = {container.name: container.resources.requests for container in template.containers} if template else {}
        recommended = self.look.recommended.get(pod.metadata.uid, {})
        return {name: {**made.get(name, {}), **recommended.get(name, {})} for name in made.keys() | recommended.keys()}

    def _successor(self, mover: Pod, one: Waiting) -> Pod:
        """As the mover will wait for a node: at what it has or asks for, and at what is recommended."""
        grown = with_sizes(mover, self._made(mover))
        meta = replace(mover.metadata, uid=f"{mover.metadata.uid}-moved")
        priority = one.pod.spec.priority if mover is not one.pod else mover.spec.priority
        return replace(
            grown, metadata=meta, spec=replace(grown.spec, node_name="", priority=priority), status=PodStatus()
        )

    def _cost(self, pod: Pod) -> tuple[int, bool, int, int, str]:
        """The lowest priority first, then one of several replicas, then the smallest."""
        owner = controller_of(pod.metadata)
        key = (owner.kind, pod.metadata.namespace, owner.name) if owner is not None else ("", "", "")
        alone = (self.context.controllers or {}).get(key) == 1
        asked = pod_requests(pod, gates=self.look.gates, use_status=True)
        cpu, memory = asked.get("cpu", ZERO).milli(), asked.get("memory", ZERO).value()
        return pod.spec.priority or 0, alone, cpu, memory, _name(pod)


def _outlook(
    one: Waiting, act: Act, *, who: Pod | None = None, to: str = "", due: datetime | None = None, because: str = ""
) -> PodOutlook:
    return PodOutlook(
        namespace=one.pod.metadata.namespace,
        pod=one.pod.metadata.name,
        act=act,
        resize=True,
        who=_name(who) if who is not None else "",
        to=to,
        due=format_time(due) if due is not None else "",
        because=because,
    )


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
