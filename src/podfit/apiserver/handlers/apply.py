"""PATCH with `application/apply-patch+yaml`: server-side apply, which creates what is not there (R-003)."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from podfit.api.defaults import apply_defaults
from podfit.api.meta import codec
from podfit.api.meta.base import ObjectT
from podfit.api.meta.resource_info import ResourceInfo
from podfit.apiserver.admission.chain import Chain
from podfit.apiserver.context import Context
from podfit.apiserver.handlers.change import change, check_place
from podfit.apiserver.handlers.create import create_object
from podfit.apiserver.handlers.patching import PatchedObject
from podfit.apiserver.handlers.write_attempts import ATTEMPTS, is_large, until_unchanged, yield_turn
from podfit.apiserver.registry import stored
from podfit.apiserver.registry.apply.apply import Application, Applied
from podfit.apiserver.registry.apply.managed import manager_of
from podfit.apiserver.registry.strategies.table import strategy_of
from podfit.apiserver.request.bodies import STRICT, Strictness, most_values, todays, typed_object
from podfit.apiserver.request.documents import check_size, parse_json
from podfit.apiserver.request.request_info import RequestInfo
from podfit.apiserver.request.write_options import check_write_options
from podfit.apiserver.request.yaml_documents import parse_yaml_strictly
from podfit.core.errors import ApiError, bad_request, conflict, not_found
from podfit.core.times import format_time
from podfit.net.wire import Identity, Request, Response
from podfit.store.protocol import Record

_FALSE = ("false", "0")


async def apply(
    context: Context,
    chain: Chain,
    target: RequestInfo,
    request: Request,
    identity: Identity,
    may_create: Callable[[], Awaitable[None]],
) -> Response:
    """The object as the manager wants it. `may_create` raises 403 when the client may only change what is there."""
    info = target.info
    assert info is not None
    application = application_of(context, info, target, request)

    def make(record: Record) -> PatchedObject:
        old = stored.decoded(info, record)
        live = codec.to_dict(replace(old, metadata=replace(old.metadata, managed_fields=())))
        made = application.to(info, live, old.metadata.managed_fields)
        return PatchedObject(_typed(context, info, made), application.warnings, entries=made.entries)

    where = stored.key(info, target.namespace, target.name)
    for attempt in range(ATTEMPTS):
        if await context.store.get(where) is not None:
            return await until_unchanged(partial(change, context, chain, target, request, identity, make))
        if target.subresource:
            raise not_found(info.resource, target.name, group=info.group)
        await may_create()
        if is_large(request):
            await yield_turn()
        made = application.to(info, None, ())
        try:
            if is_large(request):
                await yield_turn()
            obj = _new(_typed(context, info, made), info, target)
            said = [*application.warnings]
            return await create_object(
                context, chain, target, request, identity, obj, warnings=said, entries=made.entries
            )
        except ApiError as error:
            if error.reason != "AlreadyExists" or attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def application_of(context: Context, info: ResourceInfo, target: RequestInfo, request: Request) -> Application:
    """What the request applies. Raises 422 without a manager's name, 400 for what is no object."""
    check_write_options(request, applies=True)
    document, problems = _document(request.body)
    if len(request.body) > 2 * (most := most_values(info.type)):
        check_size(document, most)
    strict = Strictness.of(request)
    refused = f"error strict decoding YAML: {', '.join(problems)}" if problems and strict.level == STRICT else ""
    warnings = [] if refused else strict.check(problems, bad_request)
    document = {} if document is None else document
    if not isinstance(document, dict):
        what = {list: "array", str: "string", bool: "bool"}.get(type(document), "number")
        why = f"cannot unmarshal {what} into Go value of type map[string]interface {{}}"
        raise bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: json: {why}")
    force = request.query.get("force", ())
    return Application(
        document=todays(document, info.type, context.legacy),
        manager=manager_of(request),
        subresource=target.subresource,
        reset=strategy_of(info.type).reset_fields(info, target.subresource),
        force=bool(force) and force[0].lower() not in _FALSE,
        now=format_time(context.clock.now()),
        warnings=tuple(warnings),
        refused=refused,
    )


def _document(body: bytes) -> tuple[Any, list[str]]:
    """The document, and what is said of keys that occur twice. JSON is read as such where none does: it is what kubectl
    sends, and the quicker way."""
    if body.lstrip()[:1] == b"{":
        try:
            document, problems = parse_json(body)
            if not problems:
                return document, []
        except ApiError as error:
            if error.code == 413:
                raise
            # braces may begin YAML just as well

    try:
        value, problems = parse_yaml_strictly(body)
    except ApiError as error:
        if error.code != 400:
            raise
        raise bad_request(f"error decoding YAML: {error.message}") from error
    return value, [f"error converting YAML to JSON: {problem}" for problem in problems]


def _typed(context: Context, info: ResourceInfo, made: Applied) -> Any:
    return apply_defaults(typed_object(made.document, info.type, version=info.version), context.gates)


def _new(obj: ObjectT, info: ResourceInfo, target: RequestInfo) -> ObjectT:
    """The object, which has to be the one of the URL; who names a uid means one that was there before."""
    meta = obj.metadata
    if meta.uid:
        text = f"uid mismatch: the provided object specified uid {meta.uid}, and no existing object was found"
        raise conflict(info.resource, target.name, text, group=info.group)
    check_place(target, meta)
    return obj
