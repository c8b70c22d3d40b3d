"""Why is it as it is? Desired, allocated and actual of a pod, and what keeps a resize from being done.

Everything is derived from the same snapshot and the same node model as a plan, so the reason that is told is the one
the kubelet acts on, not a reading of its message.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from podfit.answers.ages import Age
from podfit.answers.live_node import LiveNode, NodePod, live_node, short
from podfit.answers.making_room import Made, maker_of
from podfit.answers.room import Held, Holder, counted_for, held_by, holders_of, promised_to, seen_fuller, texts_of
from podfit.answers.scheduling import ClusterState, kept_off, scheduled
from podfit.answers.sizes import Size, sizes_of
from podfit.answers.snapshot import ENDED as OVER
from podfit.answers.snapshot import Snapshot
from podfit.answers.troubles import troubles
from podfit.api.core.v1.pods.types import Pod, PodCondition
from podfit.core.times import parse_time
from podfit.decide.node.room.gave import gave
from podfit.decide.node.room.plan import allocated_form
from podfit.decide.resize.verdict import Deferred, Fits, Infeasible

SETTLED, DEFERRED, INFEASIBLE, IN_PROGRESS, FAILING, UNSEEN, UNSCHEDULED, ENDED = (
    "settled",
    "deferred",
    "infeasible",
    "in progress",
    "failing",
    "not seen yet",
    "not scheduled",
    "ended",
)
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
    for it, and what is in the way.
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
    room: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether nothing waits or fails."""
        return self.state in (SETTLED, ENDED) and not self.troubles


class KeptOff(msgspec.Struct, frozen=True):
    """A pod that the scheduler does not put on the node, and its reason."""

    pod: str
    because: str


