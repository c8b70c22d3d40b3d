"""DELETE of one object, or of all that a selector finds."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from msgspec.structs import replace

from podfit.api.meta.base import Object
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.meta.v1.types import DeleteOptions
from podfit.apiserver.admission.chain import AdmissionChain
from podfit.apiserver.context import Context
from podfit.apiserver.handlers.allocations import allocated
from podfit.apiserver.handlers.answers import object_response, record_response, success, told, warning_headers
from podfit.apiserver.handlers.options import delete_options, is_dry
from podfit.apiserver.handlers.read import matching
from podfit.apiserver.handlers.writing import ADMIT, FIND, Step, Steps, Write, again, carried_out
from podfit.apiserver.registry import stored
from podfit.apiserver.registry.removal import check_preconditions, held, marked, propagating
from podfit.apiserver.registry.stored import Stored
from podfit.apiserver.registry.strategies.table import strategy_of
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.errors import ApiError
from podfit.decide.write_stages import Stage
from podfit.net.wire import Identity, Request, Response
from podfit.store.protocol import Record

WORKERS = 8  # deletions of a collection at once


async def delete(
    context: Context, chain: AdmissionChain, request_info: RequestInfo, request: Request, identity: Identity
) -> Response:
    options = delete_options(request)
    write = Write.of("DELETE", context, chain, request_info, request, identity)
    write.sent, write.warnings = options, [*write.strategy.delete.warnings(options)]
    return await carried_out(write, DELETE)


def _identify(write: Write) -> None:
    write.obj = write.old
    write.identify(name=write.request_info.name, dry=is_dry(write.request, write.sent))


async def _mutate(write: Write) -> None:
    """What goes is not changed; who refuses is asked."""
    await write.chain.mutate(write.about, write.obj)


def _validate(write: Write) -> None:
    check_preconditions(write.info, write.obj, write.sent)


async def _remove(write: Write) -> None:
    dry = write.about.dry_run
    removed = await remove(write.context, write.info, write.obj, write.found, write.sent, dry=dry)
    write.answer = removed if not (said := write.said()) else replace(removed, headers=warning_headers(said))


DELETE: Steps = (
    again(
        FIND,
        Step(Stage.DECODE, _identify),
        Step(Stage.MUTATE, _mutate),
        Step(Stage.VALIDATE, _validate),
        ADMIT,
        Step(Stage.STORE, _remove),
    ),
)


async def remove(
    context: Context, info: ResourceInfo, obj: Object, record: Record, options: DeleteOptions, *, dry: bool
) -> Response:
    """Take an object away, at once or, when something has to happen first, by and by."""
    strategy = strategy_of(info.type).delete
    grace = strategy.grace(obj, options)
    waiting = propagating(info, obj, options)
    meta = obj.metadata
    if grace or held(waiting):
        leaving = marked(waiting, grace, context.clock.now())
        if leaving is obj:
            return record_response(info, record)
        if dry:
            return object_response(leaving)
        return record_response(
            info, await Stored[Object](context.store, info).update(leaving, expected=record.mod_revision)
        )
    if not dry:
        going = marked(obj, 0, context.clock.now()) if strategy.shown_as_marked or meta.deletion_timestamp else obj
        if going is not obj:  # as upstream, watchers see its last moment
            record = await Stored[Object](context.store, info).update(going, expected=record.mod_revision)
        expected = record.mod_revision
        async with allocated(context, None, obj, dry=dry):
            record = await Stored[Object](context.store, info).delete(meta.namespace, meta.name, expected=expected)
    if strategy.answered_with_object:
        if strategy.shown_as_marked and not meta.deletion_timestamp:
            going = marked(obj, 0, context.clock.now())
            return object_response(
                replace(going, metadata=replace(going.metadata, resource_version=str(record.mod_revision)))
            )
        if meta.deletion_timestamp and meta.deletion_grace_period_seconds:
            now = replace(meta, deletion_grace_period_seconds=0, resource_version=str(record.mod_revision))
            return object_response(replace(obj, metadata=now))
        return record_response(info, record)
    details = {"name": meta.name, "group": info.group, "kind": info.resource, "uid": meta.uid}
    return success({name: value for name, value in details.items() if value})


async def delete_collection(
    context: Context, chain: AdmissionChain, request_info: RequestInfo, request: Request, identity: Identity
) -> Response:
    """Each that matches is deleted as by itself, several at a time; the answer lists what was found. The first that is
    refused ends it, as upstream's one worker would; so does a client that goes away."""
    info = request_info.info
    assert info is not None
    options = delete_options(request)
    work = _delete_matching(context, chain, request_info, request, identity, options)
    return await told(strategy_of(info.type).delete.warnings(options), work)


async def _delete_matching(
    context: Context,
    chain: AdmissionChain,
    request_info: RequestInfo,
    request: Request,
    identity: Identity,
    options: DeleteOptions,
) -> Response:
    info = request_info.info
    assert info is not None
    page = await matching(context, request_info, request)

    async def remove_one(record: Record) -> None:
        name = record.key.rpartition("/")[2]
        namespace = record.key.removeprefix(stored.prefix(info)).rpartition("/")[0] if info.namespaced else ""
        one = RequestInfo("delete", info.group, info.version, info.resource, namespace, name, info=info)
        write = Write.of("DELETE", context, chain, one, request, identity)
        try:
            write.sent = options
            await asyncio.shield(carried_out(write, DELETE))
        except ApiError as error:
            if error.code != 404:
                raise

    await _each(page.records, remove_one)
    return page.response(context.lists)


async def _each(records: Sequence[Record], work: Callable[[Record], Awaitable[None]]) -> None:
    """Writes that are under way together share a commit. Raises what the first that fails does, and begins no more."""
    left = iter(records)

    async def worker() -> None:
        for record in left:
            await work(record)
            await asyncio.sleep(0)  # what one commit woke is not one turn of the loop

    workers = [asyncio.create_task(worker()) for _ in range(min(WORKERS, len(records)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
