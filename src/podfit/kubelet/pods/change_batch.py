"""Batches of pod changes: decided together, so that they share one write of the checkpoint."""

from collections.abc import Mapping

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.kubelet.allocation.manager import AllocationManager
from podfit.kubelet.pods.pod_changes import same_but_status
from podfit.kubelet.pods.worker import PodWorker


class _Change(msgspec.Struct, frozen=True):
    """A newer version of a pod; `quiet`: only of its status."""

    worker: PodWorker
    pod: Pod
    quiet: bool


class ChangeBatch:
    """Newer versions of pods, one of each, until `carry_out`; those without a worker are over.

    `looks_ahead`: the runtime is asked about the pods while their allocations are written. That takes CPU which growth
    waits for, where the kubelet writes it.
    """

    def __init__(self, allocation: AllocationManager, workers: Mapping[str, PodWorker], *, looks_ahead: bool) -> None:
        self._allocation, self._workers, self._looks_ahead = allocation, workers, looks_ahead
        self._newest: dict[str, _Change] = {}

    async def add(self, pod: Pod) -> None:
        """Each change of a pod's spec is decided about, also where a later one of the same pod has come."""
        uid = pod.metadata.uid
        if uid in self._newest and not self._newest[uid].quiet:
            await self.carry_out()
        worker = self._workers.get(uid)
        if worker is None:
            return
        known = self._newest[uid].pod if uid in self._newest else worker.pod
        self._newest[uid] = _Change(worker, pod, same_but_status(known, pod))

    async def carry_out(self) -> None:
        """Allocation first: a turn that sees the new generation must see what was decided about it, too."""
        with_new_spec = [change for change in self._newest.values() if not change.quiet]
        for change in with_new_spec if self._looks_ahead else ():
            change.worker.look_ahead()
        if with_new_spec:
            await self._allocation.update([change.pod for change in with_new_spec])
        for change in self._newest.values():
            change.worker.update(change.pod, quiet=change.quiet)
        self._newest.clear()
