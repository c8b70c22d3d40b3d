"""The event recorder: what a component tells people about an object.

    event() ──▶ bounded queue ──▶ run() ──▶ create, or raise the count of the event that said the same before;
                                            similar ones are combined, and of one object not too much is told
                                            (`client.event_correlation`)

Telling must never slow down or fail what is told about: `event` only puts a note into a queue, and when the queue is
full, or the API refuses, the note is dropped and the log says so.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from msgspec.structs import replace

from podfit.api.core.v1.events.types import Event, EventSource
from podfit.api.core.v1.references import ObjectReference
from podfit.api.meta.base import Object
from podfit.api.meta.codec import encode
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.event_correlation import Correlator, Counted, EventDraft
from podfit.client.resource import resource_of
from podfit.client.rest import STRATEGIC_PATCH, Client
from podfit.core.backoff import Backoff
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.times import format_time

log = logging.getLogger(__name__)

QUEUE_SIZE = 1000
AT_ONCE = 8
"""Events on their way together, so that they share the store's commits; what is told of one object stays in order."""
ATTEMPTS = 5
NOT_FOUND = 404

After: TypeAlias = Callable[[], Awaitable[None]]
Told: TypeAlias = tuple[EventDraft, str, float]
"""A note, the time of day when it was told, and the same as seconds of a monotonic clock."""


