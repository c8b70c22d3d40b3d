"""POST: a new object."""

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from podfit.api.coordination.v1.types import Lease
from podfit.api.core.v1.pods.types import Pod
from podfit.api.defaults import apply_defaults
from podfit.api.meta.base import Object, ObjectT
from podfit.api.meta.resource_info import ResourceInfo
from podfit.apiserver.admission.chain import AdmissionChain
from podfit.apiserver.context import Context
from podfit.apiserver.duplicate_owners import SENT, with_owners_once
from podfit.apiserver.handlers.answers import object_response, record_response
from podfit.apiserver.handlers.writing import (
    ADMIT,
    MUTATE_OBJECT,
    Step,
    Steps,
    Write,
    carried_out,
    from_body,
    run,
    store,
)
from podfit.apiserver.registry.apply.managed import manager_of, tracked
from podfit.apiserver.registry.naming import random_suffix
from podfit.apiserver.request.bodies import media_type
from podfit.apiserver.request.legacy_options import DRAFT_POLICIES
from podfit.apiserver.request.request_info import RequestInfo
from podfit.apiserver.request.write_options import check_write_options
from podfit.core.errors import ApiError, bad_request
from podfit.core.fields import refusal
from podfit.core.randomness import Random
from podfit.core.times import format_time
from podfit.decide.workload.templates import warnings_of
from podfit.decide.workload.unsupported_kinds import MANAGER_LEASE, has_manager, needs_controller, unattended_warning
from podfit.decide.write_stages import Stage
from podfit.net.wire import Identity, Request, Response
from podfit.store.protocol import Companion

_LONGEST_BASE = 58
ATTEMPTS = 8


async def create(
    context: Context, chain: AdmissionChain, request_info: RequestInfo, request: Request, identity: Identity
) -> Response:
    return await carried_out(Write.of("CREATE", context, chain, request_info, request, identity), CREATE)


# ---------------------------------------------------------------- its steps


def _read(write: Write) -> None:
    """A pod of a known spec has its defaults already, which it says by being `repeated`."""
    if _may_repeat(write):
        check_write_options(write.request)
        write.repeated = write.context.pod_specs.read(media_type(write.request), write.request.body)
    if write.repeated is None:
        from_body(write)
    else:
        write.sent = write.repeated


def _may_repeat(write: Write) -> bool:
    return write.info.type is Pod and DRAFT_POLICIES not in write.context.legacy


def _default(write: Write) -> None:
    context, request = write.context, write.request
    write.obj = apply_defaults(write.obj, context.gates, write.repeated)
    if write.repeated is None and _may_repeat(write) and not write.warnings:
        context.pod_specs.keep(media_type(request), request.body, write.obj.spec)


def _place(write: Write) -> None:
    """Raises 400 for an object of another namespace, or one that says which version it has."""
    placed_object = placed(write.sent, write.request_info)
    if (version := placed_object.metadata.resource_version).isdecimal() and version.strip("0"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    write.obj, repeated = with_owners_once(placed_object, SENT)
    write.warnings += repeated


async def create_named(write: Write) -> None:
    """Create `obj`, whose defaults are applied; under another name where one was made up and is taken."""
    write.sent = placed(write.obj, write.request_info)
    for _ in range(ATTEMPTS - 1):
        try:
            await run(write, NEW_OBJECT)
            return
        except ApiError as error:
            if error.reason != "AlreadyExists" or write.sent.metadata.name:
                raise
    await run(write, NEW_OBJECT)


def _name(write: Write) -> None:
    now = format_time(write.context.clock.now())
    write.obj = _completed(write.sent, now, write.context.random)
    write.identify(name=write.obj.metadata.name, generated=not write.sent.metadata.name)


def _track(write: Write) -> None:
    meta, entries = write.obj.metadata, write.entries
    if entries is not None:
        write.obj = replace(write.obj, metadata=replace(meta, managed_fields=entries))
    else:
        manager, now = manager_of(write.request), meta.creation_timestamp
        write.obj = tracked(write.info, write.obj, None, manager=manager, subresource="", now=now)


def _prepare(write: Write) -> None:
    write.obj = write.strategy.prepare_create(write.info, write.obj, write.context.gates)


def _prepare_again(write: Write) -> None:
    """What follows from the spec, such as the QoS class, follows from what admission made of it."""
    admitted = placed(write.obj, write.request_info)
    prepared = write.strategy.prepare_create(write.info, admitted, write.context.gates)
    write.obj, deprecated = write.strategy.complete(prepared, write.identity)
    write.about.reinvocations.warnings += deprecated


async def _validate(write: Write) -> None:
    context, info = write.context, write.info
    check = partial(write.strategy.validate_create, write.obj, context.gates)
    if errors := await context.checks.run(check):
        raise refusal(info.kind, write.about.name, errors, group=info.home.group)
    warnings = write.about.reinvocations.warnings
    warnings += warnings_of(write.obj, None)
    if context.own_nodes:
        warnings += write.strategy.unsupported_fields(write.obj, context.routes_services)
    warnings += await controller_warnings(context, info, write.obj)


async def _saved(write: Write, obj: Object, along: Sequence[Companion]) -> Response:
    if write.about.dry_run:
        await write.objects.check_free(write.about.namespace, write.about.name)
        return object_response(obj, status=201, warnings=write.said())
    record = await write.objects.create(obj, along=along)
    return record_response(write.info, record, status=201, warnings=write.said())


NEW_OBJECT: Steps = (
    Step(Stage.DECODE, _name),
    Step(Stage.TRACK, _track),
    Step(Stage.PREPARE, _prepare),
    MUTATE_OBJECT,
    Step(Stage.PREPARE, _prepare_again),
    Step(Stage.VALIDATE, _validate),
    ADMIT,
    Step(Stage.STORE, partial(store, saved=_saved)),
)
CREATE: Steps = (
    Step(Stage.DECODE, _read),
    Step(Stage.DECODE, _place),
    Step(Stage.DEFAULT, _default),
    Step(Stage.STORE, create_named),
)


def placed(obj: ObjectT, request_info: RequestInfo) -> ObjectT:
    """The object in the namespace of the URL; what is of the whole cluster has none, whatever was sent."""
    meta = obj.metadata
    if meta.namespace == request_info.namespace:
        return obj
    if meta.namespace and request_info.namespace and meta.namespace != request_info.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    return replace(obj, metadata=replace(meta, namespace=request_info.namespace))


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
