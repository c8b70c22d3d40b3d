"""Makes room for several deferred resizes of a node, in the node's own queue order."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.api.meta.base import ResourceList
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.decide.node.room.plan import Impossible, NothingNeeded, RoomPlan, Targets, allocated_form, plan
from podfit.decide.pod.resize_state import ResizeState
from podfit.decide.resize.queue_order import QueueKey, queue_key

Outcome = tuple[Pod, NothingNeeded | RoomPlan | Impossible]


def turn_of(pod: Pod, gates: FeatureGates = DEFAULT_GATES) -> QueueKey:
    """Sorts pods that wait into the order of their node."""
    return queue_key(pod, allocated_form(pod, gates), ResizeState.of(pod).waits_since)


def in_turn(
    waiting: Iterable[Pod],
    pods: Mapping[str, Pod],
    allocatable: ResourceList,
    targets: Targets,
    *,
    evict: bool = False,
    gates: FeatureGates = DEFAULT_GATES,
) -> list[Outcome]:
    """`waiting` in its order, `pods` by UID all that are active on the node. Ends with the first plan: when it has been
    acted on the facts are other ones.
    """
    counted, outcomes = dict(pods), list[Outcome]()
    for pod in waiting:
        others = [other for uid, other in counted.items() if uid != pod.metadata.uid]
        outcome = plan(pod, others, allocatable, targets, evict=evict, gates=gates)
        outcomes.append((pod, outcome))
        if isinstance(outcome, RoomPlan):
            break
        if isinstance(outcome, NothingNeeded):
            counted[pod.metadata.uid] = granted(pod)
    return outcomes


def granted(pod: Pod) -> Pod:
    """A pod whose resize is on its way, as it will count: at what it desires."""
    return replace(pod, status=PodStatus(phase=pod.status.phase, qos_class=pod.status.qos_class))
