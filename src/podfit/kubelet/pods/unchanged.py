"""Detects a look without changes, after which there is nothing to do and nothing to report.

Most turns are such: every pod is looked at about once a minute, in case something was missed. Runtime and cgroup are
asked each time; what follows from their answers is worked out only where one of them is new.
"""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.decide.cgroup.pod_cgroup import PodValues
from podfit.decide.lifecycle.facts import PodFacts
from podfit.decide.lifecycle.life import PodLife
from podfit.decide.pod.allocated import PodResources
from podfit.kubelet.pods.worker_context import WorkerContext
from podfit.kubelet.status.writer import StatusWriter


class _Observed(msgspec.Struct, frozen=True):
    """All that a turn goes by while nothing is open."""

    desired: Pod
    allocated: Pod
    actuated: PodResources | None
    status: PodStatus
    facts: PodFacts
    values: PodValues


class Unchanged:
    """What a worker keeps of one pod. What was last found when nothing was left to do is kept. A pod that is new, as in
    a resize, is no pod at rest."""

    def __init__(self, context: WorkerContext, writer: StatusWriter, life: Callable[[], PodLife]) -> None:
        self._context, self._writer, self._life = context, writer, life
        self._last: Pod | None = None
        self._known = False
        self._found: _Observed | None = None
        self._kept: _Observed | None = None

    def begin(self) -> None:
        """A turn begins."""
        pod = self._life().pod
        self._known, self._last = pod is self._last, pod

    def keep(self) -> None:
        self._kept = self._found

    async def found(self, facts: PodFacts) -> Pod | None:
        """The allocated pod with its status, where all is as it was kept."""
        self._found = await self._observed(facts) if self._known else None
        if self._found is not None and self._found == self._kept:
            return replace(self._found.allocated, status=self._found.status)
        self._kept = None
        return None

    async def _observed(self, facts: PodFacts) -> _Observed | None:
        """None while something is open: a resize, a container that waits, an end, volumes that are not mounted, a
        status that the API does not have, a cgroup that is missing or cannot be read.
        """
        context, life = self._context, self._life
        if life().is_open or not life().mounted or not self._writer.is_written:
            return None
        seen = await context.allocation.look(lambda: life().pod)
        values = None if seen.conditions else context.actuator.cgroups.values(seen.pod)
        if values is None:
            return None
        actuated = context.actuator.actuated(seen.desired.metadata.uid)
        return _Observed(seen.desired, seen.pod, actuated, self._writer.status, facts, values)
