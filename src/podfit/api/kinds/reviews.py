"""The kinds of authentication.k8s.io and authorization.k8s.io: a creation is a question, its answer the object."""

from podfit.api import authentication, authorization
from podfit.api.authentication import SelfSubjectReview, TokenReview
from podfit.api.authorization import (
    LocalSubjectAccessReview,
    SelfSubjectAccessReview,
    SelfSubjectRulesReview,
    SubjectAccessReview,
)
from podfit.api.base import Object
from podfit.api.registry import ResourceInfo


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
