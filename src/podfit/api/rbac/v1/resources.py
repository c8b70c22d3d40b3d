"""The kinds of rbac.authorization.k8s.io."""

from podfit.api.columns import DATED, dated_row
from podfit.api.rbac.v1.columns import BINDING, binding_row
from podfit.api.rbac.v1.types import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from podfit.api.registry import ResourceInfo

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
