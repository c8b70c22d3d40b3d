"""Deletion of a CustomResourceDefinition: its objects are deleted first; those with finalizers are awaited."""

from msgspec.structs import replace

from podfit.api.apiextensions.v1.types import CLEANUP, CustomResourceDefinition
from podfit.api.registry import info_for
from podfit.api.structural.custom import Custom
from podfit.apiserver.context import Context
from podfit.apiserver.extensions.customresources.kinds import CustomInfo
from podfit.apiserver.extensions.customresources.view import VersionedStore
from podfit.apiserver.registry import stored
from podfit.apiserver.registry.removal import held, marked
from podfit.apiserver.registry.stored import Changed, Stored
from podfit.core.errors import ApiError
from podfit.store.protocol import Record


async def remove_all(context: Context, definition: CustomResourceDefinition, info: CustomInfo) -> bool:
    """Delete every object of the kind. Whether something is left that has to end by itself.

    The definition is looked at after the objects are listed: while it stands no new ones are made, so all that were
    listed are its own. Where it is gone, another server has ended it, and a later one of its name may have objects.
    """
    view = VersionedStore(context, info)
    objects = Stored[Custom](view, info)
    records = (await view.list(stored.prefix(info))).records
    if await _record(context, definition) is None:
        return False
    left = False
    for record in records:
        obj: Custom = stored.decoded(info, record)
        try:
            if not held(obj):
                await objects.delete(obj.metadata.namespace, obj.metadata.name, expected=record.mod_revision)
                continue
            left = True
            if not obj.metadata.deletion_timestamp:
                await objects.update(marked(obj, 0, context.clock.now()), expected=record.mod_revision)
        except Changed:
            left = True
        except ApiError as error:
            if error.code != 404:
                raise
    return left


async def until_empty(context: Context, definition: CustomResourceDefinition, info: CustomInfo) -> None:
    """Return when nothing of the kind is left."""
    watch = context.store.watch(stored.prefix(info), after=await context.store.newest())
    try:
        if await remove_all(context, definition, info):
            async for _ in watch:
                if not await remove_all(context, definition, info):
                    return
    finally:
        watch.close()


async def release(context: Context, definition: CustomResourceDefinition) -> None:
    """Take the finalizer away from a definition; without others it goes. A later one of its name is left alone."""
    info, name = info_for(CustomResourceDefinition), definition.metadata.name
    definitions = Stored[CustomResourceDefinition](context.store, info)
    while record := await _record(context, definition):
        current: CustomResourceDefinition = stored.decoded(info, record)
        kept = tuple(finalizer for finalizer in current.metadata.finalizers if finalizer != CLEANUP)
        try:
            if not kept:
                await definitions.delete("", name, expected=record.mod_revision)
            elif kept != current.metadata.finalizers:
                new = replace(current, metadata=replace(current.metadata, finalizers=kept))
                await definitions.update(new, expected=record.mod_revision)
            return
        except Changed:
            continue
        except ApiError as error:  # another server was quicker
            if error.code != 404:
                raise
            return


async def _record(context: Context, definition: CustomResourceDefinition) -> Record | None:
    """The definition as it is now, None when it is gone."""
    info = info_for(CustomResourceDefinition)
    record = await context.store.get(stored.key(info, "", definition.metadata.name))
    if record is None or stored.decoded(info, record).metadata.uid != definition.metadata.uid:
        return None
    return record
