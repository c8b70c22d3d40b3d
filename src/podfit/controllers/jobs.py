"""The job controller: runs pods until enough of them have succeeded, or too many failed.

    job or pod changes ─▶ see ─▶ over: end its pods;  else: make or end some
                                        │
                     note who ended ─▶ free them of the finalizer ─▶ count them, and say that it is over

Changes of pods are gathered for a second. A job is looked at again only when its copy shows what was last written.
"""

import asyncio
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from podfit.api.batch.v1.types import Job, JobStatus
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.owners import controller_named, controller_of
from podfit.api.meta.selectors import requirements
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import Controller, Key, key_of
from podfit.controllers.expectations import Expectations
from podfit.controllers.owners import Owned, owner_in
from podfit.controllers.pod_control import NORMAL, NOT_FOUND, WARNING, PodControl, namespace_ends
from podfit.controllers.selecting import Selecting
from podfit.controllers.slow_start import slow_start
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.decide.workload.job.backoff import Failures
from podfit.decide.workload.job.evaluate import completed, deadline_in, see
from podfit.decide.workload.job.manage import step
from podfit.decide.workload.job.pods import FINALIZER, is_suspended, is_tracked
from podfit.decide.workload.job.state import COMPLETE, FAILED, SUSPENDED, JobState, is_over, said, size_of
from podfit.decide.workload.job.track import counted, ended, suspended, track
from podfit.decide.workload.pods import is_ready
from podfit.net.loop_turns import beside

COMPONENT = "job-controller"
WORKERS = 5
TOO_MANY = "Too many succeeded pods running after completion count reached"
RETRY = 1.0
"""Seconds after a first failure, as upstream's; 60 at most."""
GATHERED = 1.0
"""Seconds for which changes of pods are gathered, as upstream's."""


class OrphanedPod(msgspec.Struct, frozen=True):
    """A pod whose job does not exist any more: it is freed, so that it can go."""

    namespace: str
    name: str


class _Memory(msgspec.Struct):
    """What is remembered of one job: UIDs that were freed and not seen so, the version that was written, failures since
    a success."""

    freed: set[str] = msgspec.field(default_factory=set)
    written: int = 0
    failures: Failures = Failures()


