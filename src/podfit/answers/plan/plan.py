"""Plans a resize: for each pod the API's verdict, the node's decision, and the effects on its containers.

The pods are asked for one after the other, as `podfit resize` does, so each verdict counts for the next: room, quota
and the queue of what waits on the node already. A pod that waits for another size is told the new one first of all.
What asks for no more goes next, then in the order of a node's queue: room that one gives up is there for the next.
The checks are those of `decide.resize.checks`, less or more with the release of the server (`checks_of`).
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from podfit.answers.facts.api_checks import checks_of
from podfit.answers.facts.budgets import cover_both
from podfit.answers.facts.pod_state import waits
from podfit.answers.facts.snapshot import Snapshot, of_namespace
from podfit.answers.node.live_node import live_node
from podfit.answers.node.making_room import maker_of
from podfit.answers.plan.changes import doubts
from podfit.answers.plan.notes import notes
from podfit.answers.plan.resize_request import NothingRecorded, ResizeRequest, apply, can_undo, with_template
from podfit.answers.plan.result import Plan, PodPlan
from podfit.answers.plan.template import TemplatePlan
from podfit.answers.plan.verdicts import CheckedPod, Verdicts, over
from podfit.api.core.v1.limits.types import ResourceQuota
from podfit.api.core.v1.pods.defaults import default_pod
from podfit.api.core.v1.pods.types import Pod
from podfit.core.errors import ApiError
from podfit.core.features import FeatureGates
from podfit.decide.limits.quota_credit import credit
from podfit.decide.node.room.plan import allocated_form
from podfit.decide.resize.checks import ResizeToCheck, judge
from podfit.decide.resize.queue_order import queue_key


class PodRequest(msgspec.Struct, frozen=True):
    """A resize to plan: a pod of the snapshot, and what is asked for it."""

    pod: Pod
    asked: ResizeRequest


def requests_of(snapshot: Snapshot, request: ResizeRequest) -> tuple[PodRequest, ...]:
    """The same for every pod that the snapshot is about, but for those that a VPA sizes otherwise."""
    request = with_template(request, snapshot.template or snapshot.owner_template, snapshot.limit_ranges)
    return tuple(PodRequest(pod, request.of(pod)) for pod in snapshot.pods)


def plan(snapshot: Snapshot, request: ResizeRequest, template: TemplatePlan | None = None) -> Plan:
    """Raises RequestError when a pod has no container that it fits."""
    return plan_requests(snapshot, requests_of(snapshot, request), template)


def plan_requests(snapshot: Snapshot, requests: Sequence[PodRequest], template: TemplatePlan | None = None) -> Plan:
    """`pods` are in the order in which they are asked for. Raises RequestError as `plan`."""
    planner = _Planner(snapshot)
    turns = in_order(planner.wanted(requests), snapshot.age.gates)
    replacing = [turn for turn in turns if planner.replaces(turn)]
    withdrawn = [turn for turn in replacing if planner.shares_budget(turn, turns) and planner.can_stay(turn)]
    for wanted in withdrawn:
        planner.withdraw(wanted)
    for wanted in sorted(turns, key=lambda turn: turn not in replacing or turn in withdrawn):
        planner.ask(wanted)
    pods = tuple(
        replace(planner.planned(wanted), replaces=wanted in replacing, withdraws=wanted in withdrawn)
        for wanted in turns
    )
    return Plan(
        server=snapshot.age.version,
        namespace=snapshot.namespace,
        pods=pods,
        order=tuple(planner.granted),
        template=template,
        doubts=tuple(doubtful(requests)),
        notes=tuple(
            notes(
                snapshot,
                [(wanted.pod, wanted.asked) for wanted in requests],
                planner.quotas,
                pods,
                planner.resized(),
                also_template=template is not None,
            )
        ),
    )


def doubtful(requests: Iterable[PodRequest]) -> dict[str, None]:
    """Amounts that somebody typed and hardly meant, each once."""
    said = [request for request in requests if not request.asked.undo]
    return dict.fromkeys(text for request in said for text in doubts(apply(request.asked, request.pod), request.pod))


class PlannedPod(msgspec.Struct, frozen=True):
    """A pod and the pod that is asked for; None when there is no earlier size to go back to."""

    pod: Pod
    new: Pod | None


def in_order(wanted: Iterable[PlannedPod], gates: FeatureGates) -> list[PlannedPod]:
    """First what asks for no more than it has, then as a node's queue: priority, Guaranteed, the order given."""
    return sorted(wanted, key=lambda asked: queue_key(asked.new or asked.pod, allocated_form(asked.pod, gates), None))


