"""What would this resize do? For every pod: what the API says, what the node decides, and what happens to containers.

The pods are asked for one after the other, as `podfit resize` does, so each verdict counts for the next: room, quota
and the queue of what waits on the node already.
"""

from collections.abc import Iterator, Sequence

import msgspec

from podfit.answers.effects import Change, Effects, Restart, changes
from podfit.answers.node_model import NodeModel, model_of, short
from podfit.answers.refusals import Accepted, charged_with, judge
from podfit.answers.snapshot import ENDED, Snapshot
from podfit.answers.template import TemplatePlan
from podfit.answers.wish import Wish, apply
from podfit.api.core.limits import ResourceQuota
from podfit.api.core.pod_defaults import default_pod
from podfit.api.core.pods import Pod, PodSpec
from podfit.core.errors import ApiError
from podfit.core.quantity import ZERO
from podfit.decide.fit import Deferred, Infeasible

FITS, DEFERRED, INFEASIBLE, REFUSED, UNCHANGED = "fits", "deferred", "infeasible", "refused", "unchanged"


class PodPlan(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`text` is the reason in the API's or the node's own words, `code` the API's status for a refusal.

    `after` are pods that are tried before this one while it waits, `blocked_by` who holds what is short, largest first.
    `ends` are pods that its node ends to make room for it, as it does for critical pods.
    `shrink` says what lowering a memory limit risks; empty when no limit is lowered.
    """

    pod: str
    node: str
    verdict: str
    text: str = ""
    code: int = 0
    changes: tuple[Change, ...] = ()
    restarts: tuple[Restart, ...] = ()
    short_by: str = ""
    blocked_by: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    qos: str = ""
    shrink: str = ""
    unsafe: bool = False

    @property
    def good(self) -> bool:
        """Whether the resize would complete now."""
        return self.verdict in (FITS, UNCHANGED) and not self.unsafe


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
        return all(each.good for each in self.pods) and (self.template is None or self.template.good)


def plan(snapshot: Snapshot, wish: Wish, template: TemplatePlan | None = None) -> Plan:
    """Raises WishError when the wish fits none of a pod's containers."""
    planner = _Planner(snapshot, wish)
    asked = [planner.ask(pod) for pod in snapshot.pods]
    return Plan(
        server=snapshot.age.version, namespace=snapshot.namespace, pods=tuple(planner.told(each) for each in asked),
        order=tuple(planner.granted), template=template,
        notes=tuple(_notes(snapshot, wish, planner, also_template=template is not None)))


class _Asked(msgspec.Struct, frozen=True):
    """A pod and what the API made of the wish; `outcome` is None when it changes nothing."""

    pod: Pod
    wanted: Pod
    outcome: Accepted | ApiError | None


class _Planner:
    def __init__(self, snapshot: Snapshot, wish: Wish) -> None:
        self._snapshot, self._wish = snapshot, wish
        self.quotas: tuple[ResourceQuota, ...] = snapshot.quotas
        self.granted: list[str] = []
        self._nodes = {name: model_of(name, snapshot) for name in snapshot.nodes}

    def ask(self, pod: Pod) -> _Asked:
        """Send the wish to the API, and what it stores to the node."""
        snapshot, wanted = self._snapshot, apply(self._wish, pod)
        if _over(pod):
            return _Asked(pod, wanted, None)
        if not snapshot.age.resizes:
            text = f"Kubernetes {snapshot.age.version} cannot resize running pods; 1.27 is the first that can"
            return _Asked(pod, wanted, ApiError(422, "Invalid", text))
        outcome = judge(
            wanted, pod, age=snapshot.age, node=snapshot.nodes.get(pod.spec.node_name),
            limit_ranges=snapshot.limit_ranges, quotas=self.quotas)
        if isinstance(outcome, ApiError):
            return _Asked(pod, wanted, outcome)
        if outcome.pod.spec in (pod.spec, default_pod(pod, snapshot.age.gates).spec):  # older servers store fewer
            return _Asked(pod, wanted, None)
        self.quotas = charged_with(self.quotas, outcome.quotas)
        if model := self._nodes.get(pod.spec.node_name):
            names = {uid: each.name.partition("/")[2] for uid, each in model.members.items()}
            self.granted += [names[uid] for uid in model.ask(outcome.pod)]
        return _Asked(pod, wanted, outcome)

    def told(self, asked: _Asked) -> PodPlan:
        """How it stands with a pod when all have been asked for."""
        pod, outcome = asked.pod, asked.outcome
        name, node, qos = pod.metadata.name, pod.spec.node_name, pod.status.qos_class
        if isinstance(outcome, ApiError):
            return PodPlan(pod=name, node=node, verdict=REFUSED, text=outcome.message, code=outcome.code,
                           changes=tuple(changes(asked.wanted, pod)), qos=qos)  # fmt: skip
        if _over(pod):
            return PodPlan(pod=name, node=node, verdict=INFEASIBLE, text="the pod has ended or is about to", qos=qos)
        if outcome is None:
            return PodPlan(pod=name, node=node, verdict=UNCHANGED, qos=qos)
        new = outcome.pod
        effects = Effects(new, pod, self._snapshot)
        shrink, unsafe = effects.shrink()
        told = PodPlan(pod=name, node=node, verdict=FITS, changes=tuple(changes(new, pod)), qos=qos,
                       restarts=effects.restarts(), shrink=shrink, unsafe=unsafe)  # fmt: skip
        if not node:
            return msgspec.structs.replace(told, text="not on a node yet: it is scheduled at this size")
        model = self._nodes.get(node)
        if model is None:
            return msgspec.structs.replace(told, verdict=REFUSED, text=f"node {node} could not be read")
        return _decided(told, model, pod.metadata.uid)


def _over(pod: Pod) -> bool:
    """The API would take the resize, but no node carries it out any more (R-015)."""
    return pod.status.phase in ENDED or bool(pod.metadata.deletion_timestamp)


def _decided(told: PodPlan, model: NodeModel, uid: str) -> PodPlan:
    verdict = model.verdict(uid)
    if isinstance(verdict, Infeasible):
        return msgspec.structs.replace(told, verdict=INFEASIBLE, text=verdict.message)
    if isinstance(verdict, Deferred):
        ahead = [each.name.partition("/")[2] for each in model.queue()]
        mine = next(index for index, each in enumerate(model.queue()) if each.desired.metadata.uid == uid)
        return msgspec.structs.replace(
            told, verdict=DEFERRED, text=verdict.message, short_by=short(verdict), blocked_by=verdict.blocked_by,
            after=tuple(ahead[:mine]), ends=model.ends(uid))
    return told


def _notes(snapshot: Snapshot, wish: Wish, planner: _Planner, *, also_template: bool) -> Iterator[str]:
    if snapshot.age.caveat:
        yield snapshot.age.caveat
    if not snapshot.pods:
        yield "no pod of it runs"
    yield from _quota_notes(snapshot.quotas, planner.quotas)
    yield from _policy_notes(snapshot)
    if snapshot.template is not None and not also_template and not wish.undo and _undone(snapshot.template, wish):
        yield "the template is not changed: the next rollout goes back to its sizes"
    yield from (f"not read: {line}" for line in snapshot.unread)


def _policy_notes(snapshot: Snapshot) -> Iterator[str]:
    """They decide about Guaranteed pods only."""
    for name in sorted({pod.spec.node_name for pod in snapshot.pods if pod.status.qos_class == "Guaranteed"}):
        policies = snapshot.policies.get(name)
        if policies is not None and policies.problem:
            yield (f"node {name} is taken for one without static CPU and memory managers, as its configuration was not "
                   f"read: {policies.problem}")  # fmt: skip


def _undone(template: PodSpec, wish: Wish) -> bool:
    pod = Pod(spec=template)
    return apply(wish, pod).spec != template


def _quota_notes(before: Sequence[ResourceQuota], after: Sequence[ResourceQuota]) -> Iterator[str]:
    for old, new in zip(before, after, strict=True):
        for name, used in new.status.used.items():
            was = old.status.used.get(name, ZERO)
            if used != was:
                yield f"quota {new.metadata.name}: {name} {was} → {used} of {new.status.hard[name]}"
