"""The kinds of authentication.k8s.io and authorization.k8s.io: a creation is a question, its answer the object."""

from podfit.api.authentication.v1 import types as authentication
from podfit.api.authentication.v1.types import SelfSubjectReview, TokenReview
from podfit.api.authorization.v1 import types as authorization
from podfit.api.authorization.v1.types import (
    LocalSubjectAccessReview,
    SelfSubjectAccessReview,
    SelfSubjectRulesReview,
    SubjectAccessReview,
)
from podfit.api.meta.base import Object
from podfit.api.meta.resource_info import ResourceInfo


def _review(kind: type[Object], group: str, *, namespaced: bool = False) -> ResourceInfo:
    name = kind.__name__.lower()
    return ResourceInfo(
        type=kind, group=group, resource=f"{name}s", singular=name, namespaced=namespaced, verbs=("create",)
    )


KINDS: tuple[ResourceInfo, ...] = (
    _review(SelfSubjectReview, authentication.GROUP),
    _review(TokenReview, authentication.GROUP),
    _review(LocalSubjectAccessReview, authorization.GROUP, namespaced=True),
    _review(SelfSubjectAccessReview, authorization.GROUP),
    _review(SelfSubjectRulesReview, authorization.GROUP),
    _review(SubjectAccessReview, authorization.GROUP),
)
