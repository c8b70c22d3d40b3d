"""rbac.authorization.k8s.io/v1: roles and their bindings."""

from typing import ClassVar

from podfit.api.meta.base import Object, Struct, always
from podfit.api.meta.v1.types import LabelSelector, ObjectMeta


class PolicyRule(Struct):
    api_groups: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()


class Role(Object):
    kind: str = always(default="Role")
    api_version: str = always(default="rbac.authorization.k8s.io/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    rules: tuple[PolicyRule, ...] | None = always(default=None)


class RoleRef(Struct):
    whole: ClassVar[bool] = True
    name: str = always(default="")
    api_group: str = ""
    kind: str = always(default="")


class Subject(Struct):
    whole: ClassVar[bool] = True
    name: str = always(default="")
    api_group: str = ""
    kind: str = always(default="")
    namespace: str = ""


class RoleBinding(Object):
    kind: str = always(default="RoleBinding")
    api_version: str = always(default="rbac.authorization.k8s.io/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    role_ref: RoleRef = always(default=RoleRef())
    subjects: tuple[Subject, ...] = ()


class AggregationRule(Struct):
    cluster_role_selectors: tuple[LabelSelector, ...] = ()


class ClusterRole(Object):
    kind: str = always(default="ClusterRole")
    api_version: str = always(default="rbac.authorization.k8s.io/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    aggregation_rule: AggregationRule | None = None
    rules: tuple[PolicyRule, ...] | None = always(default=None)


class ClusterRoleBinding(Object):
    kind: str = always(default="ClusterRoleBinding")
    api_version: str = always(default="rbac.authorization.k8s.io/v1")
    metadata: ObjectMeta = always(default=ObjectMeta())
    role_ref: RoleRef = always(default=RoleRef())
    subjects: tuple[Subject, ...] = ()
