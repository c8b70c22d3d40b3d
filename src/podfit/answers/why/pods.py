"""Explains a pod: desired, allocated and actual sizes, and what keeps a resize from being done.

Everything is derived from the same snapshot and the same node model as a plan, so the reason that is told is the one
the kubelet acts on, not a reading of its message.
"""

from datetime import datetime

import msgspec

from podfit.answers.facts.node_scaling import next_for
from podfit.answers.facts.pod_state import (
    DEFERRED,
    ENDED,
    FAILING,
    IN_PROGRESS,
    INFEASIBLE,
    SETTLED,
    UNSCHEDULED,
    UNSEEN,
    Size,
    bursts_of,
    gift_of,
    sizes_of,
    state_of,
    troubles,
)
from podfit.answers.facts.scheduling import blocked, scheduled
from podfit.answers.facts.snapshot import Snapshot
from podfit.answers.node.live_node import LiveNode, NodePod, live_node, short
from podfit.answers.node.making_room import RoomMade, maker_of
from podfit.answers.node.node_allocation import Holder, holders_of, seen_fuller
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod
from podfit.core.features import FeatureGates
from podfit.core.times import parse_time
from podfit.decide.pod.spare import foretold
from podfit.decide.resize.verdict import Deferred, Fits, Infeasible
from podfit.decide.workload.disruption import why_protected

HOLDERS = 5
_NEXT = {
    INFEASIBLE: "only when the spec changes or the kubelet restarts: resize to a size that the node can grant, go back "
    "to what it has (podfit resize --undo), or recreate the pod on another node",
    IN_PROGRESS: "the node is changing the containers now",
    FAILING: "the node tries again after about 10 seconds",
    UNSEEN: "the kubelet has not seen this generation yet; it does so within seconds while the node is Ready",
    DEFERRED: "whenever a pod of the node leaves, ends or shrinks, and every 3 minutes",
}


class PodWhy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`since` and `waited` (seconds) of the condition that says so; `position` counts from 1 in a queue of `queued`.

    `holders` have what is short, largest first; `frees` are those of them with a lower priority.
    `ends` are pods that the node ends for this one, because it is critical. `troubles` are containers that do not run
    as they should, whatever their sizes. `gave` says for whom the pod was shrunk, `room` what is done to make room
    for it, and what is in the way, `nodes` what the cluster autoscaler does next for it, `burst` what its node may
    move by itself, and has moved.
    """

    namespace: str = ""
    pod: str
    node: str = ""
    state: str
    since: str = ""
    waited: int = 0
    generation: int = 0
    observed: int = 0
    message: str = ""
    sizes: tuple[Size, ...] = ()
    short_by: str = ""
    position: int = 0
    queued: int = 0
    ahead: tuple[str, ...] = ()
    holders: tuple[Holder, ...] = ()
    frees: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    next: str = ""
    troubles: tuple[str, ...] = ()
    gave: str = ""
    burst: tuple[str, ...] = ()
    room: tuple[str, ...] = ()
    nodes: str = ""
    notes: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether nothing waits or fails."""
        return self.state in (SETTLED, ENDED) and not self.troubles


def why_pod(pod: Pod, snapshot: Snapshot, now: datetime) -> PodWhy:
    node = snapshot.nodes.get(pod.spec.node_name)
    sizes = tuple(sizes_of(pod, snapshot.age.gates))
    notes = notes_of(snapshot)
    bad = tuple(troubles(pod))
    if has_ended(pod):
        return PodWhy(
            namespace=pod.metadata.namespace,
            pod=pod.metadata.name,
            node=pod.spec.node_name,
            state=ENDED,
            sizes=sizes,
            message=f"the pod has ended ({pod.status.phase}): a resize of it is stored and never carried out",
            notes=notes,
        )
    if not pod.spec.node_name:
        return PodWhy(
            namespace=pod.metadata.namespace,
            pod=pod.metadata.name,
            state=UNSCHEDULED,
            sizes=sizes,
            message=_not_scheduled(pod, snapshot),
            nodes=_nodes_for(pod, snapshot),
            troubles=bad,
            notes=notes,
        )
    state, condition = state_of(pod, sizes, snapshot.age)
    since = (condition.last_transition_time or "") if condition else ""
    about = PodWhy(
        namespace=pod.metadata.namespace,
        pod=pod.metadata.name,
        node=pod.spec.node_name,
        state=state,
        generation=pod.metadata.generation,
        observed=condition.observed_generation if condition else pod.status.observed_generation,
        since=since,
        waited=int((now - parse_time(since)).total_seconds()) if since else 0,
        message=condition.message if condition else "",
        sizes=sizes,
        burst=tuple(bursts_of(pod)),
        troubles=bad,
        notes=notes,
    )
    nodes = _nodes_for(pod, snapshot) if state in (DEFERRED, INFEASIBLE) else ""
    about = msgspec.structs.replace(about, next=_NEXT.get(state, ""), gave=gift_of(pod), nodes=nodes)
    if node is None or state not in (DEFERRED, INFEASIBLE) or pod.spec.node_name in snapshot.unknown_nodes:
        return about
    model = live_node(node.metadata.name, snapshot)
    if pod.metadata.uid not in model.members:
        return about
    told = _explained(about, model, pod, snapshot.age.gates)
    return msgspec.structs.replace(told, room=_room_for(pod, node.metadata.name, snapshot)) if told.short_by else told


