"""The garbage collector.

    a kind's watch ─▶ graph ─▶ queue of UIDs ─▶ decide.workload.ownership ─▶ delete, forget an owner, end a finalizer

An object is looked at when it names owners, when one of its owners goes or begins to wait for it, and when its own
deletion waits for dependents. Before anything is done, the object is read again from the API, and the write names the
version that was judged: a reference that somebody changed meanwhile is judged anew. Nobody else follows every kind, so
others hear from here what is `gone`: namespace and UID.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from msgspec.structs import replace

from podfit.api.core.v1.references import ObjectReference
from podfit.api.meta.codec import encode, to_dict
from podfit.api.meta.owners import ObjectIdentity, named_by, names
from podfit.api.meta.v1.types import DeleteOptions, ObjectMeta, OwnerReference, Preconditions
from podfit.client.events import EventRecorder
from podfit.client.informers import Informers
from podfit.client.rest import MERGE_PATCH, Client
from podfit.client.workqueue import WorkQueue
from podfit.controllers.garbage.graph import Graph, Item, Marked
from podfit.controllers.garbage.monitors import Follower
from podfit.controllers.served_kinds import Served
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.decide.workload.ownership import (
    Delete,
    Forget,
    OwnerState,
    blocks,
    is_orphaning,
    is_waiting,
    judge,
    without,
)
from podfit.decide.workload.propagation import FOREGROUND_FINALIZER, ORPHAN_FINALIZER

Owners: TypeAlias = tuple[OwnerReference, ...]
log = logging.getLogger(__name__)

COMPONENT = "garbage-collector-controller"
MISSED = 500  # owners remembered as absent, so that a thousand orphans ask only once
NOT_FOUND, CONFLICT = 404, 409
CONFLICT_AGAIN = 0.1  # seconds
UNKNOWN_AGAIN = 30.0  # seconds until an owner of a kind that is not served is looked for again


class GarbageCollector:
    def __init__(
        self,
        client: Client,
        *,
        informers: Informers,
        recorder: EventRecorder,
        clock: Clock,
        gone: Callable[[Item], None] = lambda _item: None,
    ) -> None:
        self._client, self._recorder, self._tell_gone = client, recorder, gone
        self._graph = Graph()
        self._absent: OrderedDict[ObjectIdentity, None] = OrderedDict()
        self._queue: WorkQueue[str] = WorkQueue(clock)
        self._follower = Follower(client, informers, clock, self._seen)

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follower.run())
            await self._follower.ready.wait()
            await self._queue.run(self.reconcile)

    # ------------------------------------------------------------------ what happens

    def _seen(self, old: Item | None, new: Item | None) -> None:
        if new is None:
            assert old is not None
            self._gone(old)
            return
        if old is not None and _same(old.meta, new.meta):
            return
        self._graph.put(new)
        meta = new.meta
        if meta.owner_references or is_waiting(meta) or is_orphaning(meta):
            self._queue.add(meta.uid)
        for uid in _released(old, new):
            self._queue.add(uid)

    def _gone(self, item: Item) -> None:
        uid = item.meta.uid
        self._graph.pop(uid)
        self._tell_gone(item)
        for dependent in self._graph.dependents(item.identity):
            self._queue.add(dependent.meta.uid)
        for owner in item.meta.owner_references:
            if (found := self._graph.get(owner.uid)) and is_waiting(found.meta):
                self._queue.add(owner.uid)

    # ------------------------------------------------------------------ what is done

    async def reconcile(self, key: str) -> float | None:
        """Seconds after which to look again: soon, when somebody else wrote what was about to be written."""
        try:
            return await self._look(key)
        except ApiError as error:
            if error.code != CONFLICT:
                raise
            return CONFLICT_AGAIN

    async def _look(self, uid: str) -> float | None:
        item = self._graph.get(uid)
        if item is None:
            return None
        if is_orphaning(item.meta):
            return await self._orphan(item)
        if is_waiting(item.meta):
            return await self._foreground(item)
        if item.meta.deletion_timestamp or not item.meta.owner_references:
            return None
        return await self._judge(item)

    async def _judge(self, item: Item) -> float | None:
        meta = item.meta
        owners = {
            named_by(reference, meta.namespace): await self._owner(item, reference)
            for reference in meta.owner_references
        }
        dependents = [dependent.meta for dependent in self._graph.dependents(item.identity)]
        verdict = judge(meta, owners, dependents)
        match verdict:
            case Forget(gone):
                await self._refer(item, lambda live: without(live, gone))
            case Delete(policy, unblock):
                if unblock:
                    await self._refer(item, _unblocking)
                    return None  # the change comes back through the watch
                await self._delete(item, policy)
        return UNKNOWN_AGAIN if OwnerState.UNKNOWN in owners.values() else None

    async def _owner(self, item: Item, reference: OwnerReference) -> OwnerState:
        known = self._graph.get(reference.uid)
        if known is not None and names(reference, item.meta.namespace, known.identity):
            return OwnerState.WAITING if is_waiting(known.meta) else OwnerState.SOLID
        group = reference.api_version.rpartition("/")[0]
        served = self._follower.find(group, reference.kind)
        if served is None:
            return OwnerState.UNKNOWN
        elsewhere = known is not None and known.meta.namespace not in ("", item.meta.namespace)
        if elsewhere or (served.namespaced and not item.meta.namespace):
            self._tell(item, reference)
            if not item.meta.namespace:
                return OwnerState.UNKNOWN  # a cluster-scoped object cannot have such an owner: it is left alone
        place = named_by(reference, item.meta.namespace)
        if place not in self._absent and await self._exists(served, item.meta.namespace, reference):
            return OwnerState.SOLID
        self._absent[place] = None
        while len(self._absent) > MISSED:
            self._absent.popitem(last=False)
        return OwnerState.DANGLING

    async def _exists(self, served: Served, namespace: str, reference: OwnerReference) -> bool:
        """Asked of the API, because the watch of the owner's kind may be behind."""
        found = await self._live(served, namespace if served.namespaced else "", reference.name)
        return found is not None and found.meta.uid == reference.uid

    def _tell(self, item: Item, reference: OwnerReference) -> None:
        where, who = item.meta.namespace, f"{reference.api_version}/{reference.kind}"
        named = f"[{who}, namespace: {where}, name: {reference.name}, uid: {reference.uid}]"
        what = f'ownerRef {named} does not exist in namespace "{where}"'
        self._recorder.event(_reference(item), "Warning", "OwnerRefInvalidNamespace", what)

    async def _foreground(self, item: Item) -> float | None:
        """Everything that belongs to it is asked to go; what blocks has to be gone before it goes."""
        dependents = self._graph.dependents(item.identity)
        if not any(blocks(dependent.meta, item.identity) for dependent in dependents):
            await self._finish(item, FOREGROUND_FINALIZER)
            return None
        for dependent in dependents:
            if not dependent.meta.deletion_timestamp:
                self._queue.add(dependent.meta.uid)
        return None

    async def _orphan(self, item: Item) -> float | None:
        for dependent in self._graph.dependents(item.identity):
            # A dependent names a cluster-scoped owner, too, as if it were of the dependent's namespace.
            gone = (item.identity._replace(namespace=dependent.meta.namespace),)
            await self._refer(dependent, partial(without, owners=gone))
        await self._finish(item, ORPHAN_FINALIZER)
        return None

    # ------------------------------------------------------------------ writes

    async def _current(self, item: Item) -> ObjectMeta | None:
        """The object's metadata as it is now; None when it is gone, or another has its name."""
        live = await self._live(item.served, item.meta.namespace, item.meta.name)
        return live.meta if live is not None and live.meta.uid == item.meta.uid else None

    async def _live(self, served: Served, namespace: str, name: str) -> Item | None:
        try:
            return Item.of(served, await self._client.get(served.decoded_as(Marked), name, namespace))
        except ApiError as error:
            if error.code == NOT_FOUND:
                return None
            raise

    async def _delete(self, item: Item, policy: str) -> None:
        live = await self._current(item)
        if live is None or live.owner_references != item.meta.owner_references:
            return  # gone, or judged anew when the watch brings it
        conditions = Preconditions(uid=live.uid, resource_version=live.resource_version)
        options = DeleteOptions(
            kind="DeleteOptions", api_version="v1", preconditions=conditions, propagation_policy=policy
        )
        log.info("deleting object=%s policy=%s", item, policy)
        await self._write("DELETE", item, encode(options), "application/json")

    async def _refer(self, item: Item, change: Callable[[ObjectMeta], Owners]) -> None:
        """Give the object other references to owners."""
        live = await self._current(item)
        if live is None:
            return
        left = change(live)
        if left != live.owner_references:
            await self._patch(item, {"ownerReferences": to_dict(left)}, live.resource_version)

    async def _finish(self, item: Item, finalizer: str) -> None:
        live = await self._current(item)
        if live is not None and finalizer in live.finalizers:
            left = [name for name in live.finalizers if name != finalizer]
            await self._patch(item, {"finalizers": left}, live.resource_version)

    async def _patch(self, item: Item, change: dict[str, Any], version: str) -> None:
        document = {"metadata": {"uid": item.meta.uid, "resourceVersion": version, **change}}
        await self._write("PATCH", item, encode(document), MERGE_PATCH)

    async def _write(self, method: str, item: Item, body: bytes, kind: str) -> None:
        """Someone who deleted it first has done our work; a conflict is tried again with growing pauses."""
        try:
            path = item.served.path(item.meta.namespace, item.meta.name)
            await self._client.request(method, path, body, content_type=kind)
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise


def _reference(item: Item) -> ObjectReference:
    """The object, as an event names it."""
    served, meta = item.served, item.meta
    return ObjectReference(
        kind=served.kind,
        api_version=f"{served.group}/{served.version}".removeprefix("/"),
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )


def _same(old: ObjectMeta, new: ObjectMeta) -> bool:
    return (old.owner_references, old.finalizers, old.deletion_timestamp, old.uid) == (
        new.owner_references,
        new.finalizers,
        new.deletion_timestamp,
        new.uid,
    )


def _released(old: Item | None, new: Item) -> list[str]:
    """UIDs of owners that this object belonged to, or blocked, and does not any more."""
    if old is None:
        return []
    kept = {_named(reference) for reference in new.meta.owner_references if reference.block_owner_deletion}
    before = dict.fromkeys(
        _named(reference) for reference in old.meta.owner_references if reference.block_owner_deletion
    )
    return [identity.uid for identity in before if identity not in kept]


def _named(reference: OwnerReference) -> ObjectIdentity:
    return named_by(reference, "")


def _unblocking(meta: ObjectMeta) -> Owners:
    return tuple(replace(reference, block_owner_deletion=False) for reference in meta.owner_references)
