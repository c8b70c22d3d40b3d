"""The pods behind a metric: which of them count, and what they request."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.aggregate import lasting_containers
from podfit.api.core.v1.pods.containers import Container, ResourceRequirements
from podfit.api.core.v1.pods.phase import FAILED, SUCCEEDED
from podfit.api.core.v1.pods.types import Pod, PodCondition
from podfit.api.meta.base import ResourceList
from podfit.core.features import FeatureGates
from podfit.core.resources import CPU
from podfit.core.resources import pod_level as is_pod_level
from podfit.core.times import parse_time
from podfit.decide.autoscaling.horizontal.model import Sample, Samples, Settings, Unmeasured
from podfit.decide.pod.requests import pod_requests

NO_PODS = "no pods returned by selector while calculating replica count"


class Sorted(msgspec.Struct, frozen=True):
    """How many pods are ready, and the names of the others."""

    ready: int
    unready: frozenset[str]
    missing: frozenset[str]
    ignored: frozenset[str]


def sort_pods(pods: Iterable[Pod], samples: Samples, resource: str, settings: Settings, now: float) -> Sorted:
    """`resource` is empty for a metric that is none; only the CPU of a pod that has just started is not believed."""
    ready = 0
    unready, missing, ignored = set(), set(), set()
    for pod in pods:
        name, sample = pod.metadata.name, samples.get(pod.metadata.name)
        if is_over(pod, settings):
            ignored.add(name)
        elif pod.status.phase == "Pending":
            unready.add(name)
        elif sample is None:
            missing.add(name)
        elif resource == CPU and _starts(pod, sample, settings, now):
            unready.add(name)
        else:
            ready += 1
    return Sorted(ready, frozenset(unready), frozenset(missing), frozenset(ignored))


def is_over(pod: Pod, settings: Settings) -> bool:
    """One that ended well counts as missing by upstream's rules."""
    over = (FAILED,) if settings.upstream_compatible else (FAILED, SUCCEEDED)
    return bool(pod.metadata.deletion_timestamp) or pod.status.phase in over


def ready_condition(pod: Pod) -> PodCondition | None:
    return next((condition for condition in pod.status.conditions if condition.type == "Ready"), None)


def running_and_ready(pods: Sequence[Pod]) -> int:
    """Raises Unmeasured where there is no pod at all."""
    if not pods:
        raise Unmeasured(f"unable to calculate ready pods: {NO_PODS}")
    return sum(
        pod.status.phase == "Running" and (found := ready_condition(pod)) is not None and found.status == "True"
        for pod in pods
    )


def _starts(pod: Pod, sample: Sample, settings: Settings, now: float) -> bool:
    """Whether what the CPU does is the pod's start rather than its work."""
    condition = ready_condition(pod)
    if condition is None or not pod.status.start_time:
        return True
    began = parse_time(pod.status.start_time).timestamp()
    turned = parse_time(condition.last_transition_time).timestamp() if condition.last_transition_time else 0.0
    unready = condition.status == "False"
    if began + settings.cpu_initialization > now:
        return unready or sample.time < turned + sample.window
    return unready and began + settings.initial_readiness > turned


def requests_of(
    pods: Iterable[Pod], resource: str, container: str, gates: FeatureGates
) -> tuple[dict[str, int], dict[str, Unmeasured]]:
    """Thousandths by the pod's name, and why some have none."""
    requests: dict[str, int] = {}
    lacking: dict[str, Unmeasured] = {}
    for pod in pods:
        try:
            requests[pod.metadata.name] = _request(pod, resource, container, gates)
        except Unmeasured as error:
            lacking[pod.metadata.name] = error
    return requests, lacking


def _request(pod: Pod, resource: str, container: str, gates: FeatureGates) -> int:
    level = pod.spec.resources
    if not container and level is not None and gates["PodLevelResources"] and any(map(is_pod_level, level.requests)):
        whole = pod_requests(pod, gates=gates).get(resource)
        if whole is None:
            raise Unmeasured(f"missing pod-level request for {resource} in Pod {pod.metadata.name}")
        return whole.milli()
    counted = [one for one in lasting_containers(pod.spec) if container in ("", one.name)]
    if container and not counted:
        raise Unmeasured(f"container {container} not found in Pod {pod.metadata.name}")
    total = 0
    for one in counted:
        request = one.resources.requests.get(resource)
        if request is None:
            raise Unmeasured(f"missing request for {resource} in container {one.name} of Pod {pod.metadata.name}")
        total += request.milli()
    return total


def as_granted(pod: Pod) -> Pod:
    """The pod with the requests that its containers have, where the node tells them: a resize that is deferred,
    infeasible or not yet done is no reason to add or remove pods."""
    statuses = {status.name: status for status in (*pod.status.container_statuses, *pod.status.init_container_statuses)}

    def granted(container: Container) -> Container:
        status = statuses.get(container.name)
        if status is None:
            return container
        has = status.resources.requests if status.resources is not None else status.allocated_resources
        return replace(container, resources=_with_requests(container.resources, has))

    spec = replace(
        pod.spec,
        containers=tuple(map(granted, pod.spec.containers)),
        init_containers=tuple(map(granted, pod.spec.init_containers)),
    )
    if spec.resources is not None and pod.status.resources is not None:
        spec = replace(spec, resources=_with_requests(spec.resources, pod.status.resources.requests))
    return replace(pod, spec=spec)


def _with_requests(wished: ResourceRequirements, has: ResourceList) -> ResourceRequirements:
    """What is not wished does not count, and what is not told is as it is wished."""
    return replace(wished, requests=wished.requests | {name: has[name] for name in wished.requests if name in has})
