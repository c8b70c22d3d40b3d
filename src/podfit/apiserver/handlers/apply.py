"""PATCH with `application/apply-patch+yaml`: server-side apply, which creates what is not there (R-003)."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from podfit.api.meta import codec
from podfit.api.meta.resource_info import ResourceInfo
from podfit.apiserver.admission.chain import AdmissionChain
from podfit.apiserver.context import Context
from podfit.apiserver.handlers.change import change, check_place
from podfit.apiserver.handlers.create import create_named
from podfit.apiserver.handlers.patching import PatchedObject
from podfit.apiserver.handlers.write_attempts import ATTEMPTS
from podfit.apiserver.handlers.writing import DEFAULT, Step, Steps, Write, carried_out, run
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
from podfit.decide.write_stages import Stage
from podfit.net.wire import Identity, Request, Response
from podfit.store.protocol import Record

_FALSE = ("false", "0")


async def apply(
    context: Context,
    chain: AdmissionChain,
    request_info: RequestInfo,
    request: Request,
    identity: Identity,
    may_create: Callable[[], Awaitable[None]],
) -> Response:
    """The object as the manager wants it. `may_create` raises 403 when the client may only change what is there."""
    write = Write.of("UPDATE", context, chain, request_info, request, identity)
    write.may_create = may_create
    return await carried_out(write, APPLY)


def _read(write: Write) -> None:
    write.sent = application = application_of(write.context, write.info, write.request_info, write.request)

    def make(record: Record) -> PatchedObject:
        old = stored.decoded(write.info, record)
        live = codec.to_dict(replace(old, metadata=replace(old.metadata, managed_fields=())))
        made = application.to(write.info, live, old.metadata.managed_fields)
        return PatchedObject(_typed(write.info, made), application.warnings, entries=made.entries)

    write.make = make


async def _create_or_change(write: Write) -> None:
    """Whichever it is by then: others may create it or take it away meanwhile."""
    info, request_info = write.info, write.request_info
    application, where = write.sent, stored.key(info, request_info.namespace, request_info.name)
    for attempt in range(ATTEMPTS):
        if await write.context.store.get(where) is not None:
            write.operation = "UPDATE"
            await change(write)
            return
        if request_info.subresource:
            raise not_found(info.resource, request_info.name, group=info.group)
        try:
            write.sent = application
            await run(write, CREATE_APPLIED)
            return
        except ApiError as error:
            if error.reason != "AlreadyExists" or attempt == ATTEMPTS - 1:
                raise


async def _right_to_create(write: Write) -> None:
    assert write.may_create is not None
    await write.may_create()


def _new(write: Write) -> None:
    """The object, which has to be the one of the URL; who names a uid means one that was there before."""
    info, request_info, application = write.info, write.request_info, write.sent
    made = application.to(info, None, ())
    obj = _typed(info, made)
    if uid := obj.metadata.uid:
        text = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise conflict(info.resource, request_info.name, text, group=info.group)
    check_place(request_info, obj.metadata)
    write.operation, write.record, write.old = "CREATE", None, None
    write.obj, write.entries, write.warnings = obj, made.entries, [*application.warnings]


APPLY: Steps = (Step(Stage.DECODE, _read), Step(Stage.STORE, _create_or_change))
CREATE_APPLIED: Steps = (
    Step(Stage.AUTHORIZE, _right_to_create),
    Step(Stage.DECODE, _new),
    DEFAULT,
    Step(Stage.STORE, create_named),
)


def application_of(context: Context, info: ResourceInfo, request_info: RequestInfo, request: Request) -> Application:
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
        subresource=request_info.subresource,
        reset=strategy_of(info.type).reset_fields(info, request_info.subresource),
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


def _typed(info: ResourceInfo, made: Applied) -> Any:
    return typed_object(made.document, info.type, version=info.version)
