"""Requests by somebody, and the little that a test of access needs: roles, bindings, pods."""

import json
from typing import Any

from podfit.net.wire import Identity
from support.server import ADMIN, Server, document

PODS = "/api/v1/namespaces/default/pods"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
JANE, NODE = Identity("jane", ("dev",)), Identity("system:node:n1", ("system:nodes",))


async def send(
    server: Server, method: str, path: str, body: Any = None, *, who: Identity | None = ADMIN, kind: str = ""
) -> tuple[int, Any]:
    raw = b"" if body is None else json.dumps(body).encode()
    got = await server.ask(method, path, raw, identity=who, content_type=kind or "application/json")
    if not isinstance(got.body, bytes):
        await got.body.aclose()  # type: ignore[attr-defined]  # a stream that can be closed
        return got.status, None
    text = await got.read()
    return got.status, document(text) if text.startswith(b"{") else text


async def grant(
    server: Server, *rules: dict[str, Any], kind: str = "Role", subject: dict[str, str] | None = None
) -> None:
    """Bind the rules to jane, in the namespace default or everywhere."""
    where = f"{RBAC}/namespaces/default" if kind == "Role" else RBAC
    role, binding = ("roles", "rolebindings") if kind == "Role" else ("clusterroles", "clusterrolebindings")
    assert (await send(server, "POST", f"{where}/{role}", {"metadata": {"name": "r"}, "rules": rules}))[0] == 201
    body = {
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "r"},
        "subjects": [subject or {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "jane"}],
    }
    assert (await send(server, "POST", f"{where}/{binding}", body))[0] == 201


def rule(verbs: str, resources: str, group: str = "", **more: Any) -> dict[str, Any]:
    return {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split(), **more}


async def pod(server: Server, name: str = "p", node: str = "", **spec: Any) -> None:
    full = {"containers": [{"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}], **spec}
    assert (await send(server, "POST", PODS, {"metadata": {"name": name}, "spec": full}))[0] == 201
    if node:
        assert (await send(server, "POST", f"{PODS}/{name}/binding", {"target": {"name": node}}))[0] == 201


async def as_other(server: Server, path: str, *, who: Identity = ADMIN, **other: str) -> tuple[int, Any]:
    headers = {f"impersonate_{name}": value for name, value in other.items()}
    got = await server.ask("GET", path, identity=who, **headers)  # type: ignore[arg-type]  # keywords of several types
    text = await got.read()
    return got.status, document(text) if text.startswith(b"{") else text
