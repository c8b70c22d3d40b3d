"""AdmissionReview: the request that a webhook gets, and the validation of its response."""

import msgspec

from podfit.api.admission.v1.types import (
    AdmissionRequest,
    AdmissionResponse,
    AdmissionReview,
    GroupVersionKind,
    GroupVersionResource,
)
from podfit.api.admissionregistration.v1.types import ValidatingWebhook
from podfit.api.admissionregistration.v1.validation import REVIEW_VERSIONS
from podfit.api.authentication.v1.types import UserInfo
from podfit.api.meta import codec
from podfit.api.meta.base import Document, Object
from podfit.apiserver.context import Attributes
from podfit.core.errors import ApiError

GROUP = "admission.k8s.io"
JSON_PATCH = "JSONPatch"
_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


class CallFailed(Exception):
    """There is no answer, or none that counts: what the webhook's failure policy is about."""


def review_of(webhook: ValidatingWebhook, attributes: Attributes, obj: Object, *, uid: str) -> AdmissionReview:
    """The question in the first version of the webhook's list that this server speaks; validation saw to it that there
    is one. The answer has to name the same `uid`."""
    version = next(version for version in webhook.admission_review_versions if version in REVIEW_VERSIONS)
    info, who = attributes.info, attributes.identity
    group, _, of = obj.api_version.rpartition("/")  # an Eviction is another kind than the pod that it is about
    kind = GroupVersionKind(group=group, version=of, kind=obj.kind)
    resource = GroupVersionResource(group=info.group, version=info.version, resource=info.resource)
    request = AdmissionRequest(
        uid=uid,
        kind=kind,
        resource=resource,
        sub_resource=attributes.subresource,
        request_kind=kind,
        request_resource=resource,
        request_sub_resource=attributes.subresource,
        name=attributes.name,
        namespace=namespace_of(attributes),
        operation=attributes.operation,
        user_info=UserInfo(username=who.user, uid=who.uid, groups=who.groups, extra=dict(who.extra)),
        object=None if attributes.operation == "DELETE" else msgspec.Raw(codec.encode(obj)),
        old_object=None if attributes.old is None else msgspec.Raw(codec.encode(attributes.old)),
        dry_run=attributes.dry_run,
        options=_options(attributes),
    )
    return AdmissionReview(api_version=f"{GROUP}/{version}", request=request)


def _options(attributes: Attributes) -> dict[str, object] | None:
    """Those of the write; a connection's own are its object."""
    if (kind := _OPTIONS.get(attributes.operation)) is None:
        return None
    options: dict[str, object] = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    return options | ({"dryRun": ["All"]} if attributes.dry_run else {})


def values_of(webhook: ValidatingWebhook, attributes: Attributes, obj: Object) -> Document:
    """What conditions may name: the request as the webhook would be told, its two objects apart."""
    review = review_of(webhook, attributes, obj, uid="")
    assert review.request is not None
    request: Document = msgspec.json.decode(codec.encode(review.request))
    request.pop("uid", None)
    return {"object": request.pop("object", None), "oldObject": request.pop("oldObject", None), "request": request}


def namespace_of(attributes: Attributes) -> str:
    """A request for a namespace is in that namespace, as upstream counts."""
    return attributes.name if of_namespace(attributes) else attributes.namespace


def of_namespace(attributes: Attributes) -> bool:
    """Whether the object is a namespace itself."""
    return (attributes.info.group, attributes.info.resource) == ("", "namespaces")


def answer_of(body: bytes, asked: AdmissionReview, *, may_patch: bool) -> AdmissionResponse:
    """Raises CallFailed for an answer to something else, or of the wrong shape."""
    try:
        review = codec.decode(body, AdmissionReview)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CallFailed(f"received invalid webhook response: {error}") from None
    if problem := _problem(review, asked, may_patch=may_patch):
        raise CallFailed(f"received invalid webhook response: {problem}")
    assert review.response is not None
    return review.response


def _problem(review: AdmissionReview, asked: AdmissionReview, *, may_patch: bool) -> str:
    response = review.response
    assert asked.request is not None
    if response is None:
        return "webhook response was absent"
    if asked.api_version == f"{GROUP}/v1beta1":
        return ""  # webhooks of that time need not repeat the uid, nor name the type of a patch
    if response.uid != asked.request.uid:
        return f'expected response.uid="{asked.request.uid}", got "{response.uid}"'
    if (review.api_version, review.kind) != (asked.api_version, asked.kind):
        got = ", ".join((review.api_version, f"Kind={review.kind}"))
        return f"expected webhook response of {asked.api_version}, Kind={asked.kind}, got {got}"
    if not may_patch:
        given = "patch" if response.patch else "patchType" if response.patch_type is not None else ""
        return f"validating webhook may not return response.{given}" if given else ""
    if response.patch and response.patch_type is None:
        return "webhook returned response.patch but not response.patchType"
    if not response.patch and response.patch_type is not None:
        return "webhook returned response.patchType but not response.patch"
    return ""


def denial(webhook: ValidatingWebhook, response: AdmissionResponse) -> ApiError:
    """The refusal in the webhook's words, with its code and reason; 400 where it named none that refuses."""
    status = response.status or {}
    text = f'admission webhook "{webhook.name}" denied the request'
    said = status.get("message") or status.get("reason")
    text = f"{text}: {said}" if said else f"{text} without explanation"
    code = status.get("code")
    refuses = isinstance(code, int) and 400 <= code <= 599
    details = status.get("details")
    return ApiError(
        code if refuses and code else 400,
        str(status.get("reason") or ""),
        text,
        details if isinstance(details, dict) else None,
    )


def failure(webhook: ValidatingWebhook, why: CallFailed) -> ApiError:
    return internal_error(f'failed calling webhook "{webhook.name}": {why}')


def internal_error(text: str) -> ApiError:
    message = f"Internal error occurred: {text}"
    return ApiError(500, "InternalError", message, {"causes": [{"message": text}]})
