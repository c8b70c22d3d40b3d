"""The kinds of rbac.authorization.k8s.io."""

from typing import Any

from podfit.api.meta.columns import AGE, DATED, NAME, age, dated_row, name_of, wide
from podfit.api.meta.resource_info import Column, ResourceInfo
from podfit.api.rbac.v1.types import ClusterRole, ClusterRoleBinding, Role, RoleBinding

BINDING = (
    NAME,
    Column("Role", description="The role that is granted."),
    AGE,
    wide("Users", "Users who get it."),
    wide("Groups", "Groups who get it."),
    wide("ServiceAccounts", "Service accounts that get it."),
)


def binding_row(binding: RoleBinding | ClusterRoleBinding, now: str) -> list[Any]:
    by_kind: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in binding.subjects:
        account = subject.kind == "ServiceAccount"
        by_kind.setdefault(subject.kind, []).append(f"{subject.namespace}/{subject.name}" if account else subject.name)
    ref = binding.role_ref
    subjects = [", ".join(by_kind[kind]) for kind in ("User", "Group", "ServiceAccount")]
    return [name_of(binding), f"{ref.kind}/{ref.name}", age(binding, now), *subjects]


_GROUP = "rbac.authorization.k8s.io"

KINDS: tuple[ResourceInfo, ...] = (
    ResourceInfo(
        type=Role, group=_GROUP, resource="roles", singular="role", columns=DATED, row=dated_row, created_by_update=True
    ),
    ResourceInfo(
        type=RoleBinding,
        group=_GROUP,
        created_by_update=True,
        resource="rolebindings",
        singular="rolebinding",
        columns=BINDING,
        row=binding_row,
    ),
    ResourceInfo(
        type=ClusterRole,
        group=_GROUP,
        resource="clusterroles",
        singular="clusterrole",
        namespaced=False,
        created_by_update=True,
        columns=DATED,
        row=dated_row,
    ),
    ResourceInfo(
        type=ClusterRoleBinding,
        group=_GROUP,
        resource="clusterrolebindings",
        singular="clusterrolebinding",
        created_by_update=True,
        namespaced=False,
        columns=BINDING,
        row=binding_row,
    ),
)
