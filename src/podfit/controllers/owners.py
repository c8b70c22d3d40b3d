"""Claims the objects of a controller: adopts matching orphans, releases those that match no more."""

from collections.abc import Hashable, Iterable
from typing import Any, Generic, TypeVar

from podfit.api.meta.base import Object
from podfit.api.meta.codec import to_dict
from podfit.api.meta.owners import (
    ObjectIdentity,
    controller_named,
    controller_of,
    identity_of,
    is_controlled_by,
    reference_to,
)
from podfit.client.informer import Informer
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.core.selectors import Requirement
from podfit.decide.workload.claims import claims
from podfit.net.loop_turns import beside

T = TypeVar("T", bound=Object)

BY_OWNER = "controller"
_NOT_FOUND, _INVALID = 404, 422


def by_owner(obj: Object) -> Iterable[Hashable]:
    """Who manages the object, or a word for the orphans of its namespace."""
    owner = controller_named(obj.metadata)
    return (owner if owner is not None else orphans_of(obj.metadata.namespace),)


def orphans_of(namespace: str) -> str:
    return f"orphan/{namespace}"


def owner_in(informer: Informer[T], obj: Object) -> T | None:
    """Who manages the object, as the informer's copy has it; None when that is of another kind, or not there."""
    reference = controller_of(obj.metadata)
    found = informer.get(reference.name, obj.metadata.namespace) if reference is not None else None
    return found if found is not None and is_controlled_by(obj.metadata, identity_of(found)) else None


class Owned(Generic[T]):
    """The objects of one kind, by who manages them. `client` patches what is adopted or let go."""

    def __init__(self, client: Client, kind: type[T], informer: Informer[T]) -> None:
        self._client, self._kind, self._informer = client, kind, informer
        informer.add_index(BY_OWNER, by_owner)

    def of(self, owner: Object) -> list[T]:
        """What names `owner` as its controller, as the informer's copy tells it."""
        return self.managed_by(identity_of(owner))

    def managed_by(self, owner: ObjectIdentity) -> list[T]:
        return self._informer.by_index(BY_OWNER, owner)

    def orphans(self, namespace: str) -> list[T]:
        return self._informer.by_index(BY_OWNER, orphans_of(namespace))

    async def claim(self, owner: Object, selector: tuple[Requirement, ...] | None, objects: Iterable[T]) -> list[T]:
        """Those of `found` that belong to `owner` from now on. Raises ApiError when one could not be adopted."""
        candidates = tuple(objects)
        made = await beside(len(candidates), claims, owner, selector, candidates)
        for obj in made.release:
            await self._release(owner, obj)
        if not made.adopt:
            return list(made.owned)
        await self._check(owner)
        adopted = [obj for obj in made.adopt if await self._adopted(owner, obj)]
        return [*made.owned, *adopted]

    async def _check(self, owner: Object) -> None:
        """The copy may be old: who is gone, or going, adopts nothing."""
        meta = owner.metadata
        live = await self._client.get(type(owner), meta.name, meta.namespace)
        if live.metadata.uid != meta.uid:
            raise ApiError(409, "Conflict", f"{owner.kind} {meta.name} was made anew: it adopts nothing as it was")
        if live.metadata.deletion_timestamp:
            raise ApiError(409, "Conflict", f"{owner.kind} {meta.name} is being deleted: it adopts nothing")

    async def _adopted(self, owner: Object, obj: T) -> bool:
        """False when it has gone."""
        meta = obj.metadata
        patch = {"metadata": {"ownerReferences": [to_dict(reference_to(owner))], "uid": meta.uid}}
        return await self._patch(obj, patch, ignored=(_NOT_FOUND,))

    async def _release(self, owner: Object, obj: T) -> None:
        meta = obj.metadata
        patch = {"metadata": {"uid": meta.uid, "ownerReferences": [{"$patch": "delete", "uid": owner.metadata.uid}]}}
        await self._patch(obj, patch, ignored=(_NOT_FOUND, _INVALID))  # it is gone, or has nothing to be freed of

    async def _patch(self, obj: T, patch: dict[str, Any], *, ignored: tuple[int, ...]) -> bool:
        try:
            await self._client.patch(self._kind, obj.metadata.name, obj.metadata.namespace, patch)
        except ApiError as error:
            if error.code not in ignored:
                raise
            return False
        return True
