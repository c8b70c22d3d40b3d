"""QoS classes: Guaranteed, Burstable, BestEffort.

It is computed once, when the pod is created, and a resize may not change it: the pod's cgroup hangs under its class.
"""

from typing import Literal

from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.core.resources import CPU, MEMORY, add

QOSClass = Literal["Guaranteed", "Burstable", "BestEffort"]
_COUNTED = (CPU, MEMORY)


def qos_class(pod: Pod, gates: FeatureGates = DEFAULT_GATES) -> QOSClass:
    """Of the spec alone; only CPU and memory above zero count.

    With `spec.resources` the containers do not matter (R-059). Otherwise a pod is Guaranteed when every container has
    both limits and the sums of requests and limits agree.
    """
    level = pod.spec.resources
    if level is not None and gates["PodLevelResources"]:
        requests, limits = _counted(level.requests), _counted(level.limits)
        bounded = len(limits) == len(_COUNTED)
    else:
        resources = [container.resources for container in all_containers(pod.spec)]
        limited = [_counted(resource.limits) for resource in resources]
        requested = [_counted(resource.requests) for resource in resources]
        requests, limits = (sides[0] if len(sides) == 1 else add(*sides) for sides in (requested, limited))
        bounded = not [limits for limits in limited if len(limits) < len(_COUNTED)]
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if bounded and requests == limits else "Burstable"


def _counted(resources: ResourceList) -> ResourceList:
    return {name: amount for name, amount in resources.items() if name in _COUNTED and amount.nano > 0}


def may_be_exclusive(pod: Pod, gates: FeatureGates) -> bool:
    """Whether the pod's containers may have CPUs and memory to themselves: it is Guaranteed, as the API says.

    A pod with pod-level resources shares: nobody says which of its containers they would belong to.
    """
    return pod.status.qos_class == "Guaranteed" and not (pod.spec.resources is not None and gates["PodLevelResources"])
