"""Terminates a pod: stops its containers, then removes what was made for it.

    stop containers       by the grace period; the room is free from here on, before the API knows
    stop sandboxes        then the final status: Succeeded or Failed
    volumes and cgroup    gone
    remove sandboxes      with containers and logs, once the object is deleted or being deleted
    delete the object     with grace 0 and its uid: the API was waiting for this

Each step can be repeated, so an end that was interrupted begins again from the top.
"""

import logging
import shutil
from collections.abc import Awaitable, Callable
from functools import partial

from podfit.api.core.v1.pods.static_pods import is_static
from podfit.api.core.v1.pods.types import Pod
from podfit.core.errors import ApiError
from podfit.decide.pod.lifecycle.termination import spec_grace
from podfit.kubelet.cgroup.protocol import Busy, Cgroups, Missing
from podfit.kubelet.pods.configs import log_directory
from podfit.kubelet.pods.reporter import Reporter
from podfit.kubelet.pods.runtime_facts import observe
from podfit.kubelet.pods.worker_context import WorkerContext
from podfit.kubelet.runtime import labels

log = logging.getLogger(__name__)

BUSY_SECONDS = 0.05
BUSY_TRIES = 40
_GONE = (404, 409)


class PodEnd:
    """The end of one pod. `gone` says to both steps that the API object does not exist any more."""

    def __init__(self, context: WorkerContext, reporter: Reporter) -> None:
        self._context = context
        self._reporter = reporter

    async def stop(self, pod: Pod, *, gone: bool) -> None:
        """Stop everything and say so. Containers stay in the runtime, for their logs and exit codes."""
        uid, killer = pod.metadata.uid, self._context.killer
        facts = await self._context.look(pod)
        allocated = self._context.allocation.allocated(pod)
        reporting = not gone and not self._reporter.ended
        if reporting:
            await self._reporter.report(lambda: pod, facts, ending=True)
        await killer.stop_pod(allocated, facts, self._grace(pod, gone=gone))
        self._context.probes.forget(uid)
        facts = await observe(self._context.runtime, uid)
        if not self._reporter.was_rejected:
            await self._reporter.freed(pod, facts)
        await killer.stop_sandboxes(facts)
        facts = await observe(self._context.runtime, uid)
        if not self._reporter.was_rejected:  # of such a pod there is nothing to add
            await self._reporter.report(lambda: pod, facts, ending=True)
        await self._context.volumes.remove(uid)
        await remove_cgroup(self._context.cgroups, self._context.actuator.cgroups.path(pod), self._context.clock.sleep)

    async def delete(self, pod: Pod, *, gone: bool) -> None:
        """After `stop`: remove what is left, and let the API object go."""
        facts = await observe(self._context.runtime, pod.metadata.uid)
        if not gone:
            await self._reporter.writer.written()
        await self._context.killer.stop_sandboxes(facts)
        await self._context.killer.remove_sandboxes(facts)
        logs = log_directory(self._context.config.log_root, labels.ref(pod))
        await self._context.volumes.writer.run(logs, partial(shutil.rmtree, logs, ignore_errors=True))
        self._context.actuator.forget(pod.metadata.uid)
        if not gone:
            await self._delete_object(pod)

    async def _delete_object(self, pod: Pod) -> None:
        meta = pod.metadata
        try:
            await self._context.client.delete(Pod, meta.name, meta.namespace, grace=0, uid=meta.uid)
        except ApiError as error:
            if error.code not in _GONE:
                raise
            log.info("pod was gone already pod=%s", labels.ref(pod))

    def _grace(self, pod: Pod, *, gone: bool) -> int:
        """At least a second; an object that vanished was deleted by force, a file was not."""
        if gone and not is_static(pod):
            return 1
        failure = self._reporter.failure
        if failure is not None and failure.grace is not None:
            return failure.grace
        asked = pod.metadata.deletion_grace_period_seconds
        if pod.metadata.deletion_timestamp is not None and asked is not None:
            return max(1, asked)
        return max(1, spec_grace(pod))


async def remove_cgroup(cgroups: Cgroups, path: str, sleep: Callable[[float], Awaitable[None]]) -> None:
    """The kernel needs a moment to let go of the processes of a container that was just killed. Raises CgroupError."""
    for left in reversed(range(BUSY_TRIES)):
        try:
            cgroups.remove(path)
        except Missing:
            return
        except Busy:
            if not left:
                raise
            await sleep(BUSY_SECONDS)
        else:
            return
