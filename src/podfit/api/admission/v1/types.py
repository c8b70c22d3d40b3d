"""admission.k8s.io: what passes between the API server and a webhook."""

from typing import Any

from msgspec import field

from podfit.api.authentication.v1.types import UserInfo
from podfit.api.meta.base import Struct, always


class GroupVersionKind(Struct):
    group: str = always(default="")
    version: str = always(default="")
    kind: str = always(default="")


class GroupVersionResource(Struct):
    group: str = always(default="")
    version: str = always(default="")
    resource: str = always(default="")


class AdmissionRequest(Struct):
    """`object` and `old_object` are documents, None where the operation has none."""

    uid: str = always(default="")
    kind: GroupVersionKind = always(default=GroupVersionKind())
    resource: GroupVersionResource = always(default=GroupVersionResource())
    sub_resource: str = ""
    request_kind: GroupVersionKind | None = None
    request_resource: GroupVersionResource | None = None
    request_sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    operation: str = always(default="")
    user_info: UserInfo = always(default=UserInfo())
    object: Any = always(default=None)
    old_object: Any = always(default=None)
    dry_run: bool | None = None
    options: Any = always(default=None)


class AdmissionResponse(Struct):
    """`patch` is base64 on the wire; `status` is the Status that a refusal wants to be answered with."""

    uid: str = always(default="")
    allowed: bool = always(default=False)
    status: dict[str, Any] | None = None
    patch: bytes = b""
    patch_type: str | None = None
    audit_annotations: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class AdmissionReview(Struct):
    kind: str = always(default="AdmissionReview")
    api_version: str = always(default="admission.k8s.io/v1")
    request: AdmissionRequest | None = None
    response: AdmissionResponse | None = None
