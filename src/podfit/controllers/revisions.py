"""Controller revisions of stateful sets and daemon sets: found, made, renumbered, deleted."""

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from msgspec.structs import replace

from podfit.api.apps.v1.daemonsets import ControllerRevision, DaemonSet
from podfit.api.apps.v1.statefulsets import StatefulSet
from podfit.api.meta.selectors import requirements
from podfit.client.informers import Informers
from podfit.client.rest import Client
from podfit.controllers.owners import Owned
from podfit.controllers.pod_control import NOT_FOUND
from podfit.core.errors import ApiError
from podfit.decide.workload.history import in_order

T = TypeVar("T", StatefulSet, DaemonSet)


class Revisions(Generic[T]):
    def __init__(self, client: Client, informers: Informers) -> None:
        self._client = client
        self.informer = informers.of(ControllerRevision)
        self._owned = Owned(client, ControllerRevision, self.informer)

    async def of(self, owner: T) -> list[ControllerRevision]:
        """Oldest first; orphans that the owner's selector finds are adopted."""
        found = [*self._owned.of(owner), *self._owned.orphans(owner.metadata.namespace)]
        return in_order(await self._owned.claim(owner, requirements(owner.spec.selector), found))

    async def create(self, revision: ControllerRevision) -> ControllerRevision | None:
        """None when another revision has its name. One with the same data is the one that was meant."""
        try:
            return await self._client.create(revision)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
        meta = revision.metadata
        found = await self._client.get(ControllerRevision, meta.name, meta.namespace)
        return found if found.data == revision.data else None

    async def renumber(self, revision: ControllerRevision, number: int) -> ControllerRevision:
        """The same under a higher number, as after a rollback."""
        if revision.revision == number:
            return revision
        return await self._client.update(replace(revision, revision=number))

    async def label(self, revision: ControllerRevision, labels: Mapping[str, str]) -> ControllerRevision:
        meta = replace(revision.metadata, labels={**revision.metadata.labels, **labels})
        return await self._client.update(replace(revision, metadata=meta))

    async def delete(self, revisions: Iterable[ControllerRevision]) -> None:
        for revision in revisions:
            try:
                await self._client.delete(ControllerRevision, revision.metadata.name, revision.metadata.namespace)
            except ApiError as error:
                if error.code != NOT_FOUND:
                    raise
