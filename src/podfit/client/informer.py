"""The informer: a cache of a collection, kept by list and watch.

    list all ──▶ difference to the copy ──▶ handlers      first, and after 410: the history we need is gone
       │
       ▼ resource version
    watch ──▶ each event ──▶ copy ──▶ handlers            a bookmark only moves the version on
       │
       └─ ended or cut: watch again from the last version seen, with growing delays while it fails

The copy is changed before the handlers are called, and they are called synchronously, in order, by whoever brings the
event: in the turn of the event loop after what was read from a socket, or, where the API server is in this process, was
committed; within the commit where an informer is told `at_once`, whose handlers then only take note. Nothing polls, and
no task is woken between an event's arrival and its handler.
"""

import asyncio
import logging
from collections.abc import Callable, Hashable, ItemsView, Iterable, Mapping, ValuesView
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod
from podfit.client.resource import Kind, identify, resource_of, uid_of, version_of
from podfit.client.rest import Client
from podfit.client.watch_events import BUSY_SECONDS, EventSink, WatchEvent
from podfit.core.backoff import Backoff
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.loop_slices import OBJECTS

T = TypeVar("T")

Key: TypeAlias = tuple[str, str]
"""Namespace and name."""


class Cache(Generic[T]):
    """A dict that keeps its indexes right. An index function gives the values under which an object is found."""

    def __init__(self, indexes: Mapping[str, Callable[[T], Iterable[Hashable]]]) -> None:
        self._functions = dict(indexes)
        self._objects: dict[Key, T] = {}
        self._indexes: dict[str, dict[Hashable, dict[Key, T]]] = {name: {} for name in indexes}

    def add_index(self, name: str, function: Callable[[T], Iterable[Hashable]]) -> None:
        """One more index, over what is there as well. Asked for again under the same name it must be the same."""
        if name in self._functions:
            if self._functions[name] is not function:
                raise ValueError(f"there is another index of the name {name!r}")
            return
        self._functions[name] = function
        index = self._indexes[name] = {}
        for key, obj in self._objects.items():
            for value in function(obj):
                index.setdefault(value, {})[key] = obj

    def get(self, key: Key) -> T | None:
        return self._objects.get(key)

    def values(self) -> ValuesView[T]:
        return self._objects.values()

    def items(self) -> ItemsView[Key, T]:
        return self._objects.items()

    def by_index(self, index: str, value: Hashable) -> list[T]:
        return list(self._indexes[index].get(value, {}).values())

    def put(self, key: Key, obj: T) -> T | None:
        """Remember an object; returns what it replaces."""
        old = self._objects.get(key)
        self._objects[key] = obj
        for name, function in self._functions.items():
            index, values = self._indexes[name], tuple(function(obj))
            before = () if old is None else tuple(function(old))
            if before != values:
                for gone in before:
                    if gone not in values:
                        self._unindex(index, gone, key)
            for value in values:
                index.setdefault(value, {})[key] = obj
        return old

    def pop(self, key: Key) -> T | None:
        """Forget an object; returns it."""
        old = self._objects.pop(key, None)
        if old is not None:
            for name, function in self._functions.items():
                for value in function(old):
                    self._unindex(self._indexes[name], value, key)
        return old

    def _unindex(self, index: dict[Hashable, dict[Key, T]], value: Hashable, key: Key) -> None:
        index.get(value, {}).pop(key, None)
        if not index.get(value):
            index.pop(value, None)


log = logging.getLogger(__name__)


FIRST_DELAY = 0.1
LONGEST_DELAY = 30.0
PAGE_SIZE = 500
WATCH_SECONDS = 480  # the server ends the watch after this long; a new one then goes to whoever is alive
NEAR_WATCH_SECONDS = 3600  # there is nobody else, so it does without bookmarks, and may have to list once an hour
GONE = 410
_LASTING = ("labels", "annotations", "owner_references")  # of a pod's metadata


class _Handlers(msgspec.Struct, Generic[T], frozen=True):
    add: Callable[[T], None]
    update: Callable[[T, T], None]
    delete: Callable[[T], None]


