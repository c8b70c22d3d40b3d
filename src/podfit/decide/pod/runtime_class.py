"""Applies a RuntimeClass to a pod: overhead and scheduling."""

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.node.v1.types import RuntimeClass, Scheduling


class Conflict(msgspec.Struct, frozen=True):
    """Why the pod cannot be run so."""

    text: str


def with_runtime_class(spec: PodSpec, runtime: RuntimeClass | None) -> PodSpec | Conflict:
    """The pod with the class's overhead, and kept to the nodes that have it; the same spec when nothing is added."""
    overhead = runtime.overhead.pod_fixed if runtime and runtime.overhead else {}
    if spec.overhead and not overhead:
        return Conflict("Pod Overhead set without corresponding RuntimeClass defined Overhead")
    if spec.overhead and spec.overhead != overhead:
        return Conflict("Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    if overhead and not spec.overhead:
        spec = replace(spec, overhead=overhead)
    return _placed(spec, runtime.scheduling) if runtime and runtime.scheduling else spec


def _placed(spec: PodSpec, scheduling: Scheduling) -> PodSpec | Conflict:
    selector = spec.node_selector
    for key, value in sorted(scheduling.node_selector.items()):
        if selector.get(key, value) != value:
            wanted = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}"
            return Conflict(f"conflict: {wanted}; pod.spec.nodeSelector[{key}] = {selector[key]}")
    tolerations = tuple(dict.fromkeys((*spec.tolerations, *scheduling.tolerations)))
    both = {**selector, **scheduling.node_selector}
    if (both, tolerations) == (selector, spec.tolerations):
        return spec
    return replace(spec, node_selector=both, tolerations=tolerations)
