"""The status writer: sends a pod's newest status to the API at once, and again until it is there.

set(status) ──▶ wanted ──wake──▶ PATCH pods/NAME/status with the difference to what the API has ──▶ known
seen(pod)   ──▶ known (when newer) ─────┘ somebody overwrote it: written again

A passing status is written once it has lasted for as long as it was given.
"""

import asyncio
import logging

from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod, PodStatus
from podfit.client.rest import STRATEGIC_PATCH, Client
from podfit.core.backoff import Backoff
from podfit.core.clock import Clock, Timer
from podfit.core.errors import ApiError
from podfit.decide.lifecycle.conditions import keeping_foreign
from podfit.kubelet.status.patch import Document, status_patch
from podfit.net.supervisor import Supervisor

log = logging.getLogger(__name__)

_NOT_FOUND, _CONFLICT = 404, 409


class StatusWriter:
    """One for each pod, until it is closed. While something is to be written there is a task of the supervisor for
    that; most pods have none most of the time."""

    def __init__(self, client: Client, pod: Pod, *, clock: Clock, supervisor: Supervisor) -> None:
        self._client = client
        self._clock = clock
        self._supervisor = supervisor
        self._meta = pod.metadata
        self._known = pod.status
        self._version = _version(pod)
        self._wanted: PodStatus | None = None
        self._patch: Document = {}
        self._due = False  # something is to be written that the task has not begun with
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._passing: Timer | None = None  # until it has lasted long enough to be written
        self._settled = True  # nothing is to be written
        self._settling: asyncio.Event | None = None  # of those who wait for that

    @property
    def status(self) -> PodStatus:
        """What was set last, or else what the API had."""
        return self._wanted or self._known

    @property
    def is_written(self) -> bool:
        """Whether the API has what was set last."""
        return self._passing is None and not self._patch

    def set(self, status: PodStatus, *, passing: float = 0.0) -> None:
        """Have this written; a status that is already there costs nothing. `observedGeneration` never goes back.
        `passing`: another one is expected at once, and this one is written when it lasts so many seconds."""
        generation = max(status.observed_generation, self._known.observed_generation)
        self._wanted = keeping_foreign(replace(status, observed_generation=generation), self._known)
        if passing and not self._closed:
            self._settled = False
            self._passing = self._passing or self._clock.call_later(passing, self._lasted)
            return
        self._cancel_passing()
        self._compare()
        self._tell()

    def seen(self, pod: Pod) -> None:
        """The API's own version, as a watch event brought it."""
        if _version(pod) > self._version:
            self._learn(pod)
            self._tell()

    async def written(self) -> None:
        """Wait until the API has what was set last, or the pod is gone."""
        while not self._settled:
            self._settling = self._settling or asyncio.Event()
            await self._settling.wait()

    def close(self) -> None:
        """Write nothing more, whatever is set or seen."""
        self._closed = True
        self._cancel_passing()
        if self._task is not None:
            self._task.cancel()

    async def _write_all(self) -> None:
        backoff = Backoff(0.1, 10.0, self._client.random)
        while self._due:
            self._due = False
            try:
                await self._write()
            except (ApiError, ConnectionError) as error:
                if await self._is_gone(error):
                    self._forgotten()
                    continue
                delay = backoff.next()
                log.warning(
                    "cannot write pod status pod=%s/%s retry_seconds=%.2f error=%s",
                    self._meta.namespace,
                    self._meta.name,
                    delay,
                    error,
                )
                await self._clock.sleep(delay)
                self._due = True
            else:
                backoff.reset()
        self._task = None

    def _settle(self) -> None:
        self._settled = True
        if self._settling is not None:
            self._settling.set()
            self._settling = None

    def _forgotten(self) -> None:
        """The pod does not exist any more: what was to be written has no reader."""
        self._known, self._wanted, self._patch = self.status, None, {}
        self._settle()

    async def _is_gone(self, error: Exception) -> bool:
        """Whether the pod does not exist any more. A conflict may mean that another one has its name."""
        if not isinstance(error, ApiError) or error.code not in (_NOT_FOUND, _CONFLICT):
            return False
        if error.code == _NOT_FOUND:
            return True
        try:
            return (await self._client.get(Pod, self._meta.name, self._meta.namespace)).metadata.uid != self._meta.uid
        except (ApiError, ConnectionError) as unknown:
            return isinstance(unknown, ApiError) and unknown.code == _NOT_FOUND

    async def _write(self) -> None:
        while patch := self._patch:
            before = self._version
            answer = await self._client.patch(
                Pod,
                self._meta.name,
                self._meta.namespace,
                {"metadata": {"uid": self._meta.uid}, "status": patch},
                content_type=STRATEGIC_PATCH,
                subresource="status",
            )
            if before < self._version >= _version(answer):  # the watch was quicker, and has told of this or of newer
                continue
            self._learn(answer)
            if self._patch == patch:
                log.warning(
                    "the API keeps another pod status pod=%s/%s differs=%s",
                    self._meta.namespace,
                    self._meta.name,
                    sorted(patch),
                )
                break
        if self._passing is None:
            self._settle()

    def _learn(self, pod: Pod) -> None:
        """What others wrote into the list of conditions is theirs to change."""
        self._known, self._version = pod.status, max(self._version, _version(pod))
        if self._wanted is not None:
            self._wanted = keeping_foreign(self._wanted, self._known)
        self._compare()

    def _compare(self) -> None:
        if self._wanted is None or self._passing is not None:
            self._patch = {}
        else:
            self._patch = status_patch(self._known, self._wanted)

    def _tell(self) -> None:
        if self._patch:
            self._settled, self._due = False, True
            if self._task is None and not self._closed:
                self._task = self._supervisor.begin(self._write_all(), name=f"status {self._meta.name}")
        elif self._passing is None:
            self._settle()

    def _lasted(self) -> None:
        self._passing = None
        self._compare()
        self._tell()

    def _cancel_passing(self) -> None:
        if self._passing is not None:
            self._passing.cancel()
            self._passing = None


class MirrorWriter(StatusWriter):
    """Writes the status of a static pod to its mirror, which comes and goes without the pod taking notice.

    Nothing is written while there is no mirror; a new one is told everything.
    """

    def __init__(self, client: Client, pod: Pod, *, clock: Clock, supervisor: Supervisor) -> None:
        super().__init__(client, pod, clock=clock, supervisor=supervisor)
        self._exists = False

    def shown(self, mirror: Pod | None) -> None:
        """What the API has of the pod now. The first mirror tells what was known of the pod before this kubelet."""
        self._exists = mirror is not None
        if mirror is None:
            self._settle()
        elif mirror.metadata.uid != self._meta.uid:
            self._meta, self._known, self._version = mirror.metadata, mirror.status, 0
            self.seen(mirror)
        else:
            self.seen(mirror)

    def _compare(self) -> None:
        if self._exists:
            super()._compare()

    def _forgotten(self) -> None:
        self.shown(None)


def _version(pod: Pod) -> int:
    return int(pod.metadata.resource_version or 0)
