"""What autoscalers make of a resize: a VPA that takes it back, an HPA that measures by the new request."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from podfit.answers.autoscaling.updater import ASKS, ForetoldApi, next_pass
from podfit.answers.facts.autoscalers import Autoscalers
from podfit.answers.facts.pod_state import RESOURCES
from podfit.answers.facts.snapshot import Snapshot, of_namespace
from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.limits.types import ResourceQuota
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.owners import group_of
from podfit.core.features import DEFAULT_GATES
from podfit.core.quantity import Quantity
from podfit.core.resources import CPU
from podfit.decide.autoscaling.horizontal.pods import requests_of
from podfit.decide.autoscaling.policies import update_mode
from podfit.decide.autoscaling.slices import slice_told
from podfit.decide.autoscaling.view import since_conditions, view_of
from podfit.decide.node.settled import settled_status
from podfit.decide.pod.resize_state import CONDITIONS


def autoscaler_notes(
    snapshot: Snapshot, after: Mapping[str, Pod], charged: Sequence[ResourceQuota], own: str
) -> Iterator[str]:
    """`after` has by UID the pods that would be resized, `charged` are the quotas as they stand then. `own` is the VPA
    whose recommendation is asked for; it takes nothing back.
    """
    found, before = snapshot.autoscalers, snapshot.pods
    resized = [pod for pod in before if pod.metadata.uid in after]
    acting = {vpa.metadata.name: vpa for pod in resized if (vpa := found.vpas.get(pod.metadata.uid)) is not None}
    for name, vpa in acting.items():
        if name != own:
            pods = [after.get(pod.metadata.uid, pod) for pod in before if found.vpas.get(pod.metadata.uid) == vpa]
            yield _taken_back(vpa, [_done(pod) for pod in pods], snapshot, charged)
    for hpa in found.hpas:
        pods = [pod for pod in resized if _measures(hpa, pod, found)]
        yield from dict.fromkeys(text for pod in pods for text in _moved(hpa, pod, after[pod.metadata.uid]))


def _measures(hpa: HorizontalPodAutoscaler, pod: Pod, found: Autoscalers) -> bool:
    """Whether it scales what controls the pod."""
    target = hpa.spec.scale_target_ref
    named = group_of(target.api_version), target.kind, pod.metadata.namespace, target.name
    return hpa.metadata.namespace == pod.metadata.namespace and any(
        owner[:4] == named for owner in found.workloads.get(pod.metadata.uid, ())
    )


def _done(pod: Pod) -> Pod:
    """The pod once its resize is complete."""
    settled = [condition for condition in pod.status.conditions if condition.type not in CONDITIONS]
    return replace(pod, status=replace(settled_status(pod), conditions=tuple(settled)))


def _taken_back(
    vpa: VerticalPodAutoscaler, pods: Sequence[Pod], snapshot: Snapshot, charged: Sequence[ResourceQuota]
) -> str:
    """What is taken back, by the updater's own decision on the pods as they will be."""
    told = list(filter(None, dict.fromkeys(slice_told(vpa, pod) for pod in pods)))
    sized = f", pods sized {told[0]}{f' and {len(told) - 1} others' if len(told) > 1 else ''}" if told else ""
    found = snapshot.autoscalers
    name, updater, now = f"vpa/{vpa.metadata.name} ({update_mode(vpa)}{sized})", found.updater, found.read_at
    bounds = ", ".join(_bounds(vpa))
    rest = f"; its policy allows {bounds}" if bounds else ""
    if vpa.status.recommendation is None or now is None:
        return f"{name} recommends nothing yet, and may change these sizes when it does{rest}"
    rest += f"; {updater.note}" if updater.note else ""
    if updater.idle:
        return f"{name} leaves these sizes as long as the updater does nothing: {updater.idle}{rest}"
    ranges = of_namespace(vpa.metadata.namespace, snapshot.limit_ranges)
    view = view_of(vpa, pods, ranges, now, wanted=found.wanted.get, since=since_conditions(pods, now))
    # Of pods whose nodes are not known a plan does not credit the quota with what becomes less.
    credited = all(pod.spec.node_name not in snapshot.unknown_nodes for pod in pods)
    quotas = of_namespace(vpa.metadata.namespace, charged) if credited else ()
    api = ForetoldApi(snapshot.age, ranges, quotas, snapshot.nodes, snapshot.knows_node)
    foretold = next_pass(view, updater.settings.rules, api).steps
    steps = [step for step in foretold if step.startswith(("resizes ", "evicts ", ASKS))]
    if any(not step.startswith(ASKS) for step in steps):
        return f"{name} takes it back: in its next pass it {'; '.join(steps)}{rest}"
    if steps:
        return f"{name} would take it back: in its next pass it {'; '.join(steps)}{rest}"
    return f"{name} leaves these sizes in its next pass, and may change them later{rest}"


def _bounds(vpa: VerticalPodAutoscaler) -> Iterator[str]:
    """`cpu 50m to 200m of "app"`."""
    policy = vpa.spec.resource_policy
    for entry in policy.container_policies if policy else ():
        for resource in RESOURCES:
            least, most = (
                str(side[resource]) if resource in side else "" for side in (entry.min_allowed, entry.max_allowed)
            )
            if least or most:
                span = f"{least} to {most}" if least and most else f"at least {least}" if least else f"at most {most}"
                yield f'{resource} {span} of "{entry.container_name}"'


def _moved(hpa: HorizontalPodAutoscaler, old: Pod, new: Pod) -> Iterator[str]:
    """Metrics that are a share of the request: with another request the same usage is another share."""
    for metric in hpa.spec.metrics:
        source = metric.resource or metric.container_resource
        if source is None or source.target.average_utilization is None:
            continue
        container = metric.container_resource.container if metric.container_resource else ""
        before, after = (_measured(pod, source.name, container) for pod in (old, new))
        if before and after and before != after:
            fewer = "fewer" if after > before else "more"
            yield (
                f"hpa/{hpa.metadata.name} keeps {source.name} at {source.target.average_utilization} % of the request: "
                f"with {after} instead of {before} the same usage is {before.nano / after.nano:.2g} times that share, "
                f"and it wants {fewer} pods"
            )


def _measured(pod: Pod, resource: str, container: str) -> Quantity:
    """What it measures the usage by: nothing where a container has no request, since it then does not scale."""
    requests, _ = requests_of((pod,), resource, container, DEFAULT_GATES)
    milli = requests.get(pod.metadata.name, 0)
    return Quantity.of_milli(milli) if resource == CPU else Quantity.of_bytes(milli // 1000)