class NodeWhy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Amounts by resource: what can be given, what is promised, what the scheduler counts.

    `holders` and `memory_holders` have most first, `members` are all pods. `waiting` are resizes that are not done, in
    the order in which they are tried; `nominated` are pods that the scheduler keeps room for here, `shut_out` those
    that it keeps away for what only waits, `kept_off` those that it keeps away for another reason.
    """

    node: str
    allocatable: dict[str, str]
    promised: dict[str, str]
    counted: dict[str, str]
    holders: tuple[Holder, ...] = ()
    memory_holders: tuple[Holder, ...] = ()
    members: tuple[Held, ...] = ()
    waiting: tuple[PodWhy, ...] = ()
    nominated: tuple[str, ...] = ()
    shut_out: tuple[str, ...] = ()
    kept_off: tuple[KeptOff, ...] = ()
    notes: tuple[str, ...] = ()


def why_pod(pod: Pod, snapshot: Snapshot, now: datetime) -> PodWhy:
    node = snapshot.nodes.get(pod.spec.node_name)
    sizes = tuple(sizes_of(pod, snapshot.age.gates))
    notes = _notes(snapshot)
    bad = tuple(troubles(pod))
    if pod.status.phase in OVER:
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
        troubles=bad,
        notes=notes,
    )
    about = msgspec.structs.replace(about, next=_NEXT.get(state, ""), gave=gift_of(pod))
    if node is None or state not in (DEFERRED, INFEASIBLE):
        return about
    model = live_node(node.metadata.name, snapshot)
    if pod.metadata.uid not in model.members:
        return about
    told = _explained(about, model, pod)
    return msgspec.structs.replace(told, room=_room_for(pod, node.metadata.name, snapshot)) if told.short_by else told


def _room_for(pod: Pod, node: str, snapshot: Snapshot) -> tuple[str, ...]:
    """What is being done to make room for it, or why nothing is."""
    if not snapshot.room.mode:
        return ()
    maker = maker_of(node, live_node(node, snapshot), snapshot)
    maker.help(pod)
    made = maker.made.get(pod.metadata.uid, Made())
    gifts = tuple(f"{each.pod} shrinks {each.what}" for each in made.gifts)
    return (*gifts, *(_eviction(name, snapshot) for name in made.victims), *maker.why_not(pod))


def _eviction(name: str, snapshot: Snapshot) -> str:
    """Of a pod that would be evicted to make room, and of the budget that does not let it go."""
    victim = next(pod for pod in snapshot.neighbours if f"{pod.metadata.namespace}/{pod.metadata.name}" == name)
    for budget in snapshot.budgets:
        if budget.metadata.namespace == victim.metadata.namespace and budget.protects(victim.metadata.labels):
            return f"{name} cannot be evicted: its disruption budget {budget.metadata.name} allows no disruption now"
    return f"{name} is evicted"


def _not_scheduled(pod: Pod, snapshot: Snapshot) -> str:
    """What the scheduler has said; of a pod that it has not looked at yet, what it will say."""
    told = next((each.message for each in pod.status.conditions if each.type == "PodScheduled"), "")
    if told or snapshot.cluster is None:
        return told
    place = scheduled(pod, snapshot.cluster, snapshot.age.gates)
    return place.why or f"the scheduler has not looked at it yet; it would choose {place.node}"


def _explained(about: PodWhy, model: LiveNode, pod: Pod) -> PodWhy:
    verdict = model.verdict(pod.metadata.uid)
    if isinstance(verdict, Infeasible):
        return msgspec.structs.replace(about, message=verdict.message)
    if isinstance(verdict, Fits) and about.state == DEFERRED:
        return msgspec.structs.replace(about, next=f"there is room now; it is tried {_NEXT[DEFERRED]}")
    if not isinstance(verdict, Deferred) or about.state == INFEASIBLE:
        return about
    queue = model.queue()
    index = next((at for at, each in enumerate(queue) if each.desired.metadata.uid == pod.metadata.uid), 0)
    holders = tuple(holders_of(next(iter(verdict.short_by), ""), _others(model, pod)))
    frees = tuple(each.pod for each in holders if each.priority < (pod.spec.priority or 0))
    return msgspec.structs.replace(
        about,
        message=verdict.message,
        short_by=short(verdict),
        position=index + 1,
        queued=len(queue),
        ahead=tuple(each.name for each in queue[:index]),
        holders=holders[:HOLDERS],
        frees=frees[:HOLDERS],
        ends=model.ends(pod.metadata.uid),
        notes=(*about.notes, *seen_fuller(list(model.members.values()))),
    )


def why_node(name: str, snapshot: Snapshot, now: datetime) -> NodeWhy:
    """Who holds it, what waits on it, and why the scheduler sees it fuller than it is. KeyError: it was not read."""
    model = live_node(name, snapshot)
    members = list(model.members.values())
    queue = [each.desired for each in model.queue()]
    others = [each.desired for each in members if not any(each.desired is one for one in queue)]
    about = [why_pod(pod, snapshot, now) for pod in (*queue, *others)]
    shut, off = _kept_away(name, snapshot, members)
    nominated = [pod for pod in snapshot.unscheduled if pod.status.nominated_node_name == name]
    return NodeWhy(
        node=name,
        allocatable=texts_of(model.view.allocatable),
        promised=texts_of(promised_to(members)),
        counted=texts_of(counted_for(members)),
        holders=tuple(holders_of("cpu", members)),
        memory_holders=tuple(holders_of("memory", members)),
        members=tuple(map(held_by, members)),
        waiting=tuple(each for each in about if each.state != SETTLED),
        nominated=tuple(f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in nominated),
        shut_out=shut,
        kept_off=off,
        notes=(*_notes(snapshot), *seen_fuller(list(model.members.values()))),
    )


def _kept_away(
    name: str, snapshot: Snapshot, members: Sequence[NodePod]
) -> tuple[tuple[str, ...], tuple[KeptOff, ...]]:
    """Pods that wait: those the node would take if waiting ones did not count, and those it would not (R-078)."""
    shut, off = [], []
    held = {each.desired.metadata.uid: each.counts.requests for each in members}
    cluster, gates = snapshot.cluster or ClusterState(), snapshot.age.gates
    for pod in snapshot.unscheduled:
        refusal = kept_off(pod, name, cluster, gates)
        if refusal is None:
            continue
        without = kept_off(pod, name, cluster, gates, held=held)
        full_name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        if without is None:
            shut.append(full_name)
        else:
            off.append(KeptOff(full_name, ", ".join(without.reasons)))
    return tuple(shut), tuple(off)


def why_waiting(snapshot: Snapshot, now: datetime) -> tuple[PodWhy, ...]:
    """Every pod whose resize is not done, by node and there in the order of its queue; new pods are no resizes."""
    found = []
    for pod in snapshot.pods:
        state, _ = state_of(pod, tuple(sizes_of(pod, snapshot.age.gates)), snapshot.age)
        if pod.spec.node_name and state != SETTLED:
            found.append(why_pod(pod, snapshot, now))
    return tuple(sorted(found, key=_turn))


def _turn(about: PodWhy) -> tuple[str, bool, int, str, str]:
    """Those that are in the queue of the node come first, in its order."""
    return about.node, not about.position, about.position, about.namespace, about.pod


def _others(model: LiveNode, pod: Pod) -> list[NodePod]:
    return [each for uid, each in model.members.items() if uid != pod.metadata.uid]


def _notes(snapshot: Snapshot) -> tuple[str, ...]:
    caveat = (snapshot.age.caveat,) if snapshot.age.caveat else ()
    return (*caveat, *(f"not read: {line}" for line in snapshot.unread))


def state_of(pod: Pod, sizes: Sequence[Size], age: Age) -> tuple[str, PodCondition | None]:
    """Pending speaks before in progress, as both may stand; before 1.33 `status.resize` is all there is."""
    if pod.status.phase in OVER:
        return ENDED, None
    if not pod.spec.node_name:
        return UNSCHEDULED, None
    conditions = {each.type: each for each in pod.status.conditions}
    pending, progress = conditions.get("PodResizePending"), conditions.get("PodResizeInProgress")
    if not age.has_conditions and pod.status.resize:
        told = {"Deferred": DEFERRED, "Infeasible": INFEASIBLE, "InProgress": IN_PROGRESS, "Proposed": UNSEEN}
        return told.get(pod.status.resize, DEFERRED), None
    if pending is not None:
        return INFEASIBLE if pending.reason == "Infeasible" else DEFERRED, pending
    if progress is not None:
        return FAILING if progress.reason == "Error" else IN_PROGRESS, progress
    behind = age.has_conditions and pod.status.observed_generation < pod.metadata.generation
    return UNSEEN if behind and not all(each.agrees for each in sizes) else SETTLED, None


def gift_of(pod: Pod) -> str:
    """For whom the pod was shrunk, and by how much; empty when it was not, or has been resized since."""
    found = gave(pod)
    return f"shrunk to make room for {found.to}: {found.text}" if found else ""


def granted(pod: Pod, age: Age) -> Pod:
    """The pod at the size that its node has granted and can carry out: not at one that waits, was refused or fails."""
    state, _ = state_of(pod, tuple(sizes_of(pod, age.gates)), age)
    return pod if state in (SETTLED, IN_PROGRESS) else allocated_form(pod, age.gates)
