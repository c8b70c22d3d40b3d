"""What would this resize do? For every pod: what the API says, what the node decides, and what happens to containers.

The pods are asked for one after the other, as `podfit resize` does, so each verdict counts for the next: room, quota
and the queue of what waits on the node already. What asks for no more goes first, then in the order of a node's queue:
room that one gives up is there for the next.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from podfit.answers import why
from podfit.answers.checks import checks_of
from podfit.answers.effects import Change, Effects, Resizing, Restart, changes, resizing
from podfit.answers.live_node import LiveNode, live_node, short
from podfit.answers.making_room import Gift, maker_of
from podfit.answers.plan_notes import notes
from podfit.answers.scheduling import scheduled
from podfit.answers.sizes import sizes_of
from podfit.answers.snapshot import ENDED as OVER
from podfit.answers.snapshot import Snapshot
from podfit.answers.template import TemplatePlan
from podfit.answers.why import FAILING, SETTLED, UNSCHEDULED, state_of
from podfit.answers.wish import BEFORE, NothingRecorded, Wish, apply, with_template
from podfit.api.core.v1.limits.types import LimitRange, ResourceQuota
from podfit.api.core.v1.pods.defaults import default_pod
from podfit.api.core.v1.pods.types import Pod
from podfit.core.errors import ApiError
from podfit.core.features import FeatureGates
from podfit.core.quantity import Quantity
from podfit.decide.limits.quota_credit import credit
from podfit.decide.node.room.plan import allocated_form
from podfit.decide.resize.checks import Resize, judge
from podfit.decide.resize.queue_order import queue_key
from podfit.decide.resize.verdict import Deferred, Infeasible

T = TypeVar("T", LimitRange, ResourceQuota)
FITS, DEFERRED, INFEASIBLE, REFUSED, UNCHANGED = "fits", "deferred", "infeasible", "refused", "unchanged"
IN_PROGRESS, ERROR, CRASH = "in progress", "error", "crash"
UNSCHEDULABLE, ENDED = "unschedulable", "ended"


class PodPlan(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`text` is the reason in the API's or the node's own words, `code` the API's status for a refusal.

    `repeated`: the spec asks for this already, so there is nothing to send and the verdict is how it stands.
    `after` are pods that are tried before this one while it waits, `blocked_by` who holds what is short, largest first.
    `ends` are pods that are ended to make room for it, as a node does for critical pods.
    `changes` are the amounts that become others, `sizes` have request and limit beside each other.
    `gifts` are what other pods give first, where the cluster makes room.
    `shrink` says what is known of memory usage when a memory limit is lowered; empty otherwise.
    """

    pod: str
    node: str
    verdict: str
    namespace: str = ""
    text: str = ""
    code: int = 0
    changes: tuple[Change, ...] = ()
    sizes: tuple[Resizing, ...] = ()
    restarts: tuple[Restart, ...] = ()
    short_by: str = ""
    blocked_by: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    qos: str = ""
    shrink: str = ""
    repeated: bool = False
    gifts: tuple[Gift, ...] = ()

    @property
    def gives(self) -> bool:
        """Whether it gives up room that the next pod may take."""
        pairs = [(each.before, each.after) for each in self.changes if each.side == "requests" and each.before]
        return any(Quantity.parse(after or "0") < Quantity.parse(before) for before, after in pairs)

    @property
    def good(self) -> bool:
        """Whether the resize would complete now, or is about to."""
        return self.verdict in (FITS, UNCHANGED, IN_PROGRESS)


