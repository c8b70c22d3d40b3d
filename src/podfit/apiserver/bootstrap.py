"""What a cluster has before anyone asks for it: namespaces, priority classes, and the roles of its own components.

Made when missing, at every start, before the server says that it is ready; what an administrator changed stays changed.
Roles that grant `pods` do not grant `pods/resize` (R-012, R-013): only a wildcard or a rule of one's own does.
"""

import uuid
from typing import Any

from msgspec.structs import replace

from podfit.api.base import Object
from podfit.api.core.namespaces import Namespace
from podfit.api.defaults import apply_defaults
from podfit.api.meta import ObjectMeta
from podfit.api.rbac import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from podfit.api.registry import info_for
from podfit.api.scheduling import PriorityClass
from podfit.apiserver.context import Context
from podfit.apiserver.doors import prepare_create
from podfit.apiserver.stored import Stored
from podfit.core.errors import ApiError
from podfit.core.times import format_time

RBAC = "rbac.authorization.k8s.io"
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
CRITICAL = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

READ = ("get", "list", "watch")
WRITE = ("create", "delete", "deletecollection", "patch", "update")
USER_KINDS = ("configmaps", "pods", "pods/ephemeralcontainers", "serviceaccounts")
VIEW_KINDS = ("configmaps", "events", "limitranges", "namespaces", "pods", "pods/log", "pods/status", "resourcequotas",
              "resourcequotas/status", "serviceaccounts")  # fmt: skip


def _rule(verbs: tuple[str, ...], *resources: str, groups: tuple[str, ...] = ("",)) -> PolicyRule:
    return PolicyRule(verbs=verbs, api_groups=groups, resources=resources)


def _paths(verbs: tuple[str, ...], *paths: str) -> PolicyRule:
    return PolicyRule(verbs=verbs, non_resource_urls=paths)


_VIEW = (_rule(READ, *VIEW_KINDS),)
_EDIT = (*_VIEW, _rule((*READ, *WRITE), *USER_KINDS, "secrets"), _rule(("create",), "serviceaccounts/token"))
_ADMIN = (*_EDIT, _rule((*READ, *WRITE), "roles", "rolebindings", groups=(RBAC,)))
_EVENTS = _rule(("create", "patch", "update"), "events")

ROLES: dict[str, tuple[PolicyRule, ...]] = {
    "cluster-admin": (_rule(("*",), "*", groups=("*",)), _paths(("*",), "*")),
    "admin": _ADMIN,
    "edit": _EDIT,
    "view": _VIEW,
    "system:discovery": (_paths(("get",), "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi",
                                "/openapi/*", "/readyz", "/version", "/version/"),),
    "system:public-info-viewer": (_paths(("get",), "/healthz", "/livez", "/readyz", "/version", "/version/"),),
    "system:kube-scheduler": (
        _EVENTS, _rule(READ, "nodes", "namespaces"), _rule((*READ, "delete"), "pods"),
        _rule(("create",), "pods/binding", "bindings"), _rule(("patch", "update"), "pods/status"),
        _rule(("create", *READ, "update"), "leases", groups=("coordination.k8s.io",)),
    ),
    "system:kube-controller-manager": (
        _EVENTS, _rule(("*",), "*", groups=("*",)),
    ),
    "system:node": (),
    "system:podfit:room": (_EVENTS, _rule(READ, "nodes", "pods"), _rule(("patch",), "pods/resize")),
    "system:podfit:room-eviction": (_rule(("delete",), "pods"), _rule(("patch",), "pods/status")),
}  # fmt: skip
BINDINGS = {
    "cluster-admin": ("Group", "system:masters"),
    "system:discovery": ("Group", "system:authenticated"),
    "system:public-info-viewer": ("Group", "system:unauthenticated"),
    "system:kube-scheduler": ("User", "system:kube-scheduler"),
    "system:kube-controller-manager": ("User", "system:kube-controller-manager"),
    "system:podfit:room": ("User", "system:podfit:room"),
    "system:podfit:room-eviction": ("Group", "system:podfit:room-eviction"),
}


def initial_objects() -> list[Object]:
    objects: list[Object] = [Namespace(metadata=ObjectMeta(name=name)) for name in NAMESPACES]
    objects += [
        PriorityClass(metadata=ObjectMeta(name=name), value=value, description="Used for system critical pods.")
        for name, value in CRITICAL.items()
    ]
    objects += [ClusterRole(metadata=ObjectMeta(name=name), rules=rules) for name, rules in ROLES.items()]
    objects += [
        ClusterRoleBinding(
            metadata=ObjectMeta(name=name), role_ref=RoleRef(api_group=RBAC, kind="ClusterRole", name=name),
            subjects=(Subject(kind=kind, api_group=RBAC, name=subject),),
        )
        for name, (kind, subject) in BINDINGS.items()
    ]  # fmt: skip
    return objects


async def bootstrap(context: Context) -> None:
    now = format_time(context.clock.now())
    for obj in initial_objects():
        info = info_for(type(obj))
        stored = Stored[Any](context.store, info)
        meta = obj.metadata  # type: ignore[attr-defined]
        if await context.find(type(obj), meta.name) is not None:
            continue
        meta = replace(meta, uid=str(uuid.uuid4()), creation_timestamp=now)
        made = prepare_create(info, apply_defaults(replace(obj, metadata=meta), context.gates), context.gates)
        try:
            await stored.create(made)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
