"""The VPA updater's next pass, foretold: reads what the updater would see, and runs its decision without writing.

Read are the pods that a VPA controls, what their controllers want, LimitRanges, and `facts.updater`, what it runs with.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from podfit.answers.facts.ages import Age
from podfit.answers.facts.api_checks import checks_of
from podfit.answers.facts.workloads import WorkloadReader
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.limits.types import LimitRange, ResourceQuota
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.defaults import default_pod
from podfit.api.core.v1.pods.types import Pod
from podfit.client.controlling import Controlling
from podfit.core.errors import ApiError, not_found
from podfit.decide.autoscaling.actions import (
    Action,
    ActionOutcome,
    Deed,
    EvictPod,
    ResizePod,
    Skip,
    Verdict,
    outcome_of,
)
from podfit.decide.autoscaling.patches import resized, without_ceiling
from podfit.decide.autoscaling.update import View, run
from podfit.decide.autoscaling.update_settings import UpdateSettings
from podfit.decide.autoscaling.view import concerned, since_conditions, view_of
from podfit.decide.resize.checks import ResizeToCheck, judge

ASKS = "asks to resize "
"""How the step of a resize begins that the API refuses."""


async def read_views(
    reader: WorkloadReader,
    vpas: Sequence[VerticalPodAutoscaler],
    pods: Sequence[Pod],
    limit_ranges: Sequence[LimitRange],
    now: datetime,
    *,
    places_first: bool = False,
) -> dict[str, View]:
    """Views by the name of a VPA; `vpas` and `pods` are all of the namespace that matter. `places_first`: the cluster
    autoscaler makes places."""
    pods = concerned(pods)
    targets = await reader.targets(pods, (vpa.spec.target_ref for vpa in vpas))
    controlling, of = Controlling(targets, vpas), {vpa.metadata.name: list[Pod]() for vpa in vpas}
    for pod in pods:
        found = await controlling.vpa_of(pod)
        if found is not None:
            of[found.metadata.name].append(pod)
    since = since_conditions(pods, now)
    return {
        vpa.metadata.name: view_of(
            vpa, of[vpa.metadata.name], limit_ranges, now, wanted=targets.wanted, since=since, places_first=places_first
        )
        for vpa in vpas
    }


class NextPass(msgspec.Struct, frozen=True):
    """One pass: `steps` in words, and by UID what becomes of each pod. How many pods it disturbs at once is bounded, so
    more may follow in the next.
    """

    steps: tuple[str, ...] = ()
    verdicts: Mapping[str, Verdict] = msgspec.field(default_factory=dict)

    def reason(self, uid: str) -> str:
        """What becomes of a pod, and why when it is left; empty for one that is not looked at."""
        verdict = self.verdicts.get(uid)
        if verdict is None:
            return ""
        done = {Deed.RESIZED: "the updater's next pass resizes it in place", Deed.EVICTED: "its next pass evicts it"}
        return done.get(verdict.deed) or f"the updater leaves it: {verdict.reason}"


class ForetoldApi:
    """What an API server says to the updater's resizes, one after the other, by what is known of their namespace.
    `knows` tells of a node's name whether it would be among `nodes`; webhooks and disruption budgets are not asked.
    """

    def __init__(
        self,
        age: Age,
        limit_ranges: Iterable[LimitRange],
        quotas: Iterable[ResourceQuota],
        nodes: Mapping[str, Node],
        knows: Callable[[str], bool],
    ) -> None:
        self._age, self._limit_ranges, self._quotas = age, tuple(limit_ranges), tuple(quotas)
        self._nodes, self._knows = nodes, knows

    def refusal(self, action: Action) -> ApiError | None:
        if not isinstance(action, ResizePod):
            return None
        if not self._age.has_subresource:
            return not_found("pods", action.pod.metadata.name)
        gates, node = self._age.gates, action.pod.spec.node_name
        old = default_pod(action.pod, gates)
        resize = ResizeToCheck(
            new=resized(old, (*action.resources, *without_ceiling(old))),
            old=old,
            node=self._nodes.get(node),
            limit_ranges=self._limit_ranges,
            quotas=self._quotas,
            gates=gates,
        )
        outcome = judge(resize, checks_of(self._age, knows_node=self._knows(node)))
        if isinstance(outcome, ApiError):
            return outcome
        self._quotas = outcome.quotas
        return None


def next_pass(view: View, settings: UpdateSettings, api: ForetoldApi) -> NextPass:
    """What the next pass does if disruption budgets and webhooks are in the way of nothing."""
    actions, told = run(view, settings), list[str]()
    try:
        action = next(actions)
        while True:
            refusal = api.refusal(action)
            told += _told(action, refusal)
            action = actions.send(ActionOutcome.DONE if refusal is None else outcome_of(refusal))
    except StopIteration as end:
        told += (f"leaves pods as they are. {said}" for said in end.value.conditions.values())
        return NextPass(tuple(told), {verdict.pod.metadata.uid: verdict for verdict in end.value.verdicts})


def _told(action: Action, refusal: ApiError | None) -> Iterator[str]:
    name = action.pod.metadata.name
    match action:
        case ResizePod():
            amounts = ", ".join(
                _amount(resource) for resource in action.resources if isinstance(resource.get("value"), str)
            )
            if refusal is None:
                yield f"resizes {name} in place: {amounts}"
            else:
                yield f"{ASKS}{name} in place: {amounts}, which the API refuses: {refusal.message}"
        case EvictPod():
            yield f"evicts {name}, as far as disruption budgets allow"
        case Skip():
            yield f"leaves {name}: its node can never give as much"


def _amount(operation: dict[str, object]) -> str:
    """`/spec/containers/0/resources/requests/cpu` as `cpu request 500m`."""
    *_, kind, resource = str(operation["path"]).split("/")
    return f"{resource} {kind.removesuffix('s')} {operation['value']}"
