"""The namespace controller: deletes the contents of a terminating namespace, then finalizes it.

A namespace that is being deleted keeps its `kubernetes` finalizer until nothing is left in it, of any kind that the
server has by then, custom resources included. Then the controller takes the finalizer away and the API server removes
the object. Pods go gracefully, and finalizers hold things up: whoever follows all kinds (the garbage collector) tells
of what is `gone`, and with the last of what was waited for the controller looks again. Conditions of the namespace say
what it waits for.
"""

from collections import Counter
from collections.abc import Sequence

import msgspec

from podfit.api.core.v1.namespaces.types import Namespace
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.base import Controller
from podfit.controllers.garbage.graph import Item, Marked
from podfit.controllers.served_kinds import Served, served
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.decide.workload.namespace_conditions import NamespaceContents, conditions

FINALIZER = "kubernetes"
LAST_WRITES = 5.0
"""Seconds after which a deleted namespace is looked into, as upstream's: whatever was on its way into it is there."""
TRY_AGAIN = 5.0  # seconds, after something was refused
ASK_AGAIN = 15.0  # seconds, while a component that serves kinds does not answer, and for kinds that nobody can follow


class _DeletionState(msgspec.Struct):
    """UIDs: what was asked to go and takes its time, and what went since the controller began to look."""

    waiting: set[str] = msgspec.field(default_factory=set)
    gone: set[str] = msgspec.field(default_factory=set)


class _DeletionPass(msgspec.Struct):
    """What one look into a namespace found: UIDs of what was asked to go now, and of what is on its way."""

    silent: frozenset[tuple[str, str]] = frozenset()
    asked: set[str] = msgspec.field(default_factory=set)
    waiting: set[str] = msgspec.field(default_factory=set)
    failures: list[str] = msgspec.field(default_factory=list)
    objects: Counter[str] = msgspec.field(default_factory=Counter)
    finalizers: Counter[str] = msgspec.field(default_factory=Counter)

    def found(self, kind: Served, objects: Sequence[Marked], more: int) -> None:
        if objects:
            self.objects[f"{kind.resource}.{kind.group}"] += len(objects) + more
        self.finalizers.update(name for obj in objects for name in obj.metadata.finalizers)

    def left(self) -> NamespaceContents:
        silent = [f"{group}/{version}" if group else version for group, version in self.silent]
        return NamespaceContents(
            objects=self.objects, finalizers=self.finalizers, silent=silent, failures=self.failures
        )


class NamespaceController(Controller[str]):
    def __init__(self, client: Client, *, informers: Informers, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._namespaces = informers.of(Namespace)
        self._emptying: dict[str, _DeletionState] = {}
        super().__init__(clock, self._namespaces)
        self._namespaces.add_handler(add=self._seen, update=lambda _, new: self._seen(new), delete=self._forget)

    def gone(self, item: Item) -> None:
        """An object does not exist any more."""
        if (known := self._emptying.get(item.meta.namespace)) is not None:
            known.gone.add(item.meta.uid)
            if known.waiting and known.waiting <= known.gone:
                self.queue.add(item.meta.namespace)

    def _seen(self, namespace: Namespace) -> None:
        name = namespace.metadata.name
        if namespace.metadata.deletion_timestamp:
            self.queue.add_after(name, 0 if name in self._emptying else LAST_WRITES)

    def _forget(self, namespace: Namespace) -> None:
        self._emptying.pop(namespace.metadata.name, None)

    async def reconcile(self, key: str) -> float | None:
        found = (await self._client.list(Namespace, fields=f"metadata.name={key}")).items
        if not found or not found[0].metadata.deletion_timestamp:
            return None
        namespace = found[0]
        before: set[str] = set()
        while True:
            emptying = self._emptying[key] = _DeletionState()
            look = await self._look(key)
            if look.asked - before or (look.waiting and look.waiting <= emptying.gone):
                before = look.asked
                continue  # most of it went at once
            emptying.waiting = look.waiting
            namespace = await self._told(namespace, look.left())
            if look.failures:
                return TRY_AGAIN
            if look.asked or look.waiting or look.silent:
                return ASK_AGAIN
            await self._finalize(namespace)
            return None

    async def _look(self, namespace: str) -> "_DeletionPass":
        """Ask for everything to go: pods first, and the rest when there are none any more, so that what pods use while
        they end is there."""
        inventory = await served(self._client, "delete", "list")
        look = _DeletionPass(silent=inventory.silent)  # who serves them may have something in it
        kinds = [kind for kind in inventory.kinds if kind.namespaced]
        pods = [kind for kind in kinds if (kind.group, kind.resource) == ("", "pods")]
        for stage in (pods, [kind for kind in kinds if kind not in pods]):
            for kind in stage:
                await self._empty(kind, namespace, look)
            if look.asked or look.waiting:
                break
        return look

    async def _empty(self, kind: Served, namespace: str, look: "_DeletionPass") -> None:
        """Ask for everything of one kind to go."""
        objects = kind.decoded_as(Marked)
        try:
            page = await self._client.list(objects, namespace, limit=500)
        except ApiError as error:
            look.failures.append(error.message)
            return
        look.found(kind, page.items, page.remaining or 0)
        for obj in page.items:
            meta = obj.metadata
            if meta.deletion_timestamp and (meta.finalizers or meta.deletion_grace_period_seconds):
                look.waiting.add(meta.uid)
                continue
            look.asked.add(meta.uid)
            try:
                await self._client.delete(objects, meta.name, namespace, uid=meta.uid)
            except ApiError as error:
                if error.code not in (404, 409):
                    look.failures.append(error.message)

    async def _told(self, namespace: Namespace, left: NamespaceContents) -> Namespace:
        """The namespace as it is stored, with conditions that say what is left."""
        status = namespace.status
        wanted = conditions(left, status.conditions, format_time(self._clock.now()))
        if wanted == status.conditions:
            return namespace
        changed = msgspec.structs.replace(namespace, status=msgspec.structs.replace(status, conditions=wanted))
        return await self._client.update_status(changed)

    async def _finalize(self, namespace: Namespace) -> None:
        kept = tuple(name for name in namespace.spec.finalizers if name != FINALIZER)
        emptied = msgspec.structs.replace(namespace, spec=msgspec.structs.replace(namespace.spec, finalizers=kept))
        try:
            await self._client.update(emptied, subresource="finalize")
        except ApiError as error:
            if error.code != 404:
                raise
