"""PUT and PATCH of an object, or of a subresource of it: the steps `STORED_OBJECT`.

Without a resource version they are done again when someone else was quicker; with one, that is the client's 409.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache, partial

import msgspec
import msgspec.structs
from msgspec.structs import replace

from podfit.api.meta.base import Object
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.meta.v1.types import ObjectMeta, Preconditions
from podfit.api.meta.validation.metadata import validate_any_update
from podfit.api.structural.custom import is_custom
from podfit.apiserver.admission.chain import AdmissionChain
from podfit.apiserver.authz.authorize import Authorizer
from podfit.apiserver.authz.nodes import node_name
from podfit.apiserver.context import Context
from podfit.apiserver.duplicate_owners import SENT, with_owners_once
from podfit.apiserver.handlers.allocations import allocated
from podfit.apiserver.handlers.answers import object_response, record_response
from podfit.apiserver.handlers.create import create_named
from podfit.apiserver.handlers.patching import PatchedObject, patcher
from podfit.apiserver.handlers.write_attempts import until_unchanged
from podfit.apiserver.handlers.writing import (
    ADMIT,
    DECODE,
    FIND,
    MUTATE_OBJECT,
    Step,
    Steps,
    Write,
    carried_out,
    default,
    in_order,
    run,
    store,
)
from podfit.apiserver.registry import stored
from podfit.apiserver.registry.apply.managed import NO_MANAGERS, Entries, given, manager_of, tracked, without_times
from podfit.apiserver.registry.removal import released
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.errors import bad_request, conflict
from podfit.core.fields import invalid, refusal
from podfit.core.times import format_time
from podfit.decide.workload.templates import warnings_of
from podfit.decide.write_stages import Stage
from podfit.net.wire import Identity, Request, Response
from podfit.store.protocol import Companion


async def update(
    context: Context,
    chain: AdmissionChain,
    request_info: RequestInfo,
    request: Request,
    identity: Identity,
    may_create: Callable[[], Awaitable[None]],
) -> Response:
    """Replace an object. Some kinds may be created so; `may_create` raises 403 for who may only change."""
    write = Write.of("UPDATE", context, chain, request_info, request, identity)
    write.may_create = may_create
    return await carried_out(write, UPDATE)


async def patch(
    context: Context, chain: AdmissionChain, request_info: RequestInfo, request: Request, identity: Identity
) -> Response:
    """Apply a patch; 415 for a kind of patch that this server does not have."""
    return await carried_out(Write.of("UPDATE", context, chain, request_info, request, identity), PATCH)


# ---------------------------------------------------------------- their steps


def _place(write: Write) -> None:
    check_place(write.request_info, write.sent.metadata)
    obj, repeated = with_owners_once(write.sent, SENT)
    wanted = PatchedObject(obj, [*write.warnings, *repeated])
    write.sent, write.warnings, write.make = obj, [*wanted.warnings], lambda _: wanted


async def _create_missing(write: Write) -> None:
    """Of the kinds that a PUT may create."""
    info, request_info = write.info, write.request_info
    if not info.created_by_update or request_info.subresource:
        return
    if await write.context.store.get(stored.key(info, request_info.namespace, request_info.name)) is None:
        check_uid(info, request_info, write.sent.metadata, ObjectMeta())
        assert write.may_create is not None
        await write.may_create()
        write.operation = "CREATE"
        write.obj = replace(write.sent, metadata=replace(write.sent.metadata, name=request_info.name))
        default(write)
        await create_named(write)


def _read_patch(write: Write) -> None:
    info = write.info
    write.make = patcher(
        write.context,
        info,
        write.request,
        lambda record: msgspec.json.decode(stored.whole(info, record)),
        typed=None if is_custom(info.type) else lambda record: stored.decoded(info, record),
    )


async def change(write: Write) -> None:
    """Change what is stored as `make` says, in the order that the strategy has for the subresource."""
    order = write.strategy.for_update(write.request_info.subresource).order
    await until_unchanged(partial(run, write, _ordered(order) if order else STORED_OBJECT))


def _make(write: Write) -> None:
    assert write.make is not None
    made = write.make(write.found)
    write.obj, write.warnings, write.entries = made.obj, [*made.warnings], made.entries


def _keep(write: Write) -> None:
    """The object has to be the one that is meant; what only the server writes of it stays."""
    wanted, old = write.obj, write.old
    _check_identity(write.info, write.request_info, wanted, old, exact=write.request.method == "PUT")
    write.identify(name=write.request_info.name, subresource=write.request_info.subresource)
    asked = wanted if node_name(write.identity) else write.strategy.without_echo(write.context.legacy, wanted, old)
    write.obj = replace(asked, metadata=_kept(wanted.metadata, old.metadata, _managers(write)))


def _default(write: Write) -> None:
    default(write)
    write.asked = write.obj


def _authorize(write: Write) -> Awaitable[None] | None:
    """In the legacy mode a write of the object may be one of a subresource, for which it takes that right as well."""
    if write.request_info.subresource:
        return None
    subresource = write.strategy.legacy_subresource(write.context.legacy, write.asked, write.old)
    if not subresource:
        return None
    write.identify(name=write.request_info.name, subresource=subresource)
    right = msgspec.structs.replace(write.request_info, subresource=subresource)
    return Authorizer(write.context).check(write.identity, right, write.request)


def _prepare(write: Write) -> None:
    updating = write.strategy.for_update(write.about.subresource)
    write.obj = updating.prepare(write.info, write.obj, write.old, write.context.gates)


async def _validate(write: Write) -> None:
    """Upstream asks about metadata in every update, and again among a kind's own rules: such causes repeat."""
    info, new, old, context = write.info, write.obj, write.old, write.context
    updating = write.strategy.for_update(write.about.subresource)
    errors = validate_any_update(new.metadata, old.metadata, namespaced=info.namespaced)
    if errors := errors + await context.checks.run(partial(updating.validate, new, old, context.gates)):
        raise refusal(info.kind, write.request_info.name, errors, group=info.home.group)
    if not write.about.subresource:
        write.about.reinvocations.warnings += warnings_of(new, old)


