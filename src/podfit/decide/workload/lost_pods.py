"""Pod garbage collection: orphaned, unscheduled-terminating and surplus terminated pods.

ended       more than 12,500 pods that ended: the oldest go
orphaned    on a node that does not exist, and has not for a while
unplaced    asked to go, and on no node
stranded    asked to go, on a node that is not ready and has the taint out-of-service
"""

from collections.abc import Iterable, Mapping

import msgspec

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.phase import has_ended
from podfit.api.core.v1.pods.types import Pod

MOST_ENDED = 12_500
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


class Lost(msgspec.Struct, frozen=True):
    """A pod that is failed, if it has not ended, and goes at once. With `message` the condition DisruptionTarget says
    why."""

    pod: Pod
    message: str = ""


def lost(pods: Iterable[Pod], nodes: Mapping[str, Node], absent: Iterable[str]) -> list[Lost]:
    """`absent` are nodes that have been missing for long enough."""
    pods, missing = list(pods), frozenset(absent)
    found: dict[str, Lost] = {}
    for pod in pods:
        node, going = pod.spec.node_name, bool(pod.metadata.deletion_timestamp)
        if node in missing:
            found[pod.metadata.uid] = Lost(pod, "PodGC: node no longer exists")
        elif going and not node:
            found[pod.metadata.uid] = Lost(pod)
        elif going and node in nodes and _out_of_service(nodes[node]):
            found[pod.metadata.uid] = Lost(pod, "PodGC: node is out of service")
    for pod in _too_many([pod for pod in pods if has_ended(pod)]):
        found.setdefault(pod.metadata.uid, Lost(pod))
    return list(found.values())


def _too_many(ended: list[Pod]) -> list[Pod]:
    """The oldest; those that were evicted before others."""
    excess = len(ended) - MOST_ENDED
    if excess <= 0:
        return []

    def rank(pod: Pod) -> tuple[bool, str, str]:
        return pod.status.reason != "Evicted", pod.metadata.creation_timestamp or "", pod.metadata.name

    return sorted(ended, key=rank)[:excess]


def _out_of_service(node: Node) -> bool:
    ready = any(condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions)
    return not ready and any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)
