"""PUT and PATCH of an object, or of a subresource of it.

    decode or patch ─▶ defaults ─▶ admission changes it ─▶ its strategy keeps what may change ─▶ validation (422)
        ─▶ admission refuses (403) ─▶ store, unless nothing was asked for

Without a resource version it is done again when someone else was quicker; with one, that is the client's 409.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec
import msgspec.structs
from msgspec.structs import replace

from podfit.api.meta.base import Object
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.meta.v1.types import ObjectMeta, Preconditions
from podfit.api.meta.validation.metadata import validate_any_update
from podfit.api.structural.custom import is_custom
from podfit.apiserver.admission.chain import Chain
from podfit.apiserver.authz.authorize import Authorizer
from podfit.apiserver.authz.nodes import node_name
from podfit.apiserver.context import Attributes, Context
from podfit.apiserver.duplicate_owners import ADMITTED, SENT, with_owners_once
from podfit.apiserver.handlers.answers import object_response, record_response
from podfit.apiserver.handlers.create import create_object
from podfit.apiserver.handlers.options import dry_run
from podfit.apiserver.handlers.patching import Make, PatchedObject, patcher
from podfit.apiserver.handlers.write_attempts import WarningsOnRefusal, is_large, until_unchanged, yield_turn
from podfit.apiserver.registry import stored
from podfit.apiserver.registry.allocations import allocated
from podfit.apiserver.registry.apply.managed import NO_MANAGERS, Entries, given, manager_of, tracked, without_times
from podfit.apiserver.registry.removal import released
from podfit.apiserver.registry.stored import Stored
from podfit.apiserver.registry.strategies.table import strategy_of
from podfit.apiserver.request.bodies import read_object
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.errors import bad_request, conflict
from podfit.core.fields import invalid, refusal
from podfit.core.times import format_time
from podfit.decide.workload.templates import warnings_of
from podfit.net.wire import Identity, Request, Response
from podfit.store.protocol import Companion


async def update(
    context: Context,
    chain: Chain,
    target: RequestInfo,
    request: Request,
    identity: Identity,
    may_create: Callable[[], Awaitable[None]],
) -> Response:
    """Replace an object. Some kinds may be created so; `may_create` raises 403 for who may only change."""
    info = _info(target)
    wanted = PatchedObject(*read_object(request, info, context.gates, legacy=context.legacy))
    check_place(target, wanted.obj.metadata)
    once, repeated = with_owners_once(wanted.obj, SENT)
    wanted = PatchedObject(once, [*wanted.warnings, *repeated])
    if info.created_by_update and not target.subresource:
        meta, where = wanted.obj.metadata, stored.key(info, target.namespace, target.name)
        if await context.store.get(where) is None:
            check_uid(info, target, meta, ObjectMeta())
            await may_create()
            named = replace(wanted.obj, metadata=replace(meta, name=target.name))
            return await create_object(context, chain, target, request, identity, named, warnings=[*wanted.warnings])
    return await until_unchanged(partial(change, context, chain, target, request, identity, lambda _: wanted))


async def patch(context: Context, chain: Chain, target: RequestInfo, request: Request, identity: Identity) -> Response:
    """Apply a patch; 415 for a kind of patch that this server does not have."""
    info = _info(target)
    make = patcher(
        context,
        info,
        request,
        lambda record: msgspec.json.decode(stored.whole(info, record)),
        typed=None if is_custom(info.type) else lambda record: stored.decoded(info, record),
    )
    return await until_unchanged(partial(change, context, chain, target, request, identity, make))


def _info(target: RequestInfo) -> ResourceInfo:
    assert target.info is not None
    return target.info


class _Turns:
    """Ends a turn of the event loop between the steps of a large write, so that others are served meanwhile."""

    def __init__(self, large: bool) -> None:
        self._large = large

    async def end(self) -> None:
        if self._large:
            await yield_turn()


async def change(
    context: Context, chain: Chain, target: RequestInfo, request: Request, identity: Identity, make: Make
) -> Response:
    info = _info(target)
    objects: Stored[Object] = Stored(context.store, info)
    record = await objects.record(target.namespace, target.name)
    old, turn = stored.decoded(info, record), _Turns(is_large(request, record))
    await turn.end()
    made = make(record)
    await turn.end()
    wanted, warnings = made.obj, made.warnings
    _check_identity(info, target, wanted, old, exact=request.method == "PUT")
    dry = dry_run(request)
    strategy = strategy_of(info.type)
    asked = wanted if node_name(identity) else strategy.without_echo(context.legacy, wanted, old)
    asked = replace(asked, metadata=_kept(wanted.metadata, old.metadata, _managers(made, target, old)))
    subresource = target.subresource or strategy.legacy_subresource(context.legacy, asked, old)
    if subresource != target.subresource:
        await Authorizer(context).check(identity, msgspec.structs.replace(target, subresource=subresource), request)
    attributes = Attributes(
        operation="UPDATE",
        info=info,
        subresource=subresource,
        namespace=target.namespace,
        name=target.name,
        identity=identity,
        dry_run=dry,
        old=old,
        url_name=target.name,
    )
    updating = strategy.for_update(subresource)
    with WarningsOnRefusal(attributes, warnings):
        admitted, repeated = with_owners_once(await chain.mutate(attributes, asked), ADMITTED)
        attributes.rounds.warnings += repeated
        new = updating.prepare(info, admitted, old, context.gates)
        # Upstream asks about metadata in every update, and again among a kind's own rules: such causes repeat.
        errors = validate_any_update(new.metadata, old.metadata, namespaced=info.namespaced)
        if errors := errors + await context.checks.run(partial(updating.validate, new, old, context.gates)):
            raise refusal(info.kind, target.name, errors, group=info.home.group)
        if not subresource:
            attributes.rounds.warnings += warnings_of(new, old)
        await turn.end()
    await chain.validate(attributes, new)
    warnings = [*warnings, *attributes.rounds.warnings]
    new = replace(new, metadata=replace(new.metadata, resource_version=old.metadata.resource_version))
    if same(new, old) and not record.stale and not (updating.writes_dropped and asked != old):
        return record_response(info, record, warnings=warnings)
    if made.entries is None:
        new = tracked(
            info, new, old, manager=manager_of(request), subresource=subresource, now=format_time(context.clock.now())
        )
    await turn.end()
    if released(new) and not dry:
        async with allocated(context, None, old, dry=dry):
            await objects.delete(target.namespace, target.name, expected=record.mod_revision)
        return object_response(new, warnings=warnings)

    async def store(along: Sequence[Companion]) -> Response:
        async with allocated(context, new, old, dry=dry) as complete:
            if dry:
                return object_response(complete, warnings=warnings)
            written = await objects.update(complete, expected=record.mod_revision, along=along)
        return record_response(info, written, warnings=warnings)

    return await chain.written(attributes, new, store)


def _check_identity(info: ResourceInfo, target: RequestInfo, wanted: Object, old: Object, *, exact: bool) -> None:
    """The object has to be the one of the URL, and the version that the client saw. `exact`: with the uid that was
    sent; in a patch another uid is a change, which validation refuses."""
    meta = wanted.metadata
    check_place(target, meta)
    if exact:
        check_uid(info, target, meta, old.metadata)
    version = asked_version(meta)
    if not version and not info.unconditional:
        errors = [invalid("metadata.resourceVersion", 0, "must be specified for an update")]
        raise refusal(info.resource, target.name, errors, group=info.group)
    if version and version != old.metadata.resource_version:
        raise conflict(info.resource, target.name, group=info.group)


def check_uid(info: ResourceInfo, target: RequestInfo, meta: ObjectMeta, old: ObjectMeta) -> None:
    """Who replaces an object and says which one means no other of its name. Raises 409."""
    check_stored(info, target, Preconditions(uid=meta.uid or None), old)


def check_stored(info: ResourceInfo, target: RequestInfo, wanted: Preconditions, old: ObjectMeta) -> None:
    """Conditions of a write that upstream's store looks at. Raises 409."""
    for name, asked, known in (
        ("UID", wanted.uid, old.uid),
        ("ResourceVersion", wanted.resource_version, old.resource_version),
    ):
        if asked is not None and asked != known:
            text = (
                f"StorageError: invalid object, Code: 4, Key: {_upstreams_key(info, target)}, ResourceVersion: 0, "
                f"AdditionalErrorMsg: Precondition failed: {name} in precondition: {asked}, "
                f"{name} in object meta: {known}"
            )
            raise conflict(info.resource, target.name, text, group=info.group)


