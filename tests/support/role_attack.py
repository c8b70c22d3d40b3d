"""What each role may reach: role × verb × resource × subresource × place, and the requests that try it.

The roles are those of a cluster with one tenant, in the namespace `mine`. What they may do is taken from the cluster
roles that a real Kubernetes 1.36 was recorded with, and for nodes from a table of its own, never from our code. A
campaign takes `attempts()`, shuffles them with its seed and sends `Attempt.request()`; `permitted` says which may pass.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.registry import resources
from podfit.apiserver.authz.question import Question
from podfit.net.wire import Identity
from support.access import RBAC, send
from support.golden import cases
from support.server import Server

MINE, THEIRS, EVERYWHERE = "mine", "theirs", ""
TARGET = "target"
"""The name of every object that is tried."""
SECRET = "TOP-SECRET"
"""What must not be read: it is in every secret and config map."""
LIMITED_RULES = (
    {
        "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
        "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["clusterroles", "clusterrolebindings", "roles", "rolebindings"],
    },
)
ROLES: Mapping[str, Identity | None] = {
    "anonymous": None,
    "authenticated": Identity("outsider"),
    "view": Identity("viewer"),
    "edit": Identity("editor"),
    "admin": Identity("owner"),
    "node": Identity("system:node:n1", ("system:nodes",)),
    "limited": Identity("limited"),
}
_METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
_OF_ONE, _OF_ALL = ("get", "update", "patch", "delete"), ("list", "watch", "create", "deletecollection")
_OF_SUBRESOURCE = ("get", "create", "update", "patch", "delete")
_MORE_SUBRESOURCES = {
    ("", "pods"): ("attach", "exec", "portforward", "proxy"),
    ("", "services"): ("proxy",),
    ("", "nodes"): ("proxy",),
}
_RBAC = "rbac.authorization.k8s.io"
SPECIAL = (
    ("impersonate", "", "users"),
    ("impersonate", "", "groups"),
    ("impersonate", "", "serviceaccounts"),
    ("impersonate", "authentication.k8s.io", "uids"),
    ("escalate", _RBAC, "clusterroles"),
    ("escalate", _RBAC, "roles"),
    ("bind", _RBAC, "clusterroles"),
    ("bind", _RBAC, "roles"),
    ("approve", "certificates.k8s.io", "signers"),
    ("sign", "certificates.k8s.io", "signers"),
)
"""Verbs that no request has: group and resource."""

_NODE_MAY = {
    "pods": ("create", "delete"),
    "pods/status": ("update", "patch"),
    "pods/eviction": ("create",),
    "nodes": ("create", "update", "patch"),
    "nodes/status": ("update", "patch"),
    "csinodes": ("create",),
}
"""What the node authorizer allows without a look at the object; admission judges the rest."""
_NODE_RELATED = (
    *_NODE_MAY,
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "persistentvolumes",
    "serviceaccounts",
    "leases",
)
"""Resources for which the recorded role of nodes does not count, as they are about certain objects."""


class Attempt(NamedTuple):
    role: str
    verb: str
    info: ResourceInfo
    subresource: str
    place: str

    @property
    def full(self) -> str:
        return f"{self.info.resource}/{self.subresource}" if self.subresource else self.info.resource

    @property
    def question(self) -> Question:
        info, of_one = self.info, bool(self.subresource) or self.verb in _OF_ONE
        name = TARGET if of_one else ""
        if info.resource == "namespaces" and of_one:
            return Question(self.verb, info.group, info.resource, self.subresource, self.place, self.place)
        return Question(self.verb, info.group, info.resource, self.subresource, self.place, name)

    def request(self) -> tuple[str, str, Any]:
        """Method, path and body."""
        info, asked = self.info, self.question
        root = f"/apis/{info.group}/{info.version}" if info.group else f"/api/{info.version}"
        inside = f"/namespaces/{self.place}" if info.namespaced and self.place else ""
        path = "/".join(filter(None, (f"{root}{inside}/{info.resource}", asked.name, self.subresource)))
        body = {"metadata": {"name": asked.name or "made"}} if self.verb in ("create", "update", "patch") else None
        return _METHODS[self.verb], path + ("?watch=1&timeoutSeconds=1" if self.verb == "watch" else ""), body


def attempts() -> Iterator[Attempt]:
    """Every combination that can be asked."""
    for role in ROLES:
        for info in resources():
            names = (*(sub.name for sub in info.subresources), *_MORE_SUBRESOURCES.get((info.group, info.resource), ()))
            for subresource in ("", *dict.fromkeys(names)):
                for verb in _OF_SUBRESOURCE if subresource else (*_OF_ONE, *_OF_ALL):
                    for place in _places(info, verb, subresource):
                        yield Attempt(role, verb, info, subresource, place)


def _places(info: ResourceInfo, verb: str, subresource: str) -> tuple[str, ...]:
    of_one = bool(subresource) or verb in _OF_ONE
    if info.resource == "namespaces":
        return (MINE, THEIRS) if of_one else (EVERYWHERE,)
    if not info.namespaced:
        return (EVERYWHERE,)
    return (MINE, THEIRS) if of_one or verb == "create" else (MINE, THEIRS, EVERYWHERE)


def permitted(role: str, asked: Question) -> bool:
    """Whether authorization lets it pass; admission may still refuse it."""
    if role == "anonymous":
        return False
    if role == "node":
        return _node_may(asked) or _covered("system:basic-user", asked)
    if role in ("view", "edit", "admin") and asked.namespace == MINE and _covered(role, asked):
        return True
    if role == "limited" and any(_covers(rule, asked) for rule in LIMITED_RULES):
        return True
    return _covered("system:basic-user", asked)


def _node_may(asked: Question) -> bool:
    if asked.full in _NODE_MAY and asked.verb in _NODE_MAY[asked.full]:
        return True
    return asked.resource not in _NODE_RELATED and _covered("system:node", asked)


def _covered(role: str, asked: Question) -> bool:
    return any(_covers(rule, asked) for rule in _recorded()[role])


def _covers(rule: Mapping[str, Any], asked: Question) -> bool:
    return (
        asked.verb in rule["verbs"]
        and asked.group in rule.get("apiGroups", ())
        and asked.full in rule.get("resources", ())
        and (not rule.get("resourceNames") or asked.name in rule["resourceNames"])
    )


@cache
def _recorded() -> dict[str, list[dict[str, Any]]]:
    """The rules of the cluster roles of the recorded cluster; none of those that are used has a wildcard."""
    case = next(case for case in cases("api/rbac.json*") if case["id"] == "bootstrap-clusterroles")
    return {role["name"]: role.get("rules") or [] for role in case["expect"]["body"]["items"]}


async def tenants(server: Server) -> None:
    """The two namespaces with a secret each, and the roles' bindings in `mine`."""
    for namespace in (MINE, THEIRS):
        await server.namespace(namespace)
        for resource in ("secrets", "configmaps"):
            data = {"stringData": {"k": SECRET}} if resource == "secrets" else {"data": {"k": SECRET}}
            await _made(server, f"/api/v1/namespaces/{namespace}/{resource}", {"metadata": {"name": TARGET}, **data})
    for role in ("view", "edit", "admin"):
        await _made(server, f"{RBAC}/namespaces/{MINE}/rolebindings", _binding(role, role))
    await _made(server, f"{RBAC}/clusterroles", {"metadata": {"name": "limited"}, "rules": LIMITED_RULES})
    await _made(server, f"{RBAC}/clusterrolebindings", _binding("limited", "limited"))


def _binding(name: str, role: str) -> dict[str, Any]:
    who = ROLES[role]
    assert who is not None
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": who.user}],
    }


async def _made(server: Server, path: str, body: dict[str, Any]) -> None:
    status, answer = await send(server, "POST", path, body)
    assert status == 201, answer


async def tried(server: Server, attempt: Attempt) -> tuple[int, str]:
    """The code and the whole answer."""
    method, path, body = attempt.request()
    kind = "application/merge-patch+json" if method == "PATCH" else ""
    status, answer = await send(server, method, path, body, who=ROLES[attempt.role], kind=kind)
    return status, json.dumps(answer) if not isinstance(answer, bytes) else answer.decode(errors="replace")
