"""The TTL controller: removes finished jobs after their `ttlSecondsAfterFinished`."""

from podfit.api.batch.v1.types import Job
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import Controller, Key, key_of
from podfit.controllers.pod_control import NOT_FOUND
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.workload.job.expiry import expires

COMPONENT = "ttl-after-finished-controller"


class TtlController(Controller[Key]):
    def __init__(self, client: Client, *, informers: Informers, recorder: EventRecorder, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._jobs = informers.of(Job)
        super().__init__(clock, self._jobs)
        self._jobs.add_handler(add=self._seen, update=lambda _, new: self._seen(new))

    def _seen(self, job: Job) -> None:
        if expires(job) is not None:
            self.queue.add(key_of(job))

    async def reconcile(self, key: Key) -> float | None:
        """What the server has counts: a longer time may have been set just now."""
        namespace, name = key
        copy = self._jobs.get(name, namespace)
        if copy is None or (left := self._left(copy)) is None or left > 0:
            return None if copy is None else self._left(copy)
        try:
            job = await self._client.get(Job, name, namespace)
            if (left := self._left(job)) is None or left > 0:
                return left
            await self._client.delete(Job, name, namespace, uid=job.metadata.uid, propagation="Foreground")
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise
        return None

    def _left(self, job: Job) -> float | None:
        end = expires(job)
        return max(0.0, (end - self._clock.now()).total_seconds()) if end is not None else None
