"""The QoS class: who is squeezed and evicted first (spec 1.7).

It is computed once, when the pod is created, and a resize may not change it: the pod's cgroup hangs under its class.
"""

from typing import Literal

from podfit.api.base import ResourceList
from podfit.api.core.pods import Pod
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.core.resources import CPU, MEMORY, add, only, positive

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
        containers = (*pod.spec.containers, *pod.spec.init_containers)
        requests = add(*(_counted(each.resources.requests) for each in containers))
        limits = add(*(_counted(each.resources.limits) for each in containers))
        bounded = all(len(_counted(each.resources.limits)) == len(_COUNTED) for each in containers)
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if bounded and requests == limits else "Burstable"


def _counted(resources: ResourceList) -> ResourceList:
    return positive(only(resources, _COUNTED))