class Informer(Generic[T]):
    """`run` until cancelled. `synced` is set once the first list has been delivered to the handlers.

    `labels` and `fields` select a part of the collection; an object that leaves the selection is deleted here. `keep`
    makes of each object what is kept and told of it, with its metadata's name, UID and version.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind[T],
        *,
        clock: Clock,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        indexes: Mapping[str, Callable[[T], Iterable[Hashable]]] | None = None,
        backoff: Backoff | None = None,
        keep: Callable[[T], T] = lambda obj: obj,
        at_once: bool = False,
    ) -> None:
        self._client, self._at_once = client, at_once
        self._resource = resource_of(kind)
        self._clock = clock
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._keep = keep
        self._cache: Cache[T] = Cache(indexes or {})
        self._handlers: list[_Handlers[T]] = []
        self._backoff = backoff or Backoff(FIRST_DELAY, LONGEST_DELAY, client.random)
        self._version = ""
        self._quiet = True  # the watch that runs has said nothing yet
        self.synced = asyncio.Event()

    def add_handler(
        self,
        *,
        add: Callable[[T], None] = lambda _: None,
        update: Callable[[T, T], None] = lambda _old, _new: None,
        delete: Callable[[T], None] = lambda _: None,
    ) -> None:
        """Call these from now on, beginning with an `add` for each object that is known already.

        `update` gets the old and the new object, `delete` the last state seen; an object made anew under an old name is
        a delete and an add. An exception is logged and ends there.
        """
        handlers = _Handlers(add, update, delete)
        self._handlers.append(handlers)
        for obj in self._cache.values():
            self._call(handlers.add, obj)

    def add_index(self, name: str, function: Callable[[T], Iterable[Hashable]]) -> None:
        """Lets `by_index` find objects by what `function` gives for them; the same may be asked for again."""
        self._cache.add_index(name, function)

    def get(self, name: str, namespace: str = "") -> T | None:
        return self._cache.get((namespace, name))

    def by_index(self, index: str, value: Hashable) -> list[T]:
        """The objects for which the index function of that name gave `value`."""
        return self._cache.by_index(index, value)

    @property
    def count(self) -> int:
        """The number of objects that are known."""
        return len(self._cache.values())

    def list(self, namespace: str = "") -> list[T]:
        """The objects of one namespace, or all; a thread may ask as well."""
        return [obj for obj in tuple(self._cache.values()) if not namespace or identify(obj)[0] == namespace]

    async def run(self) -> None:
        while True:
            listed = not self._version
            try:
                if listed:
                    await self._relist()
                failure = await self._watch()
            except ApiError as error:
                if error.code == GONE:
                    self._version = ""
                failure = error if listed or error.code != GONE else None
            except ConnectionError as error:
                failure = error
            if failure is not None:
                await self._pause(failure)

    async def _pause(self, failure: Exception) -> None:
        delay = self._backoff.next()
        log.warning(
            "cannot follow resource=%s retry_seconds=%.2f error=%s", self._resource.info.resource, delay, failure
        )
        await self._clock.sleep(delay)

    async def _relist(self) -> None:
        found, version = await self._list_all()
        gone = [(self._deleted, obj) for key, obj in self._cache.items() if key not in found]
        there = [(self._changed, obj) for obj in found.values()]
        began = self._clock.monotonic()
        for number, (tell, obj) in enumerate(gone + there, 1):
            tell(obj)
            if number % OBJECTS == 0 or self._clock.monotonic() - began > BUSY_SECONDS:
                await asyncio.sleep(0)  # others of this process have their turn
                began = self._clock.monotonic()
        self._version = version
        self.synced.set()

    async def _list_all(self) -> tuple[dict[Key, T], str]:
        """Every object, page by page; in one piece when the pages' snapshot is compacted on the way."""
        found: dict[Key, T] = {}
        continue_, limit = "", PAGE_SIZE
        while True:
            try:
                page = await self._client.list(
                    self._resource,
                    self._namespace,
                    labels=self._labels,
                    fields=self._fields,
                    limit=limit,
                    continue_=continue_,
                )
            except ApiError as error:
                if error.code != GONE or not continue_:
                    raise
                found, continue_, limit = {}, "", 0
                continue
            found.update((identify(obj), obj) for obj in page.items)
            continue_ = page.continue_
            if not continue_:
                return found, page.resource_version

    async def _watch(self) -> Exception | None:
        """Follow until the server ends the watch. One that ends at once, without having said anything, is a failure."""
        began, near = self._clock.monotonic(), self._client.near
        self._quiet = True
        sink = EventSink(self._resource.type, self._tell, self._clock, at_once=self._at_once)
        try:
            await self._client.follow(
                self._resource,
                sink,
                self._namespace,
                resource_version=self._version,
                labels=self._labels,
                fields=self._fields,
                timeout=NEAR_WATCH_SECONDS if near else WATCH_SECONDS,
                bookmarks=not near,
            )
        finally:
            sink.close()
        if self._quiet and self._clock.monotonic() - began < LONGEST_DELAY:
            return ConnectionError("the watch ended at once")
        self._backoff.reset()
        return None

    def _tell(self, event: WatchEvent[T]) -> None:
        if self._quiet:
            self._quiet = False
            self._backoff.reset()
        self._version = version_of(event.object)
        if event.type == "DELETED":
            self._deleted(event.object)
        elif event.type != "BOOKMARK":
            self._changed(event.object)

    def _changed(self, obj: T) -> None:
        key = identify(obj)
        old = self._cache.get(key)
        obj = _kept(self._keep(obj), old)
        if old is not None and uid_of(old) != uid_of(obj):  # its deletion happened while we were not watching
            self._deleted(old)
        old = self._cache.put(key, obj)
        if old is None:
            for handlers in self._handlers:
                self._call(handlers.add, obj)
        elif version_of(old) != version_of(obj):
            for handlers in self._handlers:
                self._call(handlers.update, old, obj)

    def _deleted(self, obj: T) -> None:
        if self._cache.pop(identify(obj)) is not None:
            for handlers in self._handlers:
                self._call(handlers.delete, obj)

    def _call(self, handler: Callable[..., None], *objects: T) -> None:
        try:
            handler(*objects)
        except Exception:
            namespace, name = identify(objects[-1])
            log.exception("handler failed resource=%s object=%s/%s", self._resource.info.resource, namespace, name)


def _kept(obj: T, old: T | None) -> T:
    """Pods without the managers of their fields, which nobody who follows pods reads: they are most of what a decoded
    pod takes. A pod that is written back without them keeps those that the server has.

    What is as it was is the old object's: nearly all changes are of the status, and then one spec serves all versions.
    """
    if not isinstance(obj, Pod):
        return obj
    changes: dict[str, Any] = {"managed_fields": ()}
    if not isinstance(old, Pod):
        return replace(obj, metadata=replace(obj.metadata, **changes))
    for name in _LASTING:
        was, value = getattr(old.metadata, name), getattr(obj.metadata, name)
        if was is not value and was == value:
            changes[name] = was
    metadata = replace(obj.metadata, **changes)
    if old.spec is not obj.spec and old.spec == obj.spec:
        return replace(obj, metadata=metadata, spec=old.spec)
    return replace(obj, metadata=metadata)
