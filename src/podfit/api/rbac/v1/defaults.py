"""Defaults of bindings of roles."""

from collections.abc import Callable, Mapping
from typing import Any

from podfit.api.meta.base import Object
from podfit.api.meta.defaulting import fill, inside
from podfit.api.rbac.v1.types import ClusterRoleBinding, RoleBinding, RoleRef, Subject

RBAC_GROUP = "rbac.authorization.k8s.io"


def _binding(binding: RoleBinding | ClusterRoleBinding) -> RoleBinding | ClusterRoleBinding:
    return inside(binding, role_ref=_role_ref, subjects=_subject)


def _role_ref(ref: RoleRef) -> RoleRef:
    return fill(ref, api_group=RBAC_GROUP)


def _subject(subject: Subject) -> Subject:
    return fill(subject, api_group=RBAC_GROUP) if subject.kind in ("User", "Group") else subject


DEFAULTS: Mapping[type[Object], Callable[[Any], Any]] = {RoleBinding: _binding, ClusterRoleBinding: _binding}
