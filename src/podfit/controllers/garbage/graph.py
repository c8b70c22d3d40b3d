"""The graph of owners and dependents by UID, over all kinds; built from objects' metadata alone.

An owner need not be known to be pointed at. Its dependents are found from the moment they are, so the order in which
the kinds' watches deliver does not matter.
"""

import msgspec

from podfit.api.meta.base import Time
from podfit.api.meta.v1.types import ObjectMeta, OwnerReference
from podfit.controllers.served_kinds import Served


class Marks(msgspec.Struct, frozen=True, rename="camel"):
    """Of an object's metadata what counts here; the rest is not even decoded."""

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

    def __str__(self) -> str:
        where = f"{self.meta.namespace}/" if self.meta.namespace else ""
        return f"{self.served.resource} {where}{self.meta.name}"


class Graph:
    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._dependents: dict[str, dict[str, None]] = {}  # by the owner's UID, in the order of their coming

    def get(self, uid: str) -> Item | None:
        return self._items.get(uid)

    def put(self, item: Item) -> None:
        self._unlink(self._items.get(item.meta.uid))
        self._items[item.meta.uid] = item
        for owner in item.meta.owner_references:
            self._dependents.setdefault(owner.uid, {})[item.meta.uid] = None

    def pop(self, uid: str) -> None:
        self._unlink(self._items.pop(uid, None))

    def dependents(self, uid: str) -> list[Item]:
        return [self._items[dependent] for dependent in self._dependents.get(uid, ())]

    def _unlink(self, item: Item | None) -> None:
        for owner in item.meta.owner_references if item else ():
            known = self._dependents.get(owner.uid, {})
            known.pop(item.meta.uid if item else "", None)
            if not known:
                self._dependents.pop(owner.uid, None)