class JobController(Controller[Key | OrphanedPod]):
    def __init__(self, client: Client, *, informers: Informers, recorder: EventRecorder, clock: Clock) -> None:
        self._client, self._clock, self._recorder = client, clock, recorder
        self._jobs, self._pods = informers.of(Job), informers.of(Pod)
        self._owned = Owned(client, Pod, self._pods)
        self._selecting = Selecting(self._jobs, lambda job: requirements(job.spec.selector) or None)
        self._control = PodControl(client, recorder)
        self._expectations: Expectations[Key] = Expectations(clock)
        self._memories: dict[Key, _Memory] = {}
        super().__init__(clock, self._jobs, self._pods, workers=WORKERS, retry=RETRY)
        self._jobs.add_handler(
            add=lambda new: self.queue.add(key_of(new)), update=self._job_changed, delete=self._job_gone
        )
        self._pods.add_handler(add=self._pod_added, update=self._pod_changed, delete=self._pod_gone)

    # ------------------------------------------------------------------ what happens

    def _job_changed(self, old: Job, new: Job) -> None:
        """A new status is mostly the controller's own."""
        at_once = old.metadata.generation != new.metadata.generation or new.metadata.deletion_timestamp
        self.queue.add_after(key_of(new), 0 if at_once else GATHERED)

    def _job_gone(self, job: Job) -> None:
        self._expectations.forget(key_of(job))
        self._memories.pop(key_of(job), None)
        for pod in self._owned.of(job):
            self._leave(pod)

    def _pod_added(self, pod: Pod) -> None:
        if (job := self._job_of(pod)) is not None:
            self._expectations.created(key_of(job))
            self.queue.add_after(key_of(job), GATHERED)
        else:
            self._leave(pod)
            self._orphaned(pod)

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if (job := self._job_of(new)) is None:
            self._leave(new)
            self._orphaned(new)
            return
        key = key_of(job)
        if new.metadata.deletion_timestamp and not old.metadata.deletion_timestamp:
            self._expectations.deleted(key, new.metadata.uid)
        if not is_tracked(new) and key in self._memories:
            self._memories[key].freed.discard(new.metadata.uid)
        self.queue.add_after(key, GATHERED)

    def _pod_gone(self, pod: Pod) -> None:
        if (job := self._job_of(pod)) is not None:
            key = key_of(job)
            self._expectations.deleted(key, pod.metadata.uid)
            if key in self._memories:
                self._memories[key].freed.discard(pod.metadata.uid)
            self.queue.add_after(key, GATHERED)

    def _orphaned(self, pod: Pod) -> None:
        """Who could adopt it."""
        if controller_of(pod.metadata) is None and pod.metadata.labels:
            for key in self._selecting.keys(pod.metadata):
                self.queue.add_after(key, GATHERED)

    def _leave(self, pod: Pod) -> None:
        owner = controller_named(pod.metadata)
        if is_tracked(pod) and (owner is None or (owner.group, owner.kind) == ("batch", "Job")):
            self.queue.add(OrphanedPod(pod.metadata.namespace, pod.metadata.name))

    def _job_of(self, pod: Pod) -> Job | None:
        return owner_in(self._jobs, pod)

    # ------------------------------------------------------------------ what is done

    async def reconcile(self, key: Key | OrphanedPod) -> float | None:
        if isinstance(key, OrphanedPod):
            pod = self._pods.get(key.name, key.namespace)
            if pod is not None and is_tracked(pod) and self._job_of(pod) is None:
                await self._free(pod)
            return None
        namespace, name = key
        job = self._jobs.get(name, namespace)
        if job is None or job.spec.managed_by not in (None, "kubernetes.io/job-controller"):
            return None
        memory = self._memories.setdefault(key, _Memory())
        if int(job.metadata.resource_version or 0) < memory.written:
            return None  # the change that shows it is on its way
        pods = await self._owned.claim(
            job, requirements(job.spec.selector), [*self._owned.of(job), *self._owned.orphans(namespace)]
        )
        if is_over(job):
            await self._freed([pod for pod in pods if is_tracked(pod)], memory)
            return None
        return await self._advance(key, job, pods, memory)

    async def _advance(self, key: Key, job: Job, pods: Sequence[Pod], memory: _Memory) -> float | None:
        now, believed = self._clock.now(), self._expectations.satisfied(key)
        size = size_of(job, pods)
        seen = await beside(size, see, job, pods, frozenset(memory.freed), memory.failures, now)
        started = job.status.start_time or (None if is_suspended(job) else format_time(now))
        status = replace(job.status, start_time=started)
        gone, new, again, failure, decided = list[Pod](), 0, deadline_in(seen), None, False
        if seen.target is not None:
            gone, failure = await self._end(key, job, seen.active)
            if not believed or len(gone) != len(seen.active):
                again, seen, decided = GATHERED, replace(seen, target=None), True
        elif believed and not job.metadata.deletion_timestamp:
            todo = await beside(size, step, seen)
            gone, failure = await self._end(key, job, todo.end, free=True)
            if todo.make:
                new, failure = await self._make(key, job, todo.make)
            again = min((seconds for seconds in (again, todo.again) if seconds is not None), default=None)
            status = suspended(seen, status)
        doomed = {pod.metadata.uid for pod in gone}
        left = [pod for pod in seen.active if pod.metadata.uid not in doomed]
        status = replace(
            status, active=len(left) + new, ready=sum(map(is_ready, left)), terminating=seen.terminating + len(gone)
        )
        if seen.target is None and not decided and (target := completed(seen, status.active)) is not None:
            seen = replace(seen, target=target)
        await self._track(key, seen, status, memory)
        self.rest(key, len(pods))
        if failure is not None:
            raise failure
        return again

    async def _track(self, key: Key, seen: JobState, status: JobStatus, memory: _Memory) -> None:
        """Note, free, count."""
        job, size = seen.job, size_of(seen.job, seen.pods)
        tracked = await beside(size, track, seen, status)
        job = await self._write(key, job, tracked.status, memory)
        freed = await self._freed(tracked.free, memory)
        memory.failures = seen.failures
        if len(freed) < len(tracked.free):
            self.queue.add_after(key, GATHERED)
        still = {pod.metadata.uid for pod in seen.pods if is_tracked(pod)} - freed - seen.freed
        final = ended(job, seen, counted(job.status, still), whole=tracked.whole)
        job = await self._write(key, job, final, memory)
        if is_over(job) and not is_over(seen.job):
            self._tell_end(job)

    async def _write(self, key: Key, job: Job, status: JobStatus, memory: _Memory) -> Job:
        if status == job.status:
            return job
        before = {condition.type: condition.status for condition in job.status.conditions}
        written = await self._client.update_status(replace(job, status=status))
        memory.written = int(written.metadata.resource_version)
        for condition in status.conditions:
            if condition.type == SUSPENDED and before.get(SUSPENDED) != condition.status:
                self._recorder.event(
                    job, NORMAL, "Suspended" if condition.status == "True" else "Resumed", condition.message
                )
        return written

    def _tell_end(self, job: Job) -> None:
        if said(job, COMPLETE) is not None:
            if job.spec.completions is not None and job.status.succeeded > job.spec.completions:
                self._recorder.event(job, WARNING, "TooManySucceededPods", TOO_MANY)
            self._recorder.event(job, NORMAL, "Completed", "Job completed")
        elif (failed := said(job, FAILED)) is not None:
            self._recorder.event(job, WARNING, failed.reason, failed.message)

    # ------------------------------------------------------------------ pods

    async def _make(self, key: Key, job: Job, pods: Sequence[Pod]) -> tuple[int, Exception | None]:
        self._expectations.expect(key, creations=len(pods))

        async def make(index: int) -> None:
            try:
                await self._control.create(job, pods[index])
            except ApiError as error:
                if not namespace_ends(error):
                    raise
                self._expectations.created(key)

        done, failure = await slow_start(len(pods), make)
        self._expectations.created(key, len(pods) - done)
        return done, failure

    async def _end(
        self, key: Key, job: Job, pods: Sequence[Pod], *, free: bool = False
    ) -> tuple[list[Pod], Exception | None]:
        """Those that were asked to go; with `free` they do not count."""
        if not pods:
            return [], None
        self._expectations.expect(key, deletions=[pod.metadata.uid for pod in pods])

        async def end(pod: Pod) -> None:
            try:
                if free and is_tracked(pod):
                    await self._free(pod)
                gone = not await self._control.delete(job, pod)
            except ApiError:
                self._expectations.deleted(key, pod.metadata.uid)
                raise
            if gone:
                self._expectations.deleted(key, pod.metadata.uid)

        found = await asyncio.gather(*map(end, pods), return_exceptions=True)
        failures = [outcome for outcome in found if isinstance(outcome, BaseException)]
        for failure in failures:
            if not isinstance(failure, ApiError):
                raise failure
        asked = [pod for pod, failure in zip(pods, found, strict=True) if failure is None]
        return asked, next((failure for failure in failures if isinstance(failure, Exception)), None)

    async def _freed(self, pods: Sequence[Pod], memory: _Memory) -> set[str]:
        """UIDs of those that bear the finalizer no more."""

        async def free(pod: Pod) -> str:
            memory.freed.add(pod.metadata.uid)
            try:
                await self._free(pod)
            except BaseException:
                memory.freed.discard(pod.metadata.uid)
                raise
            return pod.metadata.uid

        found = await asyncio.gather(*map(free, pods), return_exceptions=True)
        for failure in found:
            if isinstance(failure, BaseException) and not isinstance(failure, ApiError):
                raise failure
        return {outcome for outcome in found if isinstance(outcome, str)}

    async def _free(self, pod: Pod) -> None:
        meta = pod.metadata
        patch = {"metadata": {"uid": meta.uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
        try:
            await self._client.patch(Pod, meta.name, meta.namespace, patch)
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise
