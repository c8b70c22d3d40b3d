"""A token for a service account, asked for and answered as a TokenRequest of authentication.k8s.io/v1."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

from msgspec.structs import replace

from podfit.api.authentication.v1.types import (
    GROUP,
    BoundObjectReference,
    TokenRequest,
    TokenRequestSpec,
    TokenRequestStatus,
)
from podfit.api.core.v1.config.types import Secret, ServiceAccount
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import Object
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.registry import info_for
from podfit.apiserver.admission.chain import AdmissionChain
from podfit.apiserver.authn.tokens import DEFAULT, ISSUER, LONGEST, SHORTEST, ServiceAccountTokens
from podfit.apiserver.context import Context
from podfit.apiserver.handlers.answers import object_response
from podfit.apiserver.handlers.writing import ADMIT, FIND, MUTATE, Step, Steps, Write, carried_out
from podfit.apiserver.registry.apply.managed import manager_of, tracked
from podfit.apiserver.registry.stored import Stored
from podfit.apiserver.request.bodies import read_object
from podfit.apiserver.request.request_info import RequestInfo
from podfit.core.errors import bad_request, conflict
from podfit.core.fields import FieldError, invalid, refusal
from podfit.core.times import format_time
from podfit.decide.write_stages import Stage
from podfit.net.wire import Identity, Request, Response

_REQUESTS = ResourceInfo(
    type=TokenRequest, group=GROUP, resource="tokenrequests", singular="tokenrequest", verbs=("create",)
)
_BINDABLE: dict[str, type[Object]] = {"Pod": Pod, "Secret": Secret, "Node": Node}


async def create_token(
    context: Context,
    chain: AdmissionChain,
    tokens: ServiceAccountTokens,
    request_info: RequestInfo,
    request: Request,
    identity: Identity,
) -> Response:
    """Issue a token; its end, and the object that it ends with, are in the answer."""
    write = Write.of("CREATE", context, chain, request_info, request, identity)
    return await carried_out(write, (*TOKEN, Step(Stage.STORE, partial(_issue, tokens=tokens))))


def _read(write: Write) -> None:
    write.obj, write.warnings = read_object(write.request, _REQUESTS)
    write.info = info_for(ServiceAccount)
    write.identify(name=write.request_info.name, subresource="token")


def _prepare(write: Write) -> None:
    _check_meta(write.obj.metadata, write.request_info)


def _complete(write: Write) -> None:
    write.obj = replace(write.obj, spec=_with_duration(write.obj.spec), status=TokenRequestStatus())


def _validate(write: Write) -> None:
    if errors := _duration_errors(write.obj.spec.expiration_seconds):
        raise refusal("TokenRequest", "", errors, group=GROUP)


async def _find_bound(write: Write) -> None:
    ref = write.obj.spec.bound_object_ref
    write.sent = await _bound(write.context, write.request_info, ref) if ref else {}


def _track(write: Write) -> None:
    manager, now = manager_of(write.request), format_time(write.context.clock.now())
    write.asked = tracked(_REQUESTS, write.obj, None, manager=manager, subresource="token", now=now)


def _issue(write: Write, tokens: ServiceAccountTokens) -> None:
    """It is not stored: who has it has it."""
    asked, request_info = write.obj, write.request_info
    audiences = asked.spec.audiences or (ISSUER,)
    seconds = asked.spec.expiration_seconds
    token, ends = tokens.issue(write.old, seconds=seconds, audiences=audiences, bound=write.sent)
    meta = ObjectMeta(
        name=request_info.name,
        namespace=request_info.namespace,
        uid=write.context.random.uuid(),
        creation_timestamp=format_time(write.context.clock.now()),
        managed_fields=write.asked.metadata.managed_fields,
    )
    status = TokenRequestStatus(token=token, expiration_timestamp=format_time(datetime.fromtimestamp(ends, UTC)))
    answer = replace(asked, metadata=meta, spec=replace(asked.spec, audiences=audiences), status=status)
    write.answer = object_response(answer, status=201, warnings=write.said())


TOKEN: Steps = (
    Step(Stage.DECODE, _read),
    MUTATE,
    Step(Stage.PREPARE, _prepare),
    FIND,
    Step(Stage.PREPARE, _complete),
    Step(Stage.VALIDATE, _validate),
    Step(Stage.VALIDATE, _find_bound),
    ADMIT,
    Step(Stage.TRACK, _track),
)


def _check_meta(meta: ObjectMeta, request_info: RequestInfo) -> None:
    errors = []
    if meta.name not in ("", request_info.name):
        errors.append(invalid("metadata.name", meta.name, "must match the service account name if specified"))
    if meta.namespace not in ("", request_info.namespace):
        text = "must match the service account namespace if specified"
        errors.append(invalid("metadata.namespace", meta.namespace, text))
    if errors:
        raise refusal("TokenRequest", request_info.name, errors, group=GROUP)


def _with_duration(spec: TokenRequestSpec) -> TokenRequestSpec:
    return spec if spec.expiration_seconds is not None else replace(spec, expiration_seconds=DEFAULT)


def _duration_errors(seconds: int) -> list[FieldError]:
    if SHORTEST <= seconds <= LONGEST:
        return []
    limit = "less than 10 minutes" if seconds < SHORTEST else "larger than 2^32 seconds"
    return [invalid("spec.expirationSeconds", seconds, f"may not specify a duration {limit}")]


async def _bound(context: Context, request_info: RequestInfo, ref: BoundObjectReference) -> dict[str, ObjectMeta]:
    """The objects that a token is to name, by kind in lower case; with a pod its node, so that a service knows it."""
    group, _, version = ref.api_version.rpartition("/")
    kind = _BINDABLE.get(ref.kind) if not group else None
    if kind is None:
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={ref.kind}")
    namespace = "" if kind is Node else request_info.namespace
    obj: Any = await Stored[Object](context.store, info_for(kind)).get(namespace, ref.name)
    if isinstance(obj, Pod) and obj.spec.service_account_name != request_info.name:
        raise bad_request(
            f'cannot bind token for serviceaccount "{request_info.name}" to pod running with different '
            "serviceaccount name."
        )
    if ref.uid and ref.uid != obj.metadata.uid:
        raise conflict(ref.kind, ref.name, _other_uid(ref), group=group)
    bound: dict[str, ObjectMeta] = {ref.kind.lower(): obj.metadata}
    if isinstance(obj, Pod) and obj.spec.node_name:
        node = await context.find(Node, obj.spec.node_name)
        bound["node"] = node.metadata if node else ObjectMeta(name=obj.spec.node_name)
    return bound


def _other_uid(ref: BoundObjectReference) -> str:
    return (
        f"the UID in the bound object reference ({ref.uid}) does not match the UID in record. "
        "The object might have been deleted and then recreated"
    )
