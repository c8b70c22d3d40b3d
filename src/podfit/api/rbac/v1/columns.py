"""Columns of `kubectl get` for role bindings."""

from typing import Any

from podfit.api.columns import AGE, NAME, age, name_of, wide
from podfit.api.rbac.v1.types import ClusterRoleBinding, RoleBinding
from podfit.api.registry import Column

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