def _nodes_for(pod: Pod, snapshot: Snapshot) -> str:
    """What the cluster autoscaler does next; empty where there is none."""
    told = snapshot.scaling.of(pod)
    if told is not None:
        return next_for(told)
    problem = snapshot.scaling.problem
    return f"what the cluster autoscaler does next is not known: {problem}" if problem else ""


def _room_for(pod: Pod, node: str, snapshot: Snapshot) -> tuple[str, ...]:
    """What is being done to make room for it, or why nothing is."""
    if not snapshot.room.mode:
        return ()
    maker = maker_of(node, live_node(node, snapshot), snapshot)
    maker.help(pod)
    made = maker.made.get(pod.metadata.uid, RoomMade())
    gifts = tuple(f"{gift.pod} shrinks {gift.what}" for gift in made.gifts)
    return (*gifts, *(_eviction(name, snapshot) for name in made.victims), *maker.why_not(pod))


def _eviction(name: str, snapshot: Snapshot) -> str:
    """A line on a pod that would be evicted to make room, and on the budget that does not let it go."""
    victim = next(pod for pod in snapshot.neighbours if f"{pod.metadata.namespace}/{pod.metadata.name}" == name)
    if snapshot.budgets.problem:
        return f"{name} is evicted, unless a disruption budget protects it: {snapshot.budgets.problem}"
    text = why_protected(victim, snapshot.budgets.of(victim.metadata.namespace))
    if text:
        return f"{name} cannot be evicted: {text}"
    return f"{name} is evicted"


def _not_scheduled(pod: Pod, snapshot: Snapshot) -> str:
    """What the scheduler has said; of a pod that it has not looked at yet, what it will say. And what a node will make
    of it then, where that is known."""
    return "; ".join(filter(None, (_unscheduled(pod, snapshot), foretold(pod))))


def _unscheduled(pod: Pod, snapshot: Snapshot) -> str:
    if pod.spec.scheduling_gates:
        return blocked(pod)
    told = next((condition.message for condition in pod.status.conditions if condition.type == "PodScheduled"), "")
    if told or snapshot.cluster is None:
        return told
    place = scheduled(pod, snapshot.cluster, snapshot.age.gates)
    return place.why or f"the scheduler has not looked at it yet; it would choose {place.node}"


def _explained(about: PodWhy, model: LiveNode, pod: Pod, gates: FeatureGates) -> PodWhy:
    verdict = model.verdict(pod.metadata.uid)
    if isinstance(verdict, Infeasible):
        return msgspec.structs.replace(about, message=verdict.message)
    if isinstance(verdict, Fits) and about.state == DEFERRED:
        return msgspec.structs.replace(about, next=f"there is room now; it is tried {_NEXT[DEFERRED]}")
    if not isinstance(verdict, Deferred) or about.state == INFEASIBLE:
        return about
    queue = model.queue()
    index = next((at for at, waiting in enumerate(queue) if waiting.desired.metadata.uid == pod.metadata.uid), 0)
    holders = tuple(holders_of(next(iter(verdict.short_by), ""), _others(model, pod)))
    frees = tuple(holder.pod for holder in holders if holder.priority < (pod.spec.priority or 0))
    return msgspec.structs.replace(
        about,
        message=verdict.message,
        short_by=short(verdict),
        position=index + 1,
        queued=len(queue),
        ahead=tuple(waiting.name for waiting in queue[:index]),
        holders=holders[:HOLDERS],
        frees=frees[:HOLDERS],
        ends=model.ends(pod.metadata.uid),
        notes=(*about.notes, *seen_fuller(list(model.members.values()), gates)),
    )


def why_waiting(snapshot: Snapshot, now: datetime) -> tuple[PodWhy, ...]:
    """Every pod whose resize is not done, by node and there in the order of its queue, and every pod that has another
    trouble: a container that does not run as it should, no node that takes it. What is only new has none.
    """
    found = []
    for pod in snapshot.pods:
        state, _ = state_of(pod, tuple(sizes_of(pod, snapshot.age.gates)), snapshot.age)
        waits = state != SETTLED if pod.spec.node_name else _unschedulable(pod)
        if waits or (not has_ended(pod) and any(troubles(pod))):
            found.append(why_pod(pod, snapshot, now))
    return tuple(sorted(found, key=_turn))


def _unschedulable(pod: Pod) -> bool:
    """Whether the scheduler has said so."""
    return any(
        condition.type == "PodScheduled" and condition.status == "False" and condition.reason == "Unschedulable"
        for condition in pod.status.conditions
    )


def _turn(about: PodWhy) -> tuple[str, bool, int, str, str]:
    """Those that are in the queue of the node come first, in its order."""
    return about.node, not about.position, about.position, about.namespace, about.pod


def _others(model: LiveNode, pod: Pod) -> list[NodePod]:
    return [member for uid, member in model.members.items() if uid != pod.metadata.uid]


def notes_of(snapshot: Snapshot) -> tuple[str, ...]:
    caveat = (snapshot.age.caveat,) if snapshot.age.caveat else ()
    return (*caveat, *(f"not read: {line}" for line in snapshot.unread))
