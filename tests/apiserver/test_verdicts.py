"""What RBAC once said is remembered, and forgotten with the first write that could make it another."""

import json
from typing import Any

import pytest

from podfit.apiserver.authz import authorize
from podfit.apiserver.handlers.patching import MERGE_PATCH
from support.access import JANE, PODS, RBAC, send
from support.server import Server

ROLES, BINDINGS = f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings"
HERE = f"{RBAC}/namespaces/default"
READING = [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]


async def put(server: Server, method: str, path: str, body: dict[str, Any] | None = None) -> None:
    content_type = MERGE_PATCH if method == "PATCH" else "application/json"
    written = await server.ask(method, path, json.dumps(body).encode() if body else b"", content_type=content_type)
    assert written.status < 300, await written.read()


async def may(server: Server) -> bool:
    """Asked three times, so that a remembered answer is among them; they have to be the same."""
    said = {(await send(server, "GET", f"{PODS}/x", who=JANE))[0] for _ in range(3)}
    assert len(said) == 1
    return said == {404}


def bound(kind: str, user: str = "jane") -> dict[str, Any]:
    return {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "reader"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
    }


async def test_every_write_that_decides_counts_at_once(server: Server) -> None:
    assert not await may(server)
    await put(server, "POST", BINDINGS, bound("ClusterRole"))
    assert not await may(server)  # the role is not there yet
    await put(server, "POST", ROLES, {"metadata": {"name": "reader"}, "rules": READING})
    assert await may(server)
    await put(server, "PATCH", f"{ROLES}/reader", {"rules": []})
    assert not await may(server)
    await put(server, "PATCH", f"{ROLES}/reader", {"rules": READING})
    assert await may(server)
    await put(server, "PATCH", f"{BINDINGS}/reader", {"subjects": []})
    assert not await may(server)
    await put(server, "PATCH", f"{BINDINGS}/reader", {"subjects": bound("")["subjects"]})
    assert await may(server)
    await put(server, "DELETE", f"{ROLES}/reader")
    assert not await may(server)


async def test_in_a_namespace_as_well(server: Server) -> None:
    await put(server, "POST", f"{HERE}/rolebindings", bound("Role"))
    assert not await may(server)
    await put(server, "POST", f"{HERE}/roles", {"metadata": {"name": "reader"}, "rules": READING})
    assert await may(server)
    await put(server, "DELETE", f"{HERE}/roles/reader")
    assert not await may(server)
    await put(server, "POST", f"{HERE}/roles", {"metadata": {"name": "reader"}, "rules": READING})
    assert await may(server)
    await put(server, "DELETE", f"{HERE}/rolebindings/reader")
    assert not await may(server)


async def test_a_verdict_is_for_one_user_and_one_question(server: Server) -> None:
    await put(server, "POST", ROLES, {"metadata": {"name": "reader"}, "rules": [READING[0] | {"resourceNames": ["x"]}]})
    await put(server, "POST", BINDINGS, bound("ClusterRole"))
    other = type(JANE)("john", JANE.groups)
    for _ in range(2):
        assert await may(server)
        assert (await send(server, "GET", f"{PODS}/y", who=JANE))[0] == 403
        assert (await send(server, "GET", "/api/v1/namespaces/other/pods/x", who=JANE))[0] == 404
        assert (await send(server, "DELETE", f"{PODS}/x", who=JANE))[0] == 403
        assert (await send(server, "GET", f"{PODS}/x", who=other))[0] == 403


async def test_who_asks_for_ever_new_things_does_not_fill_the_memory(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authorize, "MOST_KEPT", 4)
    for number in range(20):
        assert (await send(server, "GET", f"{PODS}/x{number}", who=JANE))[0] == 403
    assert 1 <= len(server.api._authorizer._kept.verdicts) <= 4
