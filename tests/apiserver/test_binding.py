"""POST of a Binding to a pod: admission sees it, as it sees every other write."""

from typing import Any

import pytest

from podfit.net.wire import Identity
from support.resizing import PODS, send
from support.server import Server
from support.webhooks import Hooks, denied, register, setting

GROUP = "rbac.authorization.k8s.io"
TARGET = {"target": {"kind": "Node", "name": "n1"}}
NODE = Identity("system:node:n1", ("system:nodes", "system:authenticated"))


async def unbound(server: Server, place: str = PODS) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    code, made = await send(server, "POST", place, {"metadata": {"name": "p"}, "spec": spec})
    assert code == 201, made


async def node_of(server: Server, place: str = PODS) -> str:
    _, pod = await send(server, "GET", f"{place}/p")
    return str(pod["spec"].get("nodeName", ""))


async def bind(server: Server, place: str = PODS, query: str = "", **more: Any) -> tuple[int, dict[str, Any]]:
    return await send(server, "POST", f"{place}/p/binding{query}", TARGET, **more)


async def test_webhooks_are_asked_about_a_binding(server: Server, hooks: Hooks) -> None:
    await unbound(server)
    await register(server, "mutating", hooks.webhook("/m", "pods/binding"), name="m")
    await register(server, "validating", hooks.webhook("/v", "pods/*"), hooks.webhook("/pods", "pods"), name="v")
    assert (await bind(server))[0] == 201
    for path in ("/m", "/v"):
        (request,) = hooks.requests(path)
        assert (request["operation"], request["subResource"], request["name"]) == ("CREATE", "binding", "p")
        assert request["resource"] == {"group": "", "version": "v1", "resource": "pods"}
        assert request["kind"] == {"group": "", "version": "v1", "kind": "Binding"}
        assert request["object"]["target"] == TARGET["target"]
    assert hooks.requests("/pods") == []
    assert await node_of(server) == "n1"


async def test_a_webhook_keeps_a_pod_from_a_node(server: Server, hooks: Hooks) -> None:
    await unbound(server)
    await register(server, "validating", hooks.webhook("/v", "pods/binding"))
    hooks.answers["/v"] = lambda _: denied(message="not there", code=403)
    code, refused = await bind(server)
    assert code == 403
    assert refused["message"] == 'admission webhook "v.example.com" denied the request: not there'
    assert await node_of(server) == ""


async def test_a_webhook_sends_a_pod_elsewhere(server: Server, hooks: Hooks) -> None:
    await unbound(server)
    await register(server, "mutating", hooks.webhook("/m", "pods/binding"))
    hooks.answers["/m"] = lambda _: setting("/target/name", "n2")
    assert (await bind(server))[0] == 201
    assert await node_of(server) == "n2"


async def test_what_a_webhook_makes_of_a_binding_is_checked(server: Server, hooks: Hooks) -> None:
    await unbound(server)
    await register(server, "mutating", hooks.webhook("/m", "pods/binding"))
    hooks.answers["/m"] = lambda _: setting("/target/name", "")
    assert (await bind(server))[0] == 422
    assert await node_of(server) == ""


async def test_a_dry_run_is_told_and_binds_nothing(server: Server, hooks: Hooks) -> None:
    await unbound(server)
    await register(server, "validating", hooks.webhook("/v", "pods/binding"))
    assert (await bind(server, query="?dryRun=All"))[0] == 201
    assert [request["dryRun"] for request in hooks.requests("/v")] == [True]
    assert await node_of(server) == ""


async def test_nothing_is_bound_in_a_namespace_that_is_going(server: Server) -> None:
    place = "/api/v1/namespaces/going/pods"
    await server.namespace("going")
    await unbound(server, place)
    assert (await send(server, "DELETE", "/api/v1/namespaces/going"))[0] == 200
    code, refused = await bind(server, place)
    assert code == 403
    assert "because it is being terminated" in refused["message"]
    assert await node_of(server, place) == ""


async def test_a_node_binds_nothing_whatever_roles_it_has(server: Server) -> None:
    await unbound(server)
    rule = {"verbs": ["create"], "apiGroups": [""], "resources": ["pods/binding"]}
    role = {"metadata": {"name": "binder"}, "rules": [rule]}
    binding = {
        "metadata": {"name": "binder"},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "binder"},
        "subjects": [{"kind": "User", "apiGroup": GROUP, "name": NODE.user}],
    }
    for resource, made in (("clusterroles", role), ("clusterrolebindings", binding)):
        assert (await send(server, "POST", f"/apis/{GROUP}/v1/{resource}", made))[0] == 201
    code, refused = await bind(server, who=NODE)
    assert code == 403
    assert "unexpected pod subresource \"binding\", only 'status' and 'eviction' are allowed" in refused["message"]
    assert await node_of(server) == ""


UNLIKE = (
    'Operation cannot be fulfilled on pods "p": StorageError: invalid object, Code: 4, Key: /registry/pods/default/p, '
    "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed:"
)
BINDINGS = PODS.removesuffix("pods") + "bindings"


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ({"metadata": {"name": "p"}} | TARGET, 201, ""),
        ({"metadata": {"name": "p"}, "target": {"name": "n1"}}, 201, ""),
        ({"kind": "Binding", "apiVersion": "v1", "metadata": {"name": "p"}} | TARGET, 201, ""),
        ({"metadata": {"name": "absent"}} | TARGET, 404, 'pods "absent" not found'),
        ({"metadata": {"name": "p"}}, 422, "target.name: Required value"),
        ({"metadata": {"name": "p"}, "target": {"kind": "Pod", "name": "n1"}}, 422, "target.kind: Unsupported value"),
        (
            {"metadata": {"name": "p", "uid": "other"}} | TARGET,
            409,
            f"{UNLIKE} UID in precondition: other, UID in object",
        ),
        (
            {"metadata": {"name": "p", "resourceVersion": "1"}} | TARGET,
            409,
            f"{UNLIKE} ResourceVersion in precondition: 1",
        ),
        ({"metadata": {"name": "p", "namespace": "z"}} | TARGET, 400, "the namespace of the provided object does not"),
        ({"kind": "Pod", "apiVersion": "v1"}, 400, 'Pod in version "v1" cannot be handled as a Binding: converting'),
        ({"metadata": {}} | TARGET, 400, "Name parameter required."),
        (TARGET, 400, "Name parameter required."),
        ({"metadata": {"name": "p"}, "target": 1}, 400, "Go struct field Binding.target of type v1.ObjectReference"),
    ],
)
async def test_a_binding_that_names_its_pod(server: Server, body: dict[str, Any], code: int, said: str) -> None:
    await unbound(server)
    status, answer = await send(server, "POST", BINDINGS, body)
    assert (status, said in answer.get("message", "")) == (code, True), answer
    assert await node_of(server) == ("n1" if code == 201 else "")


async def test_bindings_are_only_created(server: Server) -> None:
    await unbound(server)
    body = {"metadata": {"name": "p"}} | TARGET
    assert (await send(server, "POST", f"{BINDINGS}?dryRun=All", body))[0] == 201
    assert await node_of(server) == ""
    assert (await send(server, "GET", BINDINGS, {}))[0] == 405
    for path in (f"{BINDINGS}/p", "/api/v1/bindings"):
        answer = await server.ask("POST", path, b"{}")
        assert answer.status in (404, 405), path
    assert (await send(server, "POST", BINDINGS, body))[0] == 201
    assert (await send(server, "POST", BINDINGS, body))[0] == 409
