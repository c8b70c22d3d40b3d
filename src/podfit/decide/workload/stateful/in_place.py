"""The next step of a stateful set that is rolled out in place: pods are resized, and get the label of the new revision.

The label `controller-revision-hash` is all that tells of which revision a pod is, here and upstream: a pod that has the
new one is not replaced. Pods below the partition are left alone, and all of them with the strategy OnDelete.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.core.v1.pods.phase import is_active
from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.workload.history import HASH
from podfit.decide.workload.in_place.asking import differs_in_resources
from podfit.decide.workload.in_place.fates import Fate, PodSteps, pod_steps
from podfit.decide.workload.pods import is_available
from podfit.decide.workload.stateful import identity
from podfit.decide.workload.stateful.steps import Revision, is_running_and_ready, most_unavailable, replaced_from


def candidates(
    owner: StatefulSet, update: Revision, templates: Mapping[str, PodTemplateSpec], pods: Sequence[Pod]
) -> list[Pod]:
    """The pods that a rollout would replace although a resize is enough, the highest first.

    `templates` are those of all revisions, by name.
    """
    begin = replaced_from(owner)
    if begin is None or owner.metadata.deletion_timestamp:
        return []
    fit = {name for name, template in templates.items() if differs_in_resources(update.template, template)}
    found = [
        pod
        for pod in pods
        if identity.is_wanted(owner, pod)
        and identity.ordinal(pod) >= begin
        and is_active(pod)
        and pod.metadata.labels.get(HASH) != update.name
        and pod.metadata.labels.get(HASH) in fit
    ]
    return sorted(found, key=identity.ordinal, reverse=True)


def in_place(
    owner: StatefulSet, old: Sequence[Pod], pods: Sequence[Pod], fates: Mapping[str, Fate], now: datetime
) -> PodSteps:
    """`old` are the candidates in their order, `pods` all of the set's."""

    def available(pod: Pod) -> bool:
        return is_running_and_ready(pod) and is_available(pod, owner.spec.min_ready_seconds, now)

    most = most_unavailable(owner)
    up = sum(available(pod) for pod in pods if identity.is_wanted(owner, pod) and is_active(pod))
    return pod_steps(old, fates, available, spare=most - (identity.size(owner) - up), most=most)
