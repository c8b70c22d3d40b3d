"""authorization.k8s.io/v1: questions about who may do what. They are answered, never stored."""

from msgspec import field

from podfit.api.meta.base import Object, Struct, always
from podfit.api.meta.v1.types import FieldSelectorRequirement, LabelSelectorRequirement, ObjectMeta

GROUP = "authorization.k8s.io"
_VERSION = f"{GROUP}/v1"


class FieldSelectorAttributes(Struct):
    raw_selector: str = ""
    requirements: tuple[FieldSelectorRequirement, ...] = ()


class LabelSelectorAttributes(Struct):
    raw_selector: str = ""
    requirements: tuple[LabelSelectorRequirement, ...] = ()


class ResourceAttributes(Struct):
    namespace: str = ""
    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    field_selector: FieldSelectorAttributes | None = None
    label_selector: LabelSelectorAttributes | None = None


class NonResourceAttributes(Struct):
    path: str = ""
    verb: str = ""


class SelfSubjectAccessReviewSpec(Struct):
    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None


class SubjectAccessReviewSpec(SelfSubjectAccessReviewSpec):
    user: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict)
    uid: str = ""


class SubjectAccessReviewStatus(Struct):
    allowed: bool = always(default=False)
    denied: bool = False
    reason: str = ""
    evaluation_error: str = ""


class SelfSubjectAccessReview(Object):
    kind: str = always(default="SelfSubjectAccessReview")
    api_version: str = always(default=_VERSION)
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: SelfSubjectAccessReviewSpec = always(default=SelfSubjectAccessReviewSpec())
    status: SubjectAccessReviewStatus = always(default=SubjectAccessReviewStatus())


class SubjectAccessReview(Object):
    kind: str = always(default="SubjectAccessReview")
    api_version: str = always(default=_VERSION)
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: SubjectAccessReviewSpec = always(default=SubjectAccessReviewSpec())
    status: SubjectAccessReviewStatus = always(default=SubjectAccessReviewStatus())


class LocalSubjectAccessReview(Object):
    kind: str = always(default="LocalSubjectAccessReview")
    api_version: str = always(default=_VERSION)
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: SubjectAccessReviewSpec = always(default=SubjectAccessReviewSpec())
    status: SubjectAccessReviewStatus = always(default=SubjectAccessReviewStatus())


class SelfSubjectRulesReviewSpec(Struct):
    namespace: str = ""


class ResourceRule(Struct):
    verbs: tuple[str, ...] = always(default=())
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()


class NonResourceRule(Struct):
    verbs: tuple[str, ...] = always(default=())
    non_resource_urls: tuple[str, ...] = ()


class SubjectRulesReviewStatus(Struct):
    resource_rules: tuple[ResourceRule, ...] = always(default=())
    non_resource_rules: tuple[NonResourceRule, ...] = always(default=())
    incomplete: bool = always(default=False)
    evaluation_error: str = ""


class SelfSubjectRulesReview(Object):
    kind: str = always(default="SelfSubjectRulesReview")
    api_version: str = always(default=_VERSION)
    metadata: ObjectMeta = always(default=ObjectMeta())
    spec: SelfSubjectRulesReviewSpec = always(default=SelfSubjectRulesReviewSpec())
    status: SubjectRulesReviewStatus = always(default=SubjectRulesReviewStatus())