class Plan(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`order` are pods in the order in which their resizes would be granted; `notes` is what else there is to know;
    `template` what becomes of the workload's own sizes, where that was asked.
    """

    server: str
    namespace: str
    pods: tuple[PodPlan, ...]
    order: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    template: TemplatePlan | None = None

    @property
    def good(self) -> bool:
        template = self.template is None or self.template.good
        return template and bool(self.pods) and all(each.good for each in self.pods)


class Request(msgspec.Struct, frozen=True):
    """A resize to plan: a pod of the snapshot, and its new size."""

    pod: Pod
    wish: Wish


def requests_of(snapshot: Snapshot, wish: Wish) -> tuple[Request, ...]:
    """The same wish for every pod that the snapshot is about."""
    wish = with_template(wish, snapshot.template or snapshot.owner_template, snapshot.limit_ranges)
    return tuple(Request(pod, wish) for pod in snapshot.pods)


def plan(snapshot: Snapshot, wish: Wish, template: TemplatePlan | None = None) -> Plan:
    """Raises WishError when the wish fits none of a pod's containers."""
    return plan_requests(snapshot, requests_of(snapshot, wish), template)


def plan_requests(snapshot: Snapshot, requests: Sequence[Request], template: TemplatePlan | None = None) -> Plan:
    """`pods` are in the order in which they are asked for. Raises WishError as `plan`."""
    planner = _Planner(snapshot)
    asked = [planner.ask(wanted) for wanted in in_order(planner.wanted(requests), snapshot.age.gates)]
    pods = tuple(planner.told(each) for each in asked)
    return Plan(
        server=snapshot.age.version,
        namespace=snapshot.namespace,
        pods=pods,
        order=tuple(planner.granted),
        template=template,
        notes=tuple(
            notes(
                snapshot,
                [(each.pod, each.wish) for each in requests],
                planner.quotas,
                less_memory=any(each.shrink for each in pods),
                deferred=any(each.verdict == DEFERRED for each in pods),
                also_template=template is not None,
            )
        ),
    )


class Wanted(msgspec.Struct, frozen=True):
    """A pod and the pod that is wished for; None when there is no earlier size to go back to."""

    pod: Pod
    new: Pod | None


def in_order(wanted: Iterable[Wanted], gates: FeatureGates) -> list[Wanted]:
    """First what asks for no more than it has, then as a node's queue: priority, Guaranteed, the order given."""
    return sorted(wanted, key=lambda each: queue_key(each.new or each.pod, allocated_form(each.pod, gates), None))


class _Asked(msgspec.Struct, frozen=True):
    """A pod and what the API made of the wish; `outcome` is None when there is nothing to send, as the pod is `over` or
    has no earlier size.
    """

    pod: Pod
    wanted: Pod
    outcome: Resize | ApiError | None
    repeated: bool = False


class _Planner:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.quotas: tuple[ResourceQuota, ...] = snapshot.quotas
        self.granted: list[str] = []
        self._nodes = {name: live_node(name, snapshot) for name in snapshot.nodes}
        self._makers = {name: maker_of(name, model, snapshot) for name, model in self._nodes.items()}

    def wanted(self, requests: Sequence[Request]) -> Iterator[Wanted]:
        for request in requests:
            try:
                yield Wanted(request.pod, apply(request.wish, request.pod))
            except NothingRecorded:
                if not any(BEFORE in other.pod.metadata.annotations for other in requests):
                    raise
                yield Wanted(request.pod, None)

    def ask(self, request: Wanted) -> _Asked:
        """Send the wish to the API, and what it stores to the node."""
        snapshot, pod, wanted = self._snapshot, request.pod, request.new
        if wanted is None:
            return _Asked(pod, pod, None)
        if not snapshot.age.resizes:
            text = f"Kubernetes {snapshot.age.version} cannot resize running pods; 1.27 is the first that can"
            return _Asked(pod, wanted, ApiError(422, "Invalid", text))
        gates = snapshot.age.gates
        namespace = pod.metadata.namespace
        resize = Resize(
            new=wanted,
            old=default_pod(pod, gates),
            node=snapshot.nodes.get(pod.spec.node_name),
            gates=gates,
            limit_ranges=_of(namespace, snapshot.limit_ranges),
            quotas=_of(namespace, self.quotas),
        )
        outcome = judge(resize, checks_of(snapshot.age))
        if isinstance(outcome, ApiError):
            return _Asked(pod, wanted, outcome)
        if over(pod):
            return _Asked(pod, wanted, None)
        if outcome.new.spec in (pod.spec, default_pod(pod, gates).spec):  # older servers store fewer
            return _Asked(pod, wanted, outcome, repeated=True)
        charged = {quota.metadata.uid: quota for quota in outcome.quotas}
        self.quotas = tuple(charged.get(quota.metadata.uid, quota) for quota in self.quotas)
        if model := self._nodes.get(pod.spec.node_name):
            before = model.state.pods
            names = {uid: each.name.partition("/")[2] for uid, each in model.members.items()}
            completes = not Effects(outcome.new, pod, snapshot).refused()
            maker = self._makers[pod.spec.node_name]
            granted = (*model.ask(outcome.new, completes=completes), *maker.help(outcome.new))
            self.granted += [names[uid] for uid in granted]
            for uid, entry in model.state.pods.items():
                self.quotas = credit(entry.pod, before[uid].pod, self.quotas, gates)
        return _Asked(pod, wanted, outcome)

    def told(self, asked: _Asked) -> PodPlan:
        """How it stands with a pod when all have been asked for."""
        pod, outcome = asked.pod, asked.outcome
        has = allocated_form(pod, self._snapshot.age.gates)
        told = PodPlan(
            pod=pod.metadata.name,
            namespace=pod.metadata.namespace,
            node=pod.spec.node_name,
            verdict=FITS,
            qos=pod.status.qos_class,
        )
        if isinstance(outcome, ApiError):
            return replace(
                told,
                verdict=REFUSED,
                text=outcome.message,
                code=outcome.code,
                changes=tuple(changes(asked.wanted, has)),
                sizes=tuple(resizing(asked.wanted, has)),
            )
        if outcome is None:
            if text := over(pod):
                return replace(told, verdict=ENDED, text=text)
            return replace(told, verdict=UNCHANGED, text="podfit did not resize it: there is no size to go back to")
        told = replace(told, changes=tuple(changes(outcome.new, has)), sizes=tuple(resizing(outcome.new, has)))
        if asked.repeated:
            return self._outstanding(told, pod)
        effects = Effects(outcome.new, pod, self._snapshot)
        told = replace(told, restarts=effects.restarts(), shrink=effects.shrink())
        if not told.node:
            return self._risks(self._placed(told, outcome.new), effects)
        model = self._nodes.get(told.node)
        if model is None:
            return replace(told, verdict=REFUSED, text=f"node {told.node} could not be read")
        if not told.changes:
            told = replace(told, text="takes back the resize that is not granted yet")
        uid = pod.metadata.uid
        told = self._decided(told, model, uid)
        if told.verdict == DEFERRED:
            told = replace(told, text=model.message(uid))
        return self._risks(told, effects)

    def _decided(self, told: PodPlan, model: LiveNode, uid: str) -> PodPlan:
        """With what others give or give up for it."""
        told, made = decided(told, model, uid), self._makers[told.node].made.get(uid)
        if made is None:
            return told
        gives = ", ".join(f"{each.pod} shrinks {each.what}" for each in made.gifts)
        text = f"fits after {gives}" if gives else ""
        return replace(told, gifts=made.gifts, ends=(*told.ends, *made.victims), text=told.text or text)

    def _outstanding(self, told: PodPlan, pod: Pod) -> PodPlan:
        """The spec asks for this already: how it stands."""
        age = self._snapshot.age
        state, condition = state_of(pod, tuple(sizes_of(pod, age.gates)), age)
        if state == UNSCHEDULED:
            told = self._placed(told, pod)
            return replace(told, verdict=UNCHANGED, text="") if told.verdict == FITS else told
        if state == SETTLED:
            return replace(told, verdict=UNCHANGED)
        text = condition.message if condition else ""
        told = replace(told, repeated=True, text=text)
        if state == FAILING:
            return replace(told, verdict=ERROR)
        if state == why.INFEASIBLE:
            return replace(told, verdict=INFEASIBLE)
        if state == why.IN_PROGRESS:
            return replace(told, verdict=IN_PROGRESS, text=text or "the node is changing the containers now")
        model = self._nodes.get(told.node)
        known = decided(told, model, pod.metadata.uid) if model else told
        if known.verdict != FITS:
            return known
        if state == why.DEFERRED:
            return replace(told, verdict=DEFERRED, text=text or "the node tries it again every 3 minutes")
        return replace(told, verdict=IN_PROGRESS, text="the kubelet has not seen this generation yet")

    def _placed(self, told: PodPlan, new: Pod) -> PodPlan:
        """Of a pod without a node, as the scheduler decides."""
        cluster = self._snapshot.cluster
        if cluster is None:
            return replace(told, text="not on a node yet")
        place = scheduled(new, cluster.with_pod(new), self._snapshot.age.gates)
        if not place.node:
            return replace(told, verdict=UNSCHEDULABLE, text=place.why)
        ends = place.victims
        return replace(told, text=f"not on a node yet: the scheduler would choose {place.node}", ends=ends)

    @staticmethod
    def _risks(told: PodPlan, effects: Effects) -> PodPlan:
        """What the node would grant and the containers would not bear."""
        if told.verdict != FITS:
            return told
        if text := effects.refused():
            return replace(told, verdict=ERROR, text=text, shrink="")
        if text := effects.crashes():
            return replace(told, verdict=CRASH, text=text)
        return told


def _of(namespace: str, objects: Sequence[T]) -> tuple[T, ...]:
    return tuple(each for each in objects if each.metadata.namespace == namespace)


def over(pod: Pod) -> str:
    """Why no node carries out a resize of the pod, though the API would take it (R-015); empty when one does."""
    if pod.status.phase in OVER:
        return f"the pod has ended ({pod.status.phase}): a resize of it is stored and never carried out"
    return "the pod is being deleted" if pod.metadata.deletion_timestamp else ""


def decided(told: PodPlan, model: LiveNode, uid: str) -> PodPlan:
    """With the verdict of the node."""
    verdict = model.verdict(uid)
    if isinstance(verdict, Infeasible):
        return replace(told, verdict=INFEASIBLE, text=verdict.message)
    if isinstance(verdict, Deferred):
        ahead = [each.name.partition("/")[2] for each in model.queue()]
        mine = next(index for index, each in enumerate(model.queue()) if each.desired.metadata.uid == uid)
        return replace(
            told,
            verdict=DEFERRED,
            text=verdict.message,
            short_by=short(verdict),
            blocked_by=verdict.blocked_by,
            after=tuple(ahead[:mine]),
            ends=model.ends(uid),
        )
    return told