def _unchanged(write: Write) -> None:
    """Nothing is written, and the version stays, where nothing was asked for."""
    new, old, record = write.obj, write.old, write.found
    write.obj = new = replace(new, metadata=replace(new.metadata, resource_version=old.metadata.resource_version))
    if same(new, old) and not record.stale:
        dropped = write.strategy.for_update(write.about.subresource).writes_dropped and write.asked != old
        if not dropped:
            write.answer = record_response(write.info, record, warnings=write.said())


def _track(write: Write) -> None:
    if write.entries is None:
        manager, now = manager_of(write.request), format_time(write.context.clock.now())
        subresource = write.about.subresource
        write.obj = tracked(write.info, write.obj, write.old, manager=manager, subresource=subresource, now=now)


async def _release(write: Write) -> None:
    """With its last finalizer goes an object that is being deleted."""
    request_info = write.request_info
    async with allocated(write.context, None, write.old, dry=False):
        await write.objects.delete(request_info.namespace, request_info.name, expected=write.found.mod_revision)
    write.answer = object_response(write.obj, warnings=write.said())


def _released(write: Write) -> Awaitable[None] | None:
    return _release(write) if released(write.obj) and not write.about.dry_run else None


async def _saved(write: Write, obj: Object, along: Sequence[Companion]) -> Response:
    if write.about.dry_run:
        return object_response(obj, warnings=write.said())
    written = await write.objects.update(obj, expected=write.found.mod_revision, along=along)
    return record_response(write.info, written, warnings=write.said())


STORED_OBJECT: Steps = (
    FIND,
    Step(Stage.DECODE, _make),
    Step(Stage.DECODE, _keep),
    Step(Stage.DEFAULT, _default),
    Step(Stage.AUTHORIZE, _authorize),
    MUTATE_OBJECT,
    Step(Stage.PREPARE, _prepare),
    Step(Stage.VALIDATE, _validate),
    ADMIT,
    Step(Stage.TRACK, _unchanged),
    Step(Stage.TRACK, _track),
    Step(Stage.STORE, _released),
    Step(Stage.STORE, partial(store, saved=_saved)),
)
CHANGE = Step(Stage.STORE, change)
UPDATE: Steps = (DECODE, Step(Stage.DECODE, _place), Step(Stage.STORE, _create_missing), CHANGE)
PATCH: Steps = (Step(Stage.DECODE, _read_patch), CHANGE)


@lru_cache
def _ordered(order: tuple[Stage, ...]) -> Steps:
    return in_order(STORED_OBJECT, order)


