"""Waiting resizes as demand: for each, which of three acts comes next (docs/cluster-autoscaler.md).

    a neighbour shrinks     by the plan of `decide.node.room`, where it needs no eviction: now, or by whoever makes room
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
from podfit.decide.capacity.look import Look, Moment, MovePod, ShrinkPods, State
from podfit.decide.capacity.outlook import MOST_TOLD, Act, PodOutlook
from podfit.decide.capacity.readiness import is_going, is_ready
from podfit.decide.capacity.settings import AutoscalerSettings
from podfit.decide.node.room.annotation import shrink_text
from podfit.decide.node.room.minimum import BadMinimum, offer_version, offers
from podfit.decide.node.room.plan import NothingNeeded, RoomPlan, keeps_node, plan
from podfit.decide.pod.requests import pod_requests
from podfit.decide.pod.resize_state import ResizeStage, ResizeState
from podfit.decide.resize import verdict as verdicts
from podfit.decide.workload.disruption import why_protected

SHRINK_SECONDS = 120.0
"""How long shrinking neighbours are waited for."""
MOST_MOVES = 10
"""Resizes for which neighbours shrink, and for which pods move, in one look; one on a node, one of a workload moves."""


class Waiting(msgspec.Struct, frozen=True):
    """A resize that waits, since when, and whether its node could ever grant it."""

    pod: Pod
    node: Node
    since: datetime
    infeasible: bool


class ResizeDemand(msgspec.Struct, frozen=True):
    """`shrinks` and `moves` are done now. `pods` stand for those that would move if there were a node; by their UIDs
    `real` has the pods that wait. `outlooks` tells of all of them."""

    shrinks: tuple[ShrinkPods, ...] = ()
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
    state: State,
) -> ResizeDemand:
    """`cluster` is changed: who has a place there gets it."""
    return _Turns(look, moment, settings, cluster, context, state).all()


class _Turns:
    """One waiting resize after the other, each counting on what was given to those before."""

    def __init__(
        self,
        look: Look,
        moment: Moment,
        settings: AutoscalerSettings,
        cluster: HypotheticalCluster,
        context: DrainContext,
        state: State,
    ) -> None:
        self.look, self.moment, self.settings, self.context = look, moment, settings, context
        self.cluster, self.state = cluster, state
        self.on_node = by_node(look.pods)
        self.nodes_of = {(pod.metadata.namespace, pod.metadata.name): pod.spec.node_name for pod in look.pods}
        self.indexes = {view.name: index for index, view in enumerate(cluster.views)}
        self.real_nodes = {node.metadata.name for node in look.nodes if is_ready(node)}
        self.shrinks: list[ShrinkPods] = []
        self.moves: list[MovePod] = []
        self.pods: list[Pod] = []
        self.real: dict[str, Pod] = {}
        self.busy: set[str] = {
            pod.spec.node_name
            for pod in look.pods
            if pod.metadata.uid in state.moves or (pod.metadata.deletion_timestamp is not None and pod.spec.node_name)
        }
        """Nodes that a pod is leaving, or on which one shrinks: what waits there is tried again then."""
        self.left: dict[str, str] = {}
        """By UID of a pod that waits, why no neighbour shrinks that could."""
        self.owners = {
            owner.uid
            for pod in look.pods
            if not pod.spec.node_name and (owner := controller_of(pod.metadata)) is not None
        }
        """Workloads of which a pod has no node now, so that no other of theirs moves."""

    def all(self) -> ResizeDemand:
        waiting = waiting_resizes(self.look)[:MOST_TOLD]
        outlooks = [self._turn(one) for one in waiting if self._begins(one) <= self.moment.now]
        young = [one for one in waiting if self._begins(one) > self.moment.now]
        if young:
            later = self._later(young)
            outlooks += [replace(later.foretold(one), begins=format_time(self._begins(one))) for one in young]
        told = (replace(one, at=self._group(one)) for one in outlooks)
        return ResizeDemand(tuple(self.shrinks), tuple(self.moves), tuple(self.pods), self.real, tuple(told))

    def _group(self, told: PodOutlook) -> str:
        return self.look.members.get(self.nodes_of.get((told.namespace, told.pod), ""), "")

    def _begins(self, one: Waiting) -> datetime:
        return one.since + timedelta(seconds=self.settings.scale_up.resize_delay)

    def _later(self, young: Sequence[Waiting]) -> "_Turns":
        """The turns when these count, if nothing else changes; what comes of it is told and not done."""
        at = max(map(self._begins, young))
        moment = Moment(at, self.moment.at + (at - self.moment.now).total_seconds())
        later = _Turns(self.look, moment, self.settings, self.cluster.copy(), self.context, self.state)
        later.busy, later.owners = set(self.busy), set(self.owners)
        return later

    def foretold(self, one: Waiting) -> PodOutlook:
        return self._turn(one)

    def _turn(self, one: Waiting) -> PodOutlook:
        if one.node.metadata.name in self.busy:
            return _outlook(one, Act.WAIT, because="a pod leaves its node or shrinks there; then the node looks again")
        movers, because = [one.pod], ""
        if not one.infeasible:
            shrinking = self._shrink(one)
            if shrinking is not None:
                return shrinking
            movers, because = self._cheapest(one)
            because = "; ".join(filter(None, (self.left.get(one.pod.metadata.uid, ""), because)))
            if not movers:
                movers = [one.pod]
        return self._move(one, movers, because)

    def _shrink(self, one: Waiting) -> PodOutlook | None:
        """None where no neighbour is going to shrink."""
        others = [pod for pod in self.on_node.get(one.node.metadata.name, ()) if pod is not one.pod]
        willing = [pod for pod in others if self.state.unwilling.get(pod.metadata.uid) != offer_version(pod)]
        offered = offers(willing)
        targets = {uid: offer for uid, offer in offered.items() if not isinstance(offer, BadMinimum)}
        answer = plan(one.pod, others, one.node.status.allocatable, targets, gates=self.look.gates)
        if isinstance(answer, NothingNeeded):
            return _outlook(one, Act.WAIT, because="room for it is on its way on its node")
        if not isinstance(answer, RoomPlan) or not answer.shrinks:
            return None
        if self.look.makes_room:
            return self._shrunk_by_others(one, answer)
        if not self.settings.scale_up.shrinks:
            self.left[one.pod.metadata.uid] = f"{_givers(answer)} could shrink for it, which is switched off"
            return None
        if len(self.shrinks) >= MOST_MOVES:
            return _outlook(one, Act.SHRINK, plan=answer, because="others shrink first")
        self.shrinks.append(ShrinkPods(one.pod, answer))
        self.busy.add(one.node.metadata.name)
        return _outlook(one, Act.SHRINK, plan=answer)

    def _shrunk_by_others(self, one: Waiting, answer: RoomPlan) -> PodOutlook | None:
        """Whoever makes room (docs/room.md) is waited for, for a while."""
        until = one.since + timedelta(seconds=self.settings.scale_up.resize_delay + SHRINK_SECONDS)
        return _outlook(one, Act.SHRINK, plan=answer, due=until) if self.moment.now < until else None

    def _cheapest(self, one: Waiting) -> tuple[list[Pod], str]:
        """Neighbours of which each alone would be enough, the cheapest first."""
        gates = self.look.gates
        others = [pod for pod in self.on_node.get(one.node.metadata.name, ()) if pod is not one.pod]
        wanted = pod_requests(one.pod, gates=gates)
        held = {pod.metadata.uid: pod_requests(pod, gates=gates, use_status=True) for pod in others}
        allocatable = one.node.status.allocatable

        def enough(mover: Pod) -> bool:
            staying = [amounts for uid, amounts in held.items() if uid != mover.metadata.uid]
            return not verdicts.short_by(wanted, allocatable, staying)

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
        """The pod as the mover will wait for a node: at what it has or asks for, and at what is recommended."""
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
    one: Waiting,
    act: Act,
    *,
    who: Pod | None = None,
    plan: RoomPlan | None = None,
    to: str = "",
    due: datetime | None = None,
    because: str = "",
) -> PodOutlook:
    return PodOutlook(
        namespace=one.pod.metadata.namespace,
        pod=one.pod.metadata.name,
        act=act,
        resize=True,
        who=_name(who) if who is not None else _givers(plan) if plan is not None else "",
        what=", ".join(shrink_text(change, _name(one.pod)) for change in plan.shrinks) if plan is not None else "",
        to=to,
        due=format_time(due) if due is not None else "",
        because=because,
    )


def _givers(plan: RoomPlan) -> str:
    return ", ".join(_name(change.pod) for change in plan.shrinks)


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
