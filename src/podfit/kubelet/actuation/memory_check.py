"""What is measured before memory limits are lowered, for `decide.node.actuation` to judge (R-143). A pod that asked for
it is guarded on cgroup v2, where memory is reclaimed until the limits fit, or the limits stay (docs/shrink.md).
"""

import logging
from collections.abc import Mapping

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.node.events import ActuationDue, ActuationEnded, MemoryMeasured
from podfit.decide.resize import guarded_shrink as guarded
from podfit.decide.resize import memory_shrink as shrink
from podfit.decide.resize.memory_shrink import Memory
from podfit.kubelet.actuation.guarded_shrink import Guard, Hold
from podfit.kubelet.cgroup.protocol import CgroupError, Cgroups, Missing
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.protocol import Runtime

log = logging.getLogger(__name__)


class MemoryCheck:
    """`default` is what pods get that do not say: `checked` or `guarded`."""

    def __init__(self, runtime: Runtime, cgroups: Cgroups, guard: Guard, *, default: str) -> None:
        self._runtime, self._cgroups, self._guard, self._default = runtime, cgroups, guard, default

    def hold(self) -> Hold:
        """To be left only when the limits that were allowed have been written."""
        return self._guard.hold()

    async def measured(
        self, due: ActuationDue, path: str, live: Mapping[str, str], limits: Memory, hold: Hold
    ) -> MemoryMeasured | ActuationEnded:
        """What is used where the limits are to come. `path` is the pod's cgroup, `live` are ids of its containers by
        name.
        """
        pod, paths = due.pod, {name: f"{path}/{live[name]}" for name in limits.containers}
        try:
            if self._guarded(pod) and all(map(self._cgroups.exists, paths.values())):
                problem = await self._shrink_guarded(path, paths, limits, hold)
                return ActuationEnded(pod, problem) if problem else MemoryMeasured(due, None)
            return MemoryMeasured(due, await self._usage(path, paths, live, limits))
        except (CRIError, CgroupError) as error:
            log.warning("memory usage not read pod=%s/%s error=%s", pod.metadata.namespace, pod.metadata.name, error)
            return ActuationEnded(pod, shrink.unreadable(pod))

    def _guarded(self, pod: Pod) -> bool:
        return self._cgroups.version == "v2" and guarded.asked_for(pod.metadata.annotations, self._default)

    async def _shrink_guarded(self, path: str, paths: Mapping[str, str], limits: Memory, hold: Hold) -> str:
        for target in guarded.targets(limits):
            where = path if target.container is None else paths[target.container]
            problem = await hold.shrink(target.who, where, target.limit)
            if problem:
                return shrink.refusal([problem])
        return ""

    async def _usage(self, path: str, paths: Mapping[str, str], live: Mapping[str, str], limits: Memory) -> Memory:
        """Read from the kernel, which is never stale; from the runtime where it keeps its containers elsewhere."""
        whole = self._cgroups.memory_usage(path) if limits.pod is not None else None
        return Memory(whole, {name: await self._of(paths[name], live[name]) for name in limits.containers})

    async def _of(self, path: str, container_id: str) -> int | None:
        try:
            return self._cgroups.read_container(path).memory_usage
        except Missing:
            return (await self._runtime.container_stats(container_id)).memory_usage
