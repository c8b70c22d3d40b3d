"""Resource requests and limits of a pod as a whole, as scheduler, kubelet and quota count them.

A resize makes "the size of a pod" ambiguous: desired, allocated and actual may all differ. Whoever shares out a node
has to assume the largest of them, because the pod may hold that much now or be granted it any moment; only a resize
that the node called infeasible will not happen, so its desire does not count. `use_status` turns that rule on; without
it the spec alone speaks, which is right for pods that do not run yet and for the allocated pod itself.
"""

from collections.abc import Mapping

from podfit.api.core.v1.pods.aggregate import aggregate, sidecar_names
from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.core.resources import add, maximum, positive, subtract
from podfit.core.resources import pod_level as is_pod_level
from podfit.decide.pod.resize_state import ResizeState


def pod_requests(
    pod: Pod,
    *,
    gates: FeatureGates = DEFAULT_GATES,
    use_status: bool = False,
    pod_level: bool = True,
    overhead: bool = True,
    missing: ResourceList | None = None,
) -> ResourceList:
    """What the pod asks a node to set aside, by resource name.

    `pod_level=False` ignores `spec.resources` and answers the aggregate of the containers; `overhead=False` leaves the
    runtime class's overhead out; a container that does not name a resource of `missing` counts for that much. Overhead
    that the kubelet already counted into the pod's status is taken off again before it is added.
    """
    reported = _reported(pod) if use_status else {}

    def measure(container: Container) -> ResourceList:
        status = reported.get(container.name)
        if status is None or status.resources is None:
            return container.resources.requests
        held = maximum(status.resources.requests, status.allocated_resources)
        return _counted(pod, container.resources.requests, held)

    result = aggregate(pod.spec, (lambda container: {**missing, **measure(container)}) if missing else measure)
    level = pod.spec.resources
    if pod_level and level is not None and gates["PodLevelResources"]:
        effective = level.requests
        if use_status and pod.status.resources is not None and gates["InPlacePodLevelResourcesVerticalScaling"]:
            held = _without_overhead(pod, maximum(pod.status.resources.requests, pod.status.allocated_resources))
            effective = _counted(pod, effective, held)
        result |= {name: effective[name] for name in level.requests if is_pod_level(name) and name in effective}
    return add(result, pod.spec.overhead) if overhead and pod.spec.overhead else result


def pod_limits(
    pod: Pod,
    *,
    gates: FeatureGates = DEFAULT_GATES,
    use_status: bool = False,
    pod_level: bool = True,
    overhead: bool = True,
) -> ResourceList:
    """The most that the pod may use, by resource name; flags as for `pod_requests`. A name without a limit anywhere is
    absent, and overhead is added only where there is a limit."""
    reported = _reported(pod) if use_status else {}

    def measure(container: Container) -> ResourceList:
        status = reported.get(container.name)
        if status is None or status.resources is None:
            return container.resources.limits
        return _counted(pod, container.resources.limits, status.resources.limits)

    result = aggregate(pod.spec, measure)
    level = pod.spec.resources
    if pod_level and level is not None and gates["PodLevelResources"]:
        effective = level.limits
        if use_status and pod.status.resources is not None and gates["InPlacePodLevelResourcesVerticalScaling"]:
            effective = _counted(pod, effective, _without_overhead(pod, pod.status.resources.limits))
        result |= {name: effective[name] for name in level.limits if is_pod_level(name) and name in effective}
    if overhead:
        result |= {name: result[name] + extra for name, extra in pod.spec.overhead.items() if result.get(name)}
    return result


def _counted(pod: Pod, desired: ResourceList, held: ResourceList) -> ResourceList:
    """What is held, and what is desired unless the node refused that for good (R-079)."""
    if desired == held:
        return desired
    return held if ResizeState.of(pod).infeasible else maximum(desired, held)


def _reported(pod: Pod) -> Mapping[str, ContainerStatus]:
    """The statuses that count: a plain init container is over before anything else shares its room (R-084)."""
    sidecars = sidecar_names(pod.spec)
    initial = (status for status in pod.status.init_container_statuses if status.name in sidecars)
    return {status.name: status for status in (*initial, *pod.status.container_statuses)}


def _without_overhead(pod: Pod, reported: ResourceList) -> ResourceList:
    if not pod.spec.overhead:
        return reported
    extra = {name: amount for name, amount in pod.spec.overhead.items() if name in reported}
    return positive(subtract(reported, extra))
