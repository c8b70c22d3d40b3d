"""QoS classes: Guaranteed, Burstable, BestEffort.

It is computed once, when the pod is created, and a resize may not change it: the pod's cgroup hangs under its class.
"""

from operator import is_
from typing import Literal, cast

from podfit.api.core.v1.pods.aggregate import all_containers
from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.core.resources import CPU, MEMORY, add

QOSClass = Literal["Guaranteed", "Burstable", "BestEffort"]
_COUNTED = (CPU, MEMORY)


def qos_class(pod: Pod, gates: FeatureGates = DEFAULT_GATES) -> QOSClass:
    """The class by the spec alone; only CPU and memory above zero count.

    With `spec.resources` the containers do not matter (R-059). Otherwise a pod is Guaranteed when every container has
    both limits and the sums of requests and limits agree.
    """
    level = pod.spec.resources
    if level is not None and gates["PodLevelResources"]:
        return _class_of((level,))
    resources = tuple([container.resources for container in all_containers(pod.spec)])
    last, told = _last.classed
    if len(last) != len(resources) or not all(map(is_, last, resources)):
        told = _class_of(resources)
        _last.classed = resources, told
    return told


def held_class(pod: Pod, gates: FeatureGates = DEFAULT_GATES) -> QOSClass:
    """The class under which the pod was created, which no resize changes; by its spec where its status has none."""
    return cast("QOSClass", pod.status.qos_class or qos_class(pod, gates))


class _Last:
    """The resources of the containers that were classed last: of a new pod they are asked about twice, and all pods of
    a template have the very same."""

    classed: tuple[tuple[ResourceRequirements, ...], QOSClass] = (), "BestEffort"


_last = _Last()


def _class_of(resources: tuple[ResourceRequirements, ...]) -> QOSClass:
    limited = [_counted(side.limits) for side in resources]
    requested = [_counted(side.requests) for side in resources]
    requests, limits = (requested[0], limited[0]) if len(resources) == 1 else (add(*requested), add(*limited))
    bounded = min(map(len, limited), default=len(_COUNTED)) == len(_COUNTED)
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if bounded and requests == limits else "Burstable"


def _counted(resources: ResourceList) -> ResourceList:
    return {name: resources[name] for name in _COUNTED if name in resources and resources[name].nano > 0}


def may_be_exclusive(pod: Pod, gates: FeatureGates) -> bool:
    """Whether the pod's containers may have CPUs and memory to themselves: it is Guaranteed, as the API says.

    A pod with pod-level resources shares: nobody says which of its containers they would belong to.
    """
    return pod.status.qos_class == "Guaranteed" and not (pod.spec.resources is not None and gates["PodLevelResources"])
