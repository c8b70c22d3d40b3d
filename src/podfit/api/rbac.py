"""rbac.authorization.k8s.io/v1: roles and their bindings."""

from podfit.api.base import always, Object, Struct
from podfit.api.meta import LabelSelector, ObjectMeta


class PolicyRule(Struct):
    api_groups: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()


class Role(Object):
    kind: str = always("Role")
    api_version: str = always("rbac.authorization.k8s.io/v1")
    metadata: ObjectMeta = always(ObjectMeta())
    rules: tuple[PolicyRule, ...] = ()


class RoleRef(Struct):
    name: str = always("")
    api_group: str = ""
    kind: str = always("")


class Subject(Struct):
    name: str = always("")
    api_group: str = ""
    kind: str = always("")
    namespace: str = ""


class RoleBinding(Object):
    kind: str = always("RoleBinding")
    api_version: str = always("rbac.authorization.k8s.io/v1")
    metadata: ObjectMeta = always(ObjectMeta())
    role_ref: RoleRef = always(RoleRef())
    subjects: tuple[Subject, ...] = ()


class AggregationRule(Struct):
    cluster_role_selectors: tuple[LabelSelector, ...] = ()


class ClusterRole(Object):
    kind: str = always("ClusterRole")
    api_version: str = always("rbac.authorization.k8s.io/v1")
    metadata: ObjectMeta = always(ObjectMeta())
    aggregation_rule: AggregationRule | None = None
    rules: tuple[PolicyRule, ...] = ()


class ClusterRoleBinding(Object):
    kind: str = always("ClusterRoleBinding")
    api_version: str = always("rbac.authorization.k8s.io/v1")
    metadata: ObjectMeta = always(ObjectMeta())
    role_ref: RoleRef = always(RoleRef())
    subjects: tuple[Subject, ...] = ()
