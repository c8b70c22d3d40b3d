"""Which events make the updater look at a VPA before its next pass.

a pod became Ready            its boost ends
a container was started again its boost comes back
a container ran out of memory it is to have more
a resize has ended            the next pod of the workload may have its turn
a recommendation moved        by a tenth or more, of a target or a bound; so does the first one
a VPA's spec was changed
"""

from collections.abc import Iterator

from podfit.api.autoscaling_k8s.v1 import RecommendedContainerResources, RecommendedPodResources, VerticalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.decide.autoscaling.container_view import statuses_of
from podfit.decide.autoscaling.oom import ran_out
from podfit.decide.autoscaling.policies import recommended
from podfit.decide.autoscaling.slices import stored
from podfit.decide.pod.resize_state import ResizeStage, ResizeState
from podfit.decide.workload.pods import is_ready

MOVED = 0.1
"""Each pass of a recommender moves every recommendation a little; what is less than this is left to the passes."""


def concerns(old: Pod, new: Pod) -> bool:
    """Whether a change of a pod is one of those events."""
    if not new.spec.node_name:
        return False
    if is_ready(new) and not is_ready(old):
        return True
    if _starts(new) > _starts(old) or any(ran_out(old, new)):
        return True
    return _resizes(old) and not _resizes(new)


def _starts(pod: Pod) -> int:
    return sum(status.restart_count for status in statuses_of(pod))


def _resizes(pod: Pod) -> bool:
    return ResizeState.of(pod).stage is not ResizeStage.NONE


def asks(old: VerticalPodAutoscaler | None, new: VerticalPodAutoscaler) -> bool:
    """Whether a change of a VPA, or a new one, is to be looked at at once."""
    if old is None:
        return new.status.recommendation is not None
    if new.spec != old.spec:
        return True
    slices, earlier = stored(new).slices, stored(old).slices
    if slices is not earlier and any(_moves(earlier.get(name), now) for name, now in slices.items()):
        return True
    return _moves(old.status.recommendation, new.status.recommendation)


def _moves(before: RecommendedPodResources | None, after: RecommendedPodResources | None) -> bool:
    if after is None or after == before:
        return False
    return any(_moved(recommended(before, now.container_name), now) for now in after.container_recommendations)


def _moved(before: RecommendedContainerResources | None, after: RecommendedContainerResources) -> bool:
    if before is None:
        return True
    return any(_differ(was, now) for was, now in _amounts(before, after))


def _amounts(
    before: RecommendedContainerResources, after: RecommendedContainerResources
) -> Iterator[tuple[ResourceList, ResourceList]]:
    yield before.target, after.target
    yield before.lower_bound, after.lower_bound
    yield before.upper_bound, after.upper_bound


def _differ(before: ResourceList, after: ResourceList) -> bool:
    for name, amount in after.items():
        was = before.get(name)
        if was is None or abs(amount.milli() - was.milli()) >= MOVED * max(1, was.milli()):
            return True
    return False
