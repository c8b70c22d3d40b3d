"""authentication.k8s.io/v1: who somebody is, and tokens for service accounts. Nothing of it is stored."""

from msgspec import field

from podfit.api.meta.base import Object, Struct, Time, always
from podfit.api.meta.v1.types import ObjectMeta

GROUP = "authentication.k8s.io"
_VERSION = f"{GROUP}/v1"


class UserInfo(Struct):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict)


class TokenReviewSpec(Struct):
    token: str = ""
    audiences: tuple[str, ...] = ()


class TokenReviewStatus(Struct):
    authenticated: bool = False
    user: UserInfo = always(default=UserInfo())
    audiences: tuple[str, ...] = ()
    error: str = ""


class TokenReview(Object):
    kind: str = always(default="TokenReview")
    api_version: str = always(default=_VERSION)
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: TokenReviewSpec = always(default=TokenReviewSpec())
    status: TokenReviewStatus = always(default=TokenReviewStatus())


class SelfSubjectReviewStatus(Struct):
    user_info: UserInfo = always(default=UserInfo())


class SelfSubjectReview(Object):
    kind: str = always(default="SelfSubjectReview")
    api_version: str = always(default=_VERSION)
    metadata: ObjectMeta = always(default=ObjectMeta())
    status: SelfSubjectReviewStatus = always(default=SelfSubjectReviewStatus())


class BoundObjectReference(Struct):
    kind: str = ""
    api_version: str = ""
    name: str = ""
    uid: str = ""


class TokenRequestSpec(Struct):
    audiences: tuple[str, ...] | None = always(default=None)
    expiration_seconds: int | None = None
    bound_object_ref: BoundObjectReference | None = always(default=None)


class TokenRequestStatus(Struct):
    token: str = always(default="")
    expiration_timestamp: Time | None = always(default=None)


class TokenRequest(Object):
    kind: str = always(default="TokenRequest")
    api_version: str = always(default=_VERSION)
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: TokenRequestSpec = always(default=TokenRequestSpec())
    status: TokenRequestStatus = always(default=TokenRequestStatus())