class EventRecorder:
    """Speaks for one component. `run` delivers until cancelled; before it does, it waits for what `after` waits for."""

    time_text = staticmethod(format_time)

    def __init__(
        self, client: Client, *, component: str, clock: Clock, host: str = "", after: After | None = None
    ) -> None:
        self._client = client
        self._component = component
        self._host = host
        self._clock = clock
        self._after = after
        self._queue: asyncio.Queue[Told] = asyncio.Queue(QUEUE_SIZE)
        self._correlator = Correlator()
        self._last_stamp = 0
        self._not_queued = 0  # since there was room last
        self.dropped = 0

    def event(
        self,
        obj: Object | ObjectReference,
        type_: str,
        reason: str,
        message: str,
        *,
        field_path: str = "",
        action: str = "",
    ) -> None:
        """Tell about an object or an ObjectReference; never waits, never fails.

        `type_` is Normal or Warning; `action` is what the component was about, such as Binding.
        """
        regarding = obj if isinstance(obj, ObjectReference) else reference(obj, field_path=field_path)
        version, regarding = regarding.resource_version, replace(regarding, resource_version="")
        note = EventDraft(regarding, type_, reason, message, action, version)
        try:
            self._queue.put_nowait((note, self.time_text(self._clock.now()), self._clock.monotonic()))
        except asyncio.QueueFull:
            self._not_queued += 1
            if self._not_queued == 1:
                self._drop(note, "the queue is full")

    async def run(self) -> None:
        while True:
            batch = [await self._queue.get()]
            if self._after is not None:
                await self._after()
            batch += [self._queue.get_nowait() for _ in range(self._queue.qsize())]
            self._say_not_queued()
            by_object = _by_object(batch)
            if len(by_object) == 1:
                await self._tell_about(by_object)
                continue
            async with asyncio.TaskGroup() as group:
                for _ in range(min(AT_ONCE, len(by_object))):
                    group.create_task(self._tell_about(by_object))

    async def _tell_about(self, objects: deque[list[Told]]) -> None:
        """What is told of one after the other of the objects, which several of these share."""
        while objects:
            for note, when, moment in objects.popleft():
                try:
                    await self._correlated(note, when, moment)
                finally:
                    self._queue.task_done()

    def _say_not_queued(self) -> None:
        """The first is in the log; a line for each of thousands would only make a busy component slower."""
        more, self._not_queued = self._not_queued - 1, 0
        if more > 0:
            self.dropped += more
            log.warning("events dropped component=%s count=%d error=the queue was full", self._component, more)

    async def flush(self) -> None:
        """Wait until everything told so far is delivered or dropped; `run` has to be running."""
        await self._queue.join()

    async def _correlated(self, note: EventDraft, when: str, moment: float) -> None:
        note, key = self._correlator.combined(note, moment)
        counted = self._correlator.count(key, when)
        if self._correlator.may_tell(note.regarding, moment):
            await self._deliver(note, when, counted)
        else:
            log.debug("event left out object=%s/%s reason=%s", namespace_of(note), note.regarding.name, note.reason)

    async def _deliver(self, note: EventDraft, when: str, counted: Counted) -> None:
        backoff = Backoff(0.5, 10.0, self._client.random)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._tell(note, when, counted)
            except ApiError as error:
                self._drop(note, str(error))
                return
            except ConnectionError as error:
                if attempt == ATTEMPTS:
                    self._drop(note, str(error))
                    return
                await self._clock.sleep(backoff.next())
            else:
                return

    async def _tell(self, note: EventDraft, when: str, counted: Counted) -> None:
        if not counted.name or not await self._count(note, when, counted):
            while not await self._created(note, when, counted):
                pass

    async def _count(self, note: EventDraft, when: str, counted: Counted) -> bool:
        """Raise the count; False when the event has expired meanwhile."""
        patch = {"count": counted.count, "lastTimestamp": when, "message": note.message}
        try:
            await self._client.patch(Event, counted.name, namespace_of(note), patch, content_type=STRATEGIC_PATCH)
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise
            counted.count, counted.first = 1, when
            return False
        return True

    async def _created(self, note: EventDraft, when: str, counted: Counted) -> bool:
        """False when another component told about the same object in the same moment, and so under the same name."""
        name = f"{note.regarding.name}.{self._stamp():x}"
        event = Event(
            metadata=ObjectMeta(name=name, namespace=namespace_of(note)),
            type=note.type,
            involved_object=replace(note.regarding, resource_version=note.resource_version),
            reason=note.reason,
            message=note.message,
            action=note.action,
        )
        path = resource_of(Event).info.path(namespace_of(note))
        try:  # the answer is not read
            await self._client.request("POST", path, encode(self._timed(event, note, when, counted)))
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            return False
        counted.name = name
        return True

    def _timed(self, event: Event, note: EventDraft, when: str, counted: Counted) -> Event:
        """The event with who says it and when."""
        return replace(
            event,
            count=counted.count,
            first_timestamp=counted.first,
            last_timestamp=when,
            source=EventSource(component=self._component, host=self._host),
            reporting_component="" if note.combined else self._component,
            reporting_instance="" if note.combined else self._host,
        )

    def _stamp(self) -> int:
        """Nanoseconds since 1970, and never the same twice, for the event's name."""
        self._last_stamp = max(self._last_stamp + 1, int(self._clock.now().timestamp() * 1_000_000) * 1000)
        return self._last_stamp

    def _drop(self, note: EventDraft, why: str) -> None:
        self.dropped += 1
        log.warning(
            "event dropped object=%s/%s reason=%s message=%r error=%s",
            note.regarding.namespace,
            note.regarding.name,
            note.reason,
            note.message,
            why,
        )


def _by_object(batch: Iterable[Told]) -> deque[list[Told]]:
    """The notes about each object in order, objects in the order of their first."""
    found: dict[tuple[str, str], list[Told]] = {}
    for told in batch:
        about = told[0].regarding
        found.setdefault((about.kind, about.uid), []).append(told)
    return deque(found.values())


def reference(obj: Object, *, field_path: str = "") -> ObjectReference:
    """What an event's involvedObject says about an object, as `spec.containers{web}` about a part of it."""
    return ObjectReference(
        kind=obj.kind,
        api_version=obj.api_version,
        name=obj.metadata.name,
        namespace=obj.metadata.namespace,
        uid=obj.metadata.uid,
        resource_version=obj.metadata.resource_version,
        field_path=field_path,
    )


def namespace_of(note: EventDraft) -> str:
    """Events about objects without a namespace live in `default`."""
    return note.regarding.namespace or "default"
