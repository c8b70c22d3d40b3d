"""Which burst ceilings pods would be granted (`podfit plan TARGET --burst`), by the checks that the API server runs.

The pods are asked for one after the other, as the updater does, so that what a quota grants to one is there no more for
the next.
"""

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from podfit.answers.facts.api_checks import checks_of
from podfit.answers.facts.snapshot import Snapshot, of_namespace
from podfit.answers.node.live_node import live_node
from podfit.api.core.v1.limits.types import ResourceQuota
from podfit.api.core.v1.pods.burst import CEILING
from podfit.api.core.v1.pods.defaults import default_pod
from podfit.api.core.v1.pods.types import Pod
from podfit.core.errors import ApiError
from podfit.decide.autoscaling.ceilings import bursts, wanted_ranges
from podfit.decide.pod.burst_ceiling import BurstRange, at_ceiling, written_ranges
from podfit.decide.pod.requests import pod_requests
from podfit.decide.pod.resize_state import BURST
from podfit.decide.resize.checks import ResizeToCheck, judge
from podfit.decide.resize.verdict import Fits

GRANTED, HELD, REFUSED, NONE = "granted", "held", "refused", "none"


class CeilingPlan(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`ranges` says floor and ceiling in words, `text` why it is refused, or there is none; of a Guaranteed pod that
    its node has no room for the ceiling now. `burst` is what the node says of limits that it has moved.
    """

    namespace: str
    pod: str
    verdict: str
    vpa: str = ""
    ranges: tuple[str, ...] = ()
    text: str = ""
    burst: str = ""


class CeilingsPlan(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    server: str
    namespace: str
    pods: tuple[CeilingPlan, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether every pod may burst."""
        return bool(self.pods) and all(pod.verdict in (GRANTED, HELD) for pod in self.pods)


def ceilings(snapshot: Snapshot) -> CeilingsPlan:
    return CeilingsPlan(
        server=snapshot.age.version,
        namespace=snapshot.namespace,
        pods=tuple(_planned(snapshot)),
        notes=tuple(f"not read: {line}" for line in snapshot.unread),
    )


def _planned(snapshot: Snapshot) -> Iterator[CeilingPlan]:
    quotas = {quota.metadata.uid: quota for quota in snapshot.quotas}
    for pod in snapshot.pods:
        name, vpa = pod.metadata.name, snapshot.autoscalers.vpas.get(pod.metadata.uid)
        plan = CeilingPlan(namespace=pod.metadata.namespace, pod=name, verdict=NONE, burst=_moved(pod))
        if vpa is None or not bursts(vpa):
            yield replace(plan, text="no VPA that changes it asks for bursts (podfit.dev/burst: enabled)")
            continue
        ranges = wanted_ranges(pod, vpa)
        plan = replace(plan, vpa=vpa.metadata.name, ranges=tuple(_words(ranges)))
        if not ranges:
            yield replace(plan, text="none of its containers has a limit that may rise without a restart")
        elif pod.metadata.annotations.get(CEILING) == written_ranges(ranges):
            yield replace(plan, verdict=HELD, text=no_room(snapshot, pod, written_ranges(ranges)))
        else:
            outcome = ceiling_outcome(snapshot, pod, written_ranges(ranges), tuple(quotas.values()))
            if isinstance(outcome, ApiError):
                yield replace(plan, verdict=REFUSED, text=outcome.message)
            else:
                quotas |= {quota.metadata.uid: quota for quota in outcome.quotas}
                yield replace(plan, verdict=GRANTED, text=no_room(snapshot, pod, written_ranges(ranges)))


def ceiling_outcome(
    snapshot: Snapshot, pod: Pod, text: str, quotas: tuple[ResourceQuota, ...] | None = None
) -> ResizeToCheck | ApiError:
    """What an API server of podfit would say to this ceiling of the pod."""
    old, node = default_pod(pod, snapshot.age.gates), pod.spec.node_name
    resize = ResizeToCheck(
        new=_with_ceiling(old, text),
        old=old,
        node=snapshot.nodes.get(node),
        gates=snapshot.age.gates,
        limit_ranges=of_namespace(pod.metadata.namespace, snapshot.limit_ranges),
        quotas=of_namespace(pod.metadata.namespace, snapshot.quotas if quotas is None else quotas),
    )
    return judge(resize, checks_of(snapshot.age, knows_node=snapshot.knows_node(node)))


def _with_ceiling(pod: Pod, text: str) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, annotations={**pod.metadata.annotations, CEILING: text}))


def no_room(snapshot: Snapshot, pod: Pod, text: str) -> str:
    """Why the node could not raise its limits to this ceiling now: requests of a Guaranteed pod move along, and are not
    set aside before. Empty where it could, or that is not known.
    """
    gates, node = snapshot.age.gates, pod.spec.node_name
    raised = at_ceiling(_with_ceiling(pod, text), gates)
    if pod_requests(raised, gates=gates) == pod_requests(pod, gates=gates):
        return ""
    if node not in snapshot.nodes or node in snapshot.unknown_nodes:
        return ""
    model = live_node(node, snapshot)
    model.ask(raised)
    verdict = model.verdict(pod.metadata.uid)
    return "" if isinstance(verdict, Fits) else f"not all of it now: {verdict.message}"


def _words(ranges: dict[str, BurstRange]) -> Iterator[str]:
    for name, between in ranges.items():
        for resource, most in between.ceiling.items():
            yield f"{name} {resource} limit {between.floor[resource]} to {most}"


def _moved(pod: Pod) -> str:
    return next((condition.message for condition in pod.status.conditions if condition.type == BURST), "")
