"""Detects a sync without changes, which has nothing to do and nothing to report.

Most turns are such: every pod is looked at about once a minute, in case something was missed. Runtime and cgroup are
asked each time; what follows from their answers is worked out only where one of them is new.
"""

import msgspec

from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.decide.cgroup.pod_cgroup import PodValues
from podfit.decide.pod.allocated import PodResources
from podfit.decide.pod.lifecycle.facts import PodFacts
from podfit.kubelet.allocation.manager import Allocated
from podfit.kubelet.pods.reporter import Reporter
from podfit.kubelet.pods.worker_context import WorkerContext


class Observed(msgspec.Struct, frozen=True):
    """All that a turn goes by while nothing is open."""

    desired: Pod
    allocated: Pod
    actuated: PodResources | None
    status: PodStatus
    facts: PodFacts
    values: PodValues


def observed(context: WorkerContext, reporter: Reporter, seen: Allocated, facts: PodFacts) -> Observed | None:
    """None while something is open: a resize, a container that waits, an end, a status that the API does not have, a
    cgroup that is missing or cannot be read.
    """
    if reporter.is_open or seen.conditions:
        return None
    values = context.actuator.cgroups.values(seen.pod)
    if values is None:
        return None
    actuated = context.actuator.actuated(seen.desired.metadata.uid)
    return Observed(seen.desired, seen.pod, actuated, reporter.writer.status, facts, values)
