"""The cron job controller: creates a job for each time of a schedule, and removes old ones."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from podfit.api.batch.v1.types import CronJob, CronJobStatus, Job
from podfit.api.core.v1.references import ObjectReference
from podfit.api.meta.owners import identity_of, is_controlled_by
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import Controller, Key, key_of
from podfit.controllers.owners import Owned, owner_in
from podfit.controllers.pod_control import NORMAL, NOT_FOUND, WARNING, namespace_ends
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.decide.workload.cron import Due, due, job_at, to_forget
from podfit.decide.workload.cron_status import seen
from podfit.decide.workload.events import WorkloadEvent

COMPONENT = "cronjob-controller"
WORKERS = 5


class CronJobController(Controller[Key]):
    def __init__(self, client: Client, *, informers: Informers, recorder: EventRecorder, clock: Clock) -> None:
        self._client, self._clock, self._recorder = client, clock, recorder
        self._crons, self._jobs = informers.of(CronJob), informers.of(Job)
        self._owned = Owned(client, Job, self._jobs)
        self._written: dict[Key, int] = {}
        super().__init__(clock, self._crons, self._jobs, workers=WORKERS)
        self._crons.add_handler(
            add=lambda new: self.queue.add(key_of(new)),
            update=lambda _, new: self.queue.add(key_of(new)),
            delete=self._gone,
        )
        self._jobs.add_handler(add=self._about, update=lambda _, new: self._about(new), delete=self._about)

    def _gone(self, cron: CronJob) -> None:
        self._written.pop(key_of(cron), None)

    def _about(self, job: Job) -> None:
        if (owner := owner_in(self._crons, job)) is not None:
            self.queue.add(key_of(owner))

    async def reconcile(self, key: Key) -> float | None:
        namespace, name = key
        cron = self._crons.get(name, namespace)
        if cron is None or int(cron.metadata.resource_version or 0) < self._written.get(key, 0):
            return None
        jobs = self._owned.of(cron)
        forgotten = to_forget(cron, jobs)
        for job in forgotten:
            await self._delete(cron, job)
        now_seen = seen(cron, await self._with_live(cron, jobs), {job.metadata.uid for job in forgotten})
        self._tell(cron, now_seen.told)
        status, found = now_seen.status, Due()
        if not cron.metadata.deletion_timestamp:
            found = due(cron, now_seen.running, self._clock.now())
            self._tell(cron, found.told)
            status = await self._start(cron, status, found)
        if status != cron.status:
            written = await self._client.update_status(replace(cron, status=status))
            self._written[key] = int(written.metadata.resource_version)
        return found.again

    def _tell(self, cron: CronJob, events: Iterable[WorkloadEvent]) -> None:
        for event in events:
            self._recorder.event(cron, event.type, event.reason, event.message)

    async def _with_live(self, cron: CronJob, jobs: Sequence[Job]) -> list[Job]:
        """And those that its status names and the copy does not have yet."""
        known = {job.metadata.uid for job in jobs}
        missing = [reference for reference in cron.status.active if reference.uid not in known]
        live = [await self._live(cron, reference) for reference in missing]
        return [*jobs, *(job for job in live if job is not None)]

    async def _live(self, cron: CronJob, ref: ObjectReference) -> Job | None:
        """A job that the copy does not have yet."""
        try:
            found = await self._client.get(Job, ref.name, cron.metadata.namespace)
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise
            return None
        return found if found.metadata.uid == ref.uid else None

    async def _start(self, cron: CronJob, status: CronJobStatus, run: Due) -> CronJobStatus:
        if run.at is None:
            return status
        for job in run.end:
            await self._delete(cron, job)
        gone = {job.metadata.uid for job in run.end}
        active = tuple(reference for reference in status.active if reference.uid not in gone)
        made = await self._create(cron, job_at(cron, run.at))
        if made is None:
            return replace(status, active=active)
        ref = ObjectReference(
            kind=made.kind,
            api_version=made.api_version,
            name=made.metadata.name,
            namespace=made.metadata.namespace,
            uid=made.metadata.uid,
            resource_version=made.metadata.resource_version,
        )
        return replace(status, active=(*active, ref), last_schedule_time=format_time(run.at))

    async def _create(self, cron: CronJob, job: Job) -> Job | None:
        """None in a namespace that ends. A job of that name that is the cron job's own was made before a crash."""
        try:
            made = await self._client.create(job)
        except ApiError as error:
            if namespace_ends(error):
                return None
            if error.reason == "AlreadyExists":
                found = await self._client.get(Job, job.metadata.name, job.metadata.namespace)
                if is_controlled_by(found.metadata, identity_of(cron)):
                    return found
            self._recorder.event(cron, WARNING, "FailedCreate", f"Error creating job: {error.message}")
            raise
        self._recorder.event(cron, NORMAL, "SuccessfulCreate", f"Created job {made.metadata.name}")
        return made

    async def _delete(self, cron: CronJob, job: Job) -> None:
        try:
            await self._client.delete(
                Job, job.metadata.name, job.metadata.namespace, uid=job.metadata.uid, propagation="Background"
            )
        except ApiError as error:
            if error.code != NOT_FOUND:
                self._recorder.event(cron, WARNING, "FailedDelete", f"Deleted job: {error.message}")
                raise
            return
        self._recorder.event(cron, NORMAL, "SuccessfulDelete", f"Deleted job {job.metadata.name}")