def _check_identity(info: ResourceInfo, request_info: RequestInfo, wanted: Object, old: Object, *, exact: bool) -> None:
    """The object has to be the one of the URL, and the version that the client saw. `exact`: with the uid that was
    sent; in a patch another uid is a change, which validation refuses."""
    meta = wanted.metadata
    check_place(request_info, meta)
    if exact:
        check_uid(info, request_info, meta, old.metadata)
    version = asked_version(meta)
    if not version and not info.unconditional:
        errors = [invalid("metadata.resourceVersion", 0, "must be specified for an update")]
        raise refusal(info.resource, request_info.name, errors, group=info.group)
    if version and version != old.metadata.resource_version:
        raise conflict(info.resource, request_info.name, group=info.group)


def check_uid(info: ResourceInfo, request_info: RequestInfo, meta: ObjectMeta, old: ObjectMeta) -> None:
    """Who replaces an object and says which one means no other of its name. Raises 409."""
    check_stored(info, request_info, Preconditions(uid=meta.uid or None), old)


def check_stored(info: ResourceInfo, request_info: RequestInfo, wanted: Preconditions, old: ObjectMeta) -> None:
    """Conditions of a write that upstream's store looks at. Raises 409."""
    for name, asked, known in (
        ("UID", wanted.uid, old.uid),
        ("ResourceVersion", wanted.resource_version, old.resource_version),
    ):
        if asked is not None and asked != known:
            text = (
                f"StorageError: invalid object, Code: 4, Key: {_upstreams_key(info, request_info)}, "
                f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {name} in precondition: {asked}, "
                f"{name} in object meta: {known}"
            )
            raise conflict(info.resource, request_info.name, text, group=info.group)


def _upstreams_key(info: ResourceInfo, request_info: RequestInfo) -> str:
    """As upstream's answers name the object: some old kinds have places of their own, custom ones have their group, and
    a write of a subresource tells the store's prefix, too."""
    place = info.upstream_key or (f"{info.group}/{info.resource}" if is_custom(info.type) else info.resource)
    prefix = stored.ROOT if request_info.subresource else ""
    return "/".join((prefix, *(part for part in (place, request_info.namespace, request_info.name) if part)))


def asked_version(meta: ObjectMeta) -> str:
    """The resource version that a write depends on, empty when on none, as zero says, too."""
    version: str = meta.resource_version
    digits = version.isascii() and version.isdigit()
    return (version.lstrip("0") if digits else version) if version else ""


def check_place(request_info: RequestInfo, meta: ObjectMeta) -> None:
    """The object has to be in the namespace and have the name of the URL. Raises 400."""
    if meta.namespace and request_info.namespace and meta.namespace != request_info.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if not meta.name:
        where = f"{request_info.name} based on URL"
        raise bad_request(f"the name of the object ({where}) was undeterminable: name must be provided")
    if meta.name != request_info.name:
        raise bad_request(
            f"the name of the object ({meta.name}) does not match the name on the URL ({request_info.name})"
        )


def same(new: Object, old: Object) -> bool:
    """Whether a write would change nothing but when a manager last wrote."""
    if new == old:
        return True
    mine, kept = new.metadata.managed_fields, old.metadata.managed_fields
    if mine == kept or without_times(mine) != without_times(kept):
        return False
    return bool(replace(new, metadata=replace(new.metadata, managed_fields=kept)) == old)


def _managers(write: Write) -> Entries:
    """The managers that a client left, forgot or replaced; nothing invalid is taken, nor through a subresource."""
    kept: Entries = write.old.metadata.managed_fields
    if write.entries is not None or write.request_info.subresource:
        return kept if write.entries is None else write.entries
    wanted: Entries = write.obj.metadata.managed_fields
    if wanted is kept:
        return kept
    return () if wanted == NO_MANAGERS else given(wanted) or kept


def _kept(meta: ObjectMeta, old: ObjectMeta, managers: Entries) -> ObjectMeta:
    """What the server gave to the object stays: silently for times, generation and link; another uid, grace period or a
    deletion that nobody asked for is named by validation."""
    return replace(
        meta,
        resource_version=old.resource_version,
        name=old.name,
        namespace=old.namespace,
        uid=meta.uid or old.uid,
        generation=old.generation,
        self_link=old.self_link,
        managed_fields=managers,
        creation_timestamp=old.creation_timestamp,
        deletion_timestamp=old.deletion_timestamp or meta.deletion_timestamp,
        deletion_grace_period_seconds=_first(meta.deletion_grace_period_seconds, old.deletion_grace_period_seconds),
    )


def _first(given: int | None, other: int | None) -> int | None:
    return other if given is None else given
