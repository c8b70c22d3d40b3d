"""The next step of a daemon set that is rolled out in place: pods are resized, and get the labels of the new template.

As with a stateful set the label is all that tells of which revision a pod is; with OnDelete nothing is resized.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from podfit.api.apps.v1.daemonsets import DaemonSet
from podfit.api.core.v1.pods.phase import is_active
from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.workload.daemon.nodes import GENERATION
from podfit.decide.workload.daemon.steps import Version, oldest_first, replaces, unavailable
from podfit.decide.workload.history import HASH
from podfit.decide.workload.in_place.asking import differs_in_resources
from podfit.decide.workload.in_place.fates import Fate, PodSteps, pod_steps
from podfit.decide.workload.pods import is_available


def candidates(
    daemons: DaemonSet, version: Version, templates: Mapping[str, PodTemplateSpec], pods: Sequence[Pod]
) -> list[Pod]:
    """The pods that a rollout would replace although a resize is enough; `templates` are those of all revisions, by
    their hash."""
    if not replaces(daemons):
        return []
    fit = {digest for digest, template in templates.items() if differs_in_resources(daemons.spec.template, template)}
    return [
        pod
        for pod in oldest_first(pods)
        if is_active(pod) and not version.of(pod) and pod.metadata.labels.get(HASH) in fit
    ]


def labels_of(version: Version) -> dict[str, str]:
    """What a pod of the present template has."""
    return {HASH: version.digest} | ({GENERATION: version.generation} if version.generation else {})


def in_place(
    daemons: DaemonSet, old: Sequence[Pod], pods: Sequence[Pod], fates: Mapping[str, Fate], wanted: int, now: datetime
) -> PodSteps:
    """`old` are the candidates, `pods` all of the set's, `wanted` on how many nodes there are to be pods."""

    def available(pod: Pod) -> bool:
        return is_available(pod, daemons.spec.min_ready_seconds, now)

    most = unavailable(daemons, wanted)
    up = sum(available(pod) for pod in pods if is_active(pod))
    return pod_steps(old, fates, available, spare=most - (wanted - up), most=most)
