"""The graph of owners and dependents over all kinds; built from objects' metadata alone.

An owner need not be known to be pointed at. Its dependents are found from the moment they are, so the order in which
the kinds' watches deliver does not matter. What points at an owner of another namespace is
no dependent of it.
"""

import msgspec

from podfit.api.meta.base import Time
from podfit.api.meta.owners import ObjectIdentity
from podfit.api.meta.v1.types import ObjectMeta, OwnerReference
from podfit.controllers.served_kinds import Served
from podfit.decide.workload.ownership import owners_of


class Marks(msgspec.Struct, frozen=True, rename="camel"):
    """What counts here of an object's metadata; the rest is not even decoded."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Marked(msgspec.Struct, frozen=True):
    """Any object."""

    metadata: Marks


class Item(msgspec.Struct, frozen=True):
    served: Served
    meta: ObjectMeta

    @staticmethod
    def of(served: Served, obj: Marked) -> "Item":
        """`obj` may as well be of the kind's own type."""
        marks = obj.metadata
        return Item(
            served,
            ObjectMeta(
                name=marks.name,
                namespace=marks.namespace,
                uid=marks.uid,
                resource_version=marks.resource_version,
                deletion_timestamp=marks.deletion_timestamp,
                finalizers=marks.finalizers,
                owner_references=marks.owner_references,
            ),
        )

    @property
    def identity(self) -> ObjectIdentity:
        meta = self.meta
        return ObjectIdentity(self.served.group, self.served.kind, meta.namespace, meta.name, meta.uid)

    def __str__(self) -> str:
        where = f"{self.meta.namespace}/" if self.meta.namespace else ""
        return f"{self.served.resource} {where}{self.meta.name}"


class Graph:
    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._dependents: dict[ObjectIdentity, dict[str, dict[str, None]]] = {}
        """By the owner without its namespace, the namespaces of dependents, and their UIDs in the order of coming."""

    def get(self, uid: str) -> Item | None:
        return self._items.get(uid)

    def put(self, item: Item) -> None:
        self._unlink(self._items.get(item.meta.uid))
        self._items[item.meta.uid] = item
        for owner in owners_of(item.meta):
            placed = self._dependents.setdefault(owner._replace(namespace=""), {})
            placed.setdefault(item.meta.namespace, {})[item.meta.uid] = None

    def pop(self, uid: str) -> None:
        self._unlink(self._items.pop(uid, None))

    def dependents(self, owner: ObjectIdentity) -> list[Item]:
        """Dependents in the owner's namespace, or in all where it is cluster-scoped."""
        placed = self._dependents.get(owner._replace(namespace=""), {})
        where = (owner.namespace,) if owner.namespace else tuple(placed)
        return [self._items[uid] for namespace in where for uid in placed.get(namespace, ())]

    def _unlink(self, item: Item | None) -> None:
        if item is None:
            return
        for owner in owners_of(item.meta):
            everywhere = owner._replace(namespace="")
            placed = self._dependents.get(everywhere, {})
            known = placed.get(item.meta.namespace, {})
            known.pop(item.meta.uid, None)
            if not known:
                placed.pop(item.meta.namespace, None)
            if not placed:
                self._dependents.pop(everywhere, None)
