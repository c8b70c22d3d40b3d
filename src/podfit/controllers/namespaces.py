"""Deleting a namespace means emptying it first.

A namespace that is being deleted keeps its `kubernetes` finalizer until nothing is left in it, of any kind that the
server has by then, custom resources included. Then the controller takes the finalizer away and the API server removes
the object. Pods go gracefully, and finalizers hold things up: whoever follows all kinds (the garbage collector) tells
of what is `gone`, and with the last of what was waited for the controller looks again.
"""

import msgspec

from podfit.api.core.namespaces import Namespace
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.controllers.base import Controller
from podfit.controllers.garbage.graph import Marked
from podfit.controllers.served import Served, served
from podfit.core.clock import Clock
from podfit.core.errors import ApiError

FINALIZER = "kubernetes"
ASK_AGAIN = 15.0  # seconds, while a component that serves kinds does not answer, and for kinds that nobody can follow


class _Emptying(msgspec.Struct):
    """UIDs: what was asked to go and takes its time, and what went since the controller began to look."""

    waiting: set[str] = msgspec.field(default_factory=set)
    gone: set[str] = msgspec.field(default_factory=set)


class NamespaceController(Controller[str]):
    def __init__(self, client: Client, *, clock: Clock) -> None:
        self._client = client
        self._namespaces = Informer(client, Namespace, clock=clock)
        self._emptying: dict[str, _Emptying] = {}
        super().__init__(clock, self._namespaces)
        self._namespaces.add_handler(add=self._seen, update=lambda _, new: self._seen(new), delete=self._forget)

    def gone(self, namespace: str, uid: str) -> None:
        """An object of that namespace does not exist any more."""
        if (known := self._emptying.get(namespace)) is not None:
            known.gone.add(uid)
            if known.waiting and known.waiting <= known.gone:
                self.queue.add(namespace)

    def _seen(self, namespace: Namespace) -> None:
        if namespace.metadata.deletion_timestamp:
            self.queue.add(namespace.metadata.name)

    def _forget(self, namespace: Namespace) -> None:
        self._emptying.pop(namespace.metadata.name, None)

    async def reconcile(self, key: str) -> float | None:
        namespace = self._namespaces.get(key)
        if namespace is None or not namespace.metadata.deletion_timestamp:
            return None
        before: set[str] = set()
        while True:
            emptying = self._emptying[key] = _Emptying()
            inventory = await served(self._client, "delete", "list")
            asked, waiting = set[str](), set[str]()
            for each in inventory.kinds:
                if each.namespaced:
                    await self._empty(each, key, asked, waiting)
            if asked - before or (waiting and waiting <= emptying.gone):
                before = asked
                continue  # most of it went at once
            emptying.waiting = waiting
            if asked or waiting or inventory.silent:  # who serves them may have something in it
                return ASK_AGAIN
            await self._finalize(namespace)
            return None

    async def _empty(self, kind: Served, namespace: str, asked: set[str], waiting: set[str]) -> None:
        """Ask for everything of one kind to go; adds the UIDs of what was asked now, and of what is on its way."""
        objects = kind.decoded_as(Marked)
        for obj in (await self._client.list(objects, namespace, limit=500)).items:
            meta = obj.metadata
            if meta.deletion_timestamp and (meta.finalizers or meta.deletion_grace_period_seconds):
                waiting.add(meta.uid)
                continue
            asked.add(meta.uid)
            try:
                await self._client.delete(objects, meta.name, namespace, uid=meta.uid)
            except ApiError as error:
                if error.code not in (404, 409):
                    raise

    async def _finalize(self, namespace: Namespace) -> None:
        kept = tuple(name for name in namespace.spec.finalizers if name != FINALIZER)
        emptied = msgspec.structs.replace(namespace, spec=msgspec.structs.replace(namespace.spec, finalizers=kept))
        try:
            await self._client.update(emptied, subresource="finalize")
        except ApiError as error:
            if error.code != 404:
                raise
