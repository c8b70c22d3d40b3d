"""Guarded memory shrinks by the updater: podfit's nodes lower limits step by step (docs/shrink.md)."""

from collections.abc import Mapping

from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import ZERO
from podfit.core.resources import MEMORY
from podfit.decide.autoscaling.container_view import sized
from podfit.decide.autoscaling.patches import Operation, Resources
from podfit.decide.resize.guarded_shrink import ANNOTATION, GUARDED
from podfit.decide.resize.steps import lowers


def guards(pod: Pod, wanted: Mapping[str, Resources]) -> tuple[Operation, ...]:
    """How a pod is marked before its memory limit is lowered; nothing where none is, or where it says itself how."""
    if ANNOTATION in pod.metadata.annotations or not _tightens(pod, wanted):
        return ()
    mark: Operation = {"op": "add", "path": f"/metadata/annotations/{ANNOTATION.replace('/', '~1')}", "value": GUARDED}
    if pod.metadata.annotations:
        return (mark,)
    return {"op": "add", "path": "/metadata/annotations", "value": {}}, mark


def differs(pod: Pod, wanted: Mapping[str, Resources]) -> bool:
    """Whether its spec asks for anything else."""
    for container, *_ in sized(pod, wanted):
        found = wanted.get(container.name)
        if found is None:
            continue
        asked = container.resources
        if any(asked.requests.get(name) != amount for name, amount in found.requests.items()):
            return True
        if any(asked.limits.get(name) != amount for name, amount in found.limits.items()):
            return True
    return False


def _tightens(pod: Pod, wanted: Mapping[str, Resources]) -> bool:
    for container, own, *_ in sized(pod, wanted):
        limit = wanted[container.name].limits.get(MEMORY) if container.name in wanted else None
        if limit is not None and lowers(limit, own.limits.get(MEMORY, ZERO)):
            return True
    return False
