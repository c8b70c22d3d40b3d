"""POST: a new object."""

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from podfit.api.coordination.v1.types import Lease
from podfit.api.meta.base import Object, ObjectT
from podfit.api.meta.resource_info import ResourceInfo
from podfit.apiserver.admission.chain import Chain
from podfit.apiserver.context import Attributes, Context
from podfit.apiserver.duplicate_owners import ADMITTED, SENT, with_owners_once
from podfit.apiserver.handlers.answers import object_response, record_response
from podfit.apiserver.handlers.options import dry_run
from podfit.apiserver.handlers.write_attempts import WarningsOnRefusal, is_large, yield_turn
from podfit.apiserver.registry.allocations import allocated
from podfit.apiserver.registry.apply.managed import Entries, manager_of, tracked
from podfit.apiserver.registry.naming import random_suffix
from podfit.apiserver.registry.stored import Stored
from podfit.apiserver.registry.strategies.table import strategy_of
from podfit.apiserver.request.bodies import read_object
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.errors import ApiError, bad_request
from podfit.core.fields import refusal
from podfit.core.randomness import Random
from podfit.core.times import format_time
from podfit.decide.workload.templates import warnings_of
from podfit.decide.workload.unsupported_kinds import MANAGER_LEASE, has_manager, needs_controller, unattended_warning
from podfit.net.wire import Identity, Request, Response
from podfit.store.protocol import Companion

_LONGEST_BASE = 58
ATTEMPTS = 8


async def create(context: Context, chain: Chain, target: RequestInfo, request: Request, identity: Identity) -> Response:
    assert target.info is not None
    obj, warnings = read_object(request, target.info, context.gates, legacy=context.legacy)
    if is_large(request):
        await yield_turn()
    placed(obj, target)
    if (version := obj.metadata.resource_version).isdecimal() and version.strip("0"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    obj, repeated = with_owners_once(obj, SENT)
    return await create_object(context, chain, target, request, identity, obj, warnings=[*warnings, *repeated])


async def create_object(
    context: Context,
    chain: Chain,
    target: RequestInfo,
    request: Request,
    identity: Identity,
    obj: Object,
    *,
    warnings: list[str],
    entries: Entries | None = None,
) -> Response:
    """Store a new object; `entries` are the managers of its fields where they are known already."""
    info = target.info
    assert info is not None
    obj = placed(obj, target)
    strategy, dry, large = strategy_of(info.type), dry_run(request), is_large(request)
    for attempt in range(ATTEMPTS):
        now = format_time(context.clock.now())
        named = _completed(obj, now, context.random)
        attributes = Attributes(
            operation="CREATE",
            info=info,
            subresource="",
            namespace=target.namespace,
            name=named.metadata.name,
            identity=identity,
            dry_run=dry,
            url_name=target.name,
            generated=not obj.metadata.name,
        )
        if entries is None:
            owned = tracked(info, named, None, manager=manager_of(request), subresource="", now=now)
        else:
            owned = replace(named, metadata=replace(named.metadata, managed_fields=entries))
        if large:
            await yield_turn()
        with WarningsOnRefusal(attributes, warnings):
            admitted = await chain.mutate(attributes, strategy.prepare_create(info, owned, context.gates))
            admitted, repeated = with_owners_once(admitted, ADMITTED)
            attributes.rounds.warnings += repeated
            # Prepared again: what follows from the spec, such as the QoS class, follows from what admission made of it.
            admitted = strategy.prepare_create(info, placed(admitted, target), context.gates)
            if large:
                await yield_turn()
            admitted, deprecated = strategy.complete(admitted, identity)
            attributes.rounds.warnings += deprecated
            if errors := await context.checks.run(partial(strategy.validate_create, admitted, context.gates)):
                raise refusal(info.kind, named.metadata.name, errors, group=info.home.group)
            if large:
                await yield_turn()
            attributes.rounds.warnings += warnings_of(admitted, None)
            if context.own_nodes:
                attributes.rounds.warnings += strategy.unsupported_fields(admitted)
            attributes.rounds.warnings += await controller_warnings(context, info, admitted)
            await chain.validate(attributes, admitted)
        said = [*warnings, *attributes.rounds.warnings]
        objects: Stored[Object] = Stored(context.store, info)
        try:
            write = partial(_store, context, objects, attributes, admitted, said)
            return await chain.written(attributes, admitted, write)
        except ApiError as error:
            if error.reason == "AlreadyExists" and not obj.metadata.name and attempt < ATTEMPTS - 1:
                continue
            raise
    raise AssertionError("the last attempt returns or raises")


async def _store(
    context: Context,
    objects: Stored[Object],
    attributes: Attributes,
    obj: object,
    warnings: list[str],
    along: Sequence[Companion],
) -> Response:
    async with allocated(context, obj, None, dry=attributes.dry_run) as complete:
        if attributes.dry_run:
            await objects.check_free(attributes.namespace, attributes.name)
            return object_response(complete, status=201, warnings=warnings)
        record = await objects.create(complete, along=along)
    return record_response(attributes.info, record, status=201, warnings=warnings)


def placed(obj: ObjectT, target: RequestInfo) -> ObjectT:
    """The object in the namespace of the URL; what is of the whole cluster has none, whatever was sent."""
    meta = obj.metadata
    if meta.namespace == target.namespace:
        return obj
    if meta.namespace and target.namespace and meta.namespace != target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    return replace(obj, metadata=replace(meta, namespace=target.namespace))


def _completed(obj: ObjectT, now: str, random: Random) -> ObjectT:
    """What the server gives to a new object; a client cannot choose it."""
    meta = obj.metadata
    if not meta.name and meta.generate_name:
        meta = replace(meta, name=meta.generate_name[:_LONGEST_BASE] + random_suffix(random))
    meta = replace(
        meta,
        uid=random.uuid(),
        creation_timestamp=now,
        resource_version="",
        deletion_timestamp=None,
        deletion_grace_period_seconds=None,
        generation=0,
        self_link="",
    )
    return replace(obj, metadata=meta)


async def controller_warnings(context: Context, info: ResourceInfo, obj: Object) -> list[str]:
    """Warnings for a new object."""
    if not needs_controller(obj) or info.resource in context.controlled_resources:
        return []
    namespace, name = MANAGER_LEASE
    if has_manager(await context.find(Lease, name, namespace), context.clock.now()):
        return []
    return [unattended_warning(info.resource, obj)]