def _upstreams_key(info: ResourceInfo, target: RequestInfo) -> str:
    """As upstream's answers name the object: some old kinds have places of their own, custom ones have their group, and
    a write of a subresource tells the store's prefix, too."""
    place = info.upstream_key or (f"{info.group}/{info.resource}" if is_custom(info.type) else info.resource)
    prefix = stored.ROOT if target.subresource else ""
    return "/".join((prefix, *(part for part in (place, target.namespace, target.name) if part)))


def asked_version(meta: ObjectMeta) -> str:
    """The resource version that a write depends on, empty when on none, as zero says, too."""
    version: str = meta.resource_version
    digits = version.isascii() and version.isdigit()
    return (version.lstrip("0") if digits else version) if version else ""


def check_place(target: RequestInfo, meta: ObjectMeta) -> None:
    """The object has to be in the namespace and have the name of the URL. Raises 400."""
    if meta.namespace and target.namespace and meta.namespace != target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if not meta.name:
        where = f"{target.name} based on URL"
        raise bad_request(f"the name of the object ({where}) was undeterminable: name must be provided")
    if meta.name != target.name:
        raise bad_request(f"the name of the object ({meta.name}) does not match the name on the URL ({target.name})")


def same(new: Object, old: Object) -> bool:
    """Whether a write would change nothing but when a manager last wrote."""
    if new == old:
        return True
    mine, kept = new.metadata.managed_fields, old.metadata.managed_fields
    if mine == kept or without_times(mine) != without_times(kept):
        return False
    return bool(replace(new, metadata=replace(new.metadata, managed_fields=kept)) == old)


def _managers(made: PatchedObject, target: RequestInfo, old: Object) -> Entries:
    """The managers that a client left, forgot or replaced; nothing invalid is taken, nor through a subresource."""
    kept: Entries = old.metadata.managed_fields
    if made.entries is not None or target.subresource:
        return kept if made.entries is None else made.entries
    wanted: Entries = made.obj.metadata.managed_fields
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
