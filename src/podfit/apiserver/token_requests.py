"""A token for a service account, asked for and answered as a TokenRequest of authentication.k8s.io/v1."""

from datetime import UTC, datetime

from msgspec.structs import replace

from podfit.api.base import Struct, always
from podfit.api.core.config import ServiceAccount
from podfit.api.core.pods import Pod
from podfit.api.meta import ObjectMeta
from podfit.api.registry import info_for
from podfit.apiserver.bodies import document, typed
from podfit.apiserver.context import Context
from podfit.apiserver.stored import Stored
from podfit.apiserver.target import Target
from podfit.apiserver.tokens import DEFAULT, ISSUER, LONGEST, SHORTEST, ServiceAccountTokens
from podfit.apiserver.verbs.answers import object_response
from podfit.core.errors import bad_request, conflict
from podfit.core.fields import FieldError, invalid, refusal
from podfit.core.times import format_time
from podfit.net.wire import Request, Response

GROUP = "authentication.k8s.io"


class BoundObject(Struct):
    kind: str = ""
    api_version: str = ""
    name: str = ""
    uid: str = ""


class TokenRequestSpec(Struct):
    audiences: tuple[str, ...] = ()
    expiration_seconds: int = 0
    bound_object_ref: BoundObject | None = None


class TokenRequestStatus(Struct):
    token: str = ""
    expiration_timestamp: str = ""


class TokenRequest(Struct):
    kind: str = always(default="TokenRequest")
    api_version: str = always(default=f"{GROUP}/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: TokenRequestSpec = always(default=TokenRequestSpec())
    status: TokenRequestStatus = always(default=TokenRequestStatus())


async def create_token(context: Context, tokens: ServiceAccountTokens, target: Target, request: Request) -> Response:
    """Issue a token; its end, and the pod that it ends with, are in the answer."""
    spec = typed(document(request)[0], TokenRequest).spec
    account = await Stored[ServiceAccount](context.store, info_for(ServiceAccount)).get(target.namespace, target.name)
    spec = replace(
        spec, audiences=spec.audiences or (ISSUER,), expiration_seconds=spec.expiration_seconds or DEFAULT
    )  # fmt: skip
    if not SHORTEST <= spec.expiration_seconds <= LONGEST:
        raise refusal("TokenRequest", target.name, [_wrong_duration(spec.expiration_seconds)], group=GROUP)
    pod = await _bound_pod(context, target, spec.bound_object_ref)
    token, expires = tokens.issue(account, seconds=spec.expiration_seconds, audiences=spec.audiences, pod=pod)
    now = format_time(context.clock.now())
    answer = TokenRequest(
        metadata=ObjectMeta(name=target.name, namespace=target.namespace, creation_timestamp=now), spec=spec,
        status=TokenRequestStatus(token=token, expiration_timestamp=format_time(datetime.fromtimestamp(expires, UTC))),
    )  # fmt: skip
    return object_response(answer, status=201)


def _wrong_duration(seconds: int) -> FieldError:
    limit = "less than 10 minutes" if seconds < SHORTEST else "larger than 2^32 seconds"
    return invalid("spec.expirationSeconds", seconds, f"may not specify a duration {limit}")


async def _bound_pod(context: Context, target: Target, ref: BoundObject | None) -> Pod | None:
    if ref is None:
        return None
    if ref.kind != "Pod":
        raise bad_request("cannot bind token to anything but a Pod")
    pod = await Stored[Pod](context.store, info_for(Pod)).get(target.namespace, ref.name)
    if ref.uid and ref.uid != pod.metadata.uid:
        text = "the UID in the bound object reference does not match the UID in record"
        raise conflict("pods", pod.metadata.name, text)
    return pod