class _Planner:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.quotas: tuple[ResourceQuota, ...] = snapshot.quotas
        self.granted: list[str] = []
        self._asked: dict[str, CheckedPod] = {}
        self._nodes = {name: live_node(name, snapshot) for name in snapshot.nodes}
        self._makers = {name: maker_of(name, model, snapshot) for name, model in self._nodes.items()}
        self.verdicts = Verdicts(snapshot, self._nodes, self._makers)

    def wanted(self, requests: Sequence[PodRequest]) -> Iterator[PlannedPod]:
        for request in requests:
            try:
                yield PlannedPod(request.pod, apply(request.asked, request.pod))
            except NothingRecorded:
                if not any(can_undo(other.pod) for other in requests):
                    raise
                yield PlannedPod(request.pod, None)

    def replaces(self, turn: PlannedPod) -> bool:
        """Whether the pod waits for a size that is no longer wanted, so that it has to be told before others give up
        room: the node would grant it.
        """
        return turn.new is not None and turn.new.spec != turn.pod.spec and waits(turn.pod, self._snapshot.age)

    def shares_budget(self, turn: PlannedPod, turns: Sequence[PlannedPod]) -> bool:
        """Whether it may not restart at the same time as another pod of the plan. One that is granted its size by what
        the other gives up would.
        """
        return cover_both(self._snapshot.budgets, turn.pod, [other.pod for other in turns if other is not turn])

    def can_stay(self, turn: PlannedPod) -> bool:
        """Whether it can be told to stay as it is: what it waits for has no requests and limits beyond those it has,
        which a resize could not take away.
        """
        stays = self._granted(turn)
        pairs = [(turn.pod.spec.resources, stays.spec.resources)]
        for field in ("init_containers", "containers"):
            containers = zip(getattr(turn.pod.spec, field), getattr(stays.spec, field), strict=True)
            pairs += [(desired.resources, granted.resources) for desired, granted in containers]
        return all(
            desired is None
            or (
                granted is not None
                and desired.requests.keys() <= granted.requests.keys()
                and desired.limits.keys() <= granted.limits.keys()
            )
            for desired, granted in pairs
        )

    def withdraw(self, turn: PlannedPod) -> None:
        """Tell the node that the pod is to stay as it is."""
        if model := self._nodes.get(turn.pod.spec.node_name):
            model.ask(self._granted(turn))

    def _granted(self, turn: PlannedPod) -> Pod:
        return allocated_form(turn.pod, self._snapshot.age.gates)

    def planned(self, turn: PlannedPod) -> PodPlan:
        """How it stands with a pod that was asked for, once all were."""
        return self.verdicts.of(self._asked[turn.pod.metadata.uid])

    def resized(self) -> dict[str, Pod]:
        """The pods that the API would store anew, by UID."""
        return {
            uid: checked.outcome.new
            for uid, checked in self._asked.items()
            if isinstance(checked.outcome, ResizeToCheck) and not checked.repeated
        }

    def ask(self, request: PlannedPod) -> None:
        self._asked[request.pod.metadata.uid] = self._ask(request)

    def _ask(self, request: PlannedPod) -> CheckedPod:
        """Send the request to the API, and what it stores to the node."""
        snapshot, pod, wanted = self._snapshot, request.pod, request.new
        if wanted is None:
            return CheckedPod(pod, pod, None)
        if not snapshot.age.resizes:
            text = f"Kubernetes {snapshot.age.version} cannot resize running pods; 1.27 is the first that can"
            return CheckedPod(pod, wanted, ApiError(422, "Invalid", text))
        gates = snapshot.age.gates
        namespace, node = pod.metadata.namespace, pod.spec.node_name
        resize = ResizeToCheck(
            new=wanted,
            old=default_pod(pod, gates),
            node=snapshot.nodes.get(node),
            gates=gates,
            limit_ranges=of_namespace(namespace, snapshot.limit_ranges),
            quotas=of_namespace(namespace, self.quotas),
        )
        outcome = judge(resize, checks_of(snapshot.age, knows_node=snapshot.knows_node(node)))
        if isinstance(outcome, ApiError):
            return CheckedPod(pod, wanted, outcome)
        if over(pod):
            return CheckedPod(pod, wanted, None)
        if outcome.new.spec in (pod.spec, default_pod(pod, gates).spec):  # older servers store fewer
            return CheckedPod(pod, wanted, outcome, repeated=True)
        charged = {quota.metadata.uid: quota for quota in outcome.quotas}
        self.quotas = tuple(charged.get(quota.metadata.uid, quota) for quota in self.quotas)
        if (model := self._nodes.get(node)) and node not in snapshot.unknown_nodes:
            before = model.state.pods
            names = {uid: member.name.partition("/")[2] for uid, member in model.members.items()}
            maker = self._makers[node]
            granted = (*model.ask(outcome.new), *maker.help(outcome.new))
            self.granted += [names[uid] for uid in granted]
            for uid, entry in model.state.pods.items():
                self.quotas = credit(entry.pod, before[uid].pod, self.quotas, gates)
        elif model:
            model.ask(outcome.new)
        return CheckedPod(pod, wanted, outcome)
