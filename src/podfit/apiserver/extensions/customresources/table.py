"""The table of custom kinds, in step with the stored CustomResourceDefinitions.

Every API server follows the definitions by a watch of its own, so it serves what another one was given; after a write
of its own it looks at once, and the client's next request finds the kind served. Whoever looks also settles what is
open: the names and conditions of new definitions, and the objects of those that are being deleted.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterable
from dataclasses import replace as changed
from typing import Any, cast

from msgspec.structs import replace

from podfit.api.apiextensions.v1.types import CLEANUP, ESTABLISHED, CustomResourceDefinition, holds
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.registry import info_for, resources
from podfit.apiserver.context import Context
from podfit.apiserver.extensions.customresources.deletion import release, remove_all, until_empty
from podfit.apiserver.extensions.customresources.kinds import CustomInfo, entries, kept_as
from podfit.apiserver.extensions.customresources.names import settled
from podfit.apiserver.extensions.customresources.view import VersionedStore
from podfit.apiserver.registry import stored
from podfit.apiserver.registry.change_watch import RETRY, refresh_on_change
from podfit.apiserver.registry.stored import Stored
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.errors import ApiError
from podfit.core.times import format_time
from podfit.net.wire import Response
from podfit.store.protocol import StoreError

log = logging.getLogger(__name__)

Infos = tuple[ResourceInfo, ...]


class CustomTable:
    """`start` before the first request; what it started ends with the supervisor of the context."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._info = info_for(CustomResourceDefinition)
        self._known: dict[str, tuple[CustomResourceDefinition, tuple[CustomInfo, ...]]] = {}
        self._served: dict[tuple[str, str, str], CustomInfo] = {}
        self._views: dict[CustomInfo, VersionedStore] = {}
        self._going: set[tuple[str, str]] = set()  # group and resource of definitions that are being deleted
        self._lock, self._ending = asyncio.Lock(), asyncio.Lock()
        self._leaving: dict[str, asyncio.Task[None]] = {}
        self.all: Infos = resources()
        """Every kind that is served, built-in ones first."""

    async def start(self) -> None:
        revision = self._context.store.revision
        await self.refresh()
        following = refresh_on_change(
            self._context.store, self._context.clock, self._info, self.refresh, after=revision
        )
        self._context.supervisor.run(following, name="table of custom resources")

    def find(self, group: str, version: str, resource: str) -> CustomInfo | None:
        return self._served.get((group, version, resource))

    def context(self, request_info: RequestInfo) -> Context:
        """The context in which the verbs see objects of this kind in this version. Raises 405 for a creation when the
        kind is about to go."""
        info = request_info.info
        if not isinstance(info, CustomInfo):
            return self._context
        if request_info.verb == "create" and (info.group, info.resource) in self._going:
            text = "create not allowed while custom resource definition is terminating"
            details = {"group": info.group, "kind": info.resource}
            raise ApiError(405, "MethodNotAllowed", text, details)
        return changed(self._context, store=self._view(info))

    async def followed(self, info: ResourceInfo | None, write: Awaitable[Response]) -> Response:
        """The answer to a write, when what it means for this table has come about."""
        answer = await write
        if info is self._info:
            await self.refresh()
        return answer

    def _view(self, info: CustomInfo) -> VersionedStore:
        if info not in self._views:
            self._views[info] = VersionedStore(self._context, info)
        return self._views[info]

    async def refresh(self) -> None:
        """Bring the table in step with the definitions as they are now."""
        async with self._lock:
            definitions = await self._context.all(CustomResourceDefinition)
            definitions = [await self._settled(definition, definitions) for definition in definitions]
            known = {}
            for definition in definitions:
                old = self._known.get(definition.metadata.name)
                known[definition.metadata.name] = (
                    old if old and _same(old[0], definition) else (definition, entries(definition))
                )
            self._known = known
            going = [definition for definition in definitions if definition.metadata.deletion_timestamp]
            self._going = {(definition.spec.group, definition.status.accepted_names.plural) for definition in going}
            self._serve(info for _, infos in known.values() for info in infos)
        for ended in going:
            await self._end(ended)

    async def _end(self, definition: CustomResourceDefinition) -> None:
        """A definition that is being deleted goes with the last of its objects."""
        name, info = definition.metadata.name, kept_as(definition)
        async with self._ending:
            if CLEANUP not in definition.metadata.finalizers or name in self._leaving:
                return
            if info is not None and await remove_all(self._context, definition, info):
                waiting = self._wait(definition, info)
                self._leaving[name] = self._context.supervisor.begin(waiting, name=f"end of {name}")
            else:
                await self._release(definition)

    async def _wait(self, definition: CustomResourceDefinition, info: CustomInfo) -> None:
        try:
            while not await self._ended(definition, info):
                await self._context.clock.sleep(RETRY)
        finally:
            self._leaving.pop(definition.metadata.name, None)

    async def _ended(self, definition: CustomResourceDefinition, info: CustomInfo) -> bool:
        """Whether it came to its end, which may take long; not where the store failed in between."""
        try:
            await until_empty(self._context, definition, info)
            await self._release(definition)
        except (StoreError, ApiError) as error:
            log.warning("the end of a definition is awaited anew name=%s reason=%s", definition.metadata.name, error)
            return False
        return True

    async def _release(self, definition: CustomResourceDefinition) -> None:
        await release(self._context, definition)
        await self._gone()

    def _serve(self, infos: Iterable[CustomInfo]) -> None:
        kept = tuple(infos)
        for info in [view for view in self._views if view not in kept]:
            self._views.pop(info).retire()
        self._served = {(info.group, info.version, info.resource): info for info in kept}
        self.all = (*resources(), *sorted(kept, key=lambda info: info.group))

    async def _settled(
        self, definition: CustomResourceDefinition, others: list[CustomResourceDefinition]
    ) -> CustomResourceDefinition:
        others = [other for other in others if other.metadata.name != definition.metadata.name]

        status = settled(definition, others, format_time(self._context.clock.now()))
        if status == definition.status:
            return definition
        new = replace(definition, status=status)
        try:
            record = await self._definitions.update(new, expected=int(definition.metadata.resource_version))
        except ApiError as error:  # somebody wrote or deleted it meanwhile, so there will be another look
            if error.code not in (404, 409):
                raise
            return definition
        return cast(CustomResourceDefinition, stored.decoded(self._info, record))

    @property
    def _definitions(self) -> Stored[CustomResourceDefinition]:
        return Stored(self._context.store, self._info)

    async def _gone(self) -> None:
        """What is no more stored is no more served."""
        async with self._lock:
            names = {
                custom_resource_definition.metadata.name
                for custom_resource_definition in await self._context.all(CustomResourceDefinition)
            }
            self._known = {name: known for name, known in self._known.items() if name in names}
            self._serve(info for _, infos in self._known.values() for info in infos)


def _same(old: CustomResourceDefinition, new: CustomResourceDefinition) -> bool:
    """Whether what is served stays the same."""
    return bool(_relevant(old) == _relevant(new))


def _relevant(definition: CustomResourceDefinition) -> Any:
    meta, status = definition.metadata, definition.status
    return meta.uid, definition.spec, status.accepted_names, holds(definition, ESTABLISHED)
