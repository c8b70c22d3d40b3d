"""Questions about access, and every kind of token, as clients ask about them."""

import base64
import json
from typing import Any

import pytest

from podfit.net.wire import Identity
from support.access import JANE, NODE, PODS, RBAC, as_other, grant, pod, rule, send
from support.clock import FakeClock
from support.server import Server

AUTHORIZATION, AUTHENTICATION = "/apis/authorization.k8s.io/v1", "/apis/authentication.k8s.io/v1"


async def may(server: Server, who: Identity, **attributes: Any) -> dict[str, Any]:
    status, answer = await send(
        server, "POST", f"{AUTHORIZATION}/selfsubjectaccessreviews", {"spec": attributes}, who=who
    )
    assert status == 201, answer
    found: dict[str, Any] = answer["status"]
    return found


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        ({"verb": "list", "resource": "pods", "namespace": "default"}, True),
        ({"verb": "list", "resource": "pods"}, False),
        ({"verb": "list", "resource": "pods", "namespace": "default", "subresource": "log"}, False),
        ({"verb": "list", "resource": "pods", "namespace": "default", "group": "apps"}, False),
    ],
)
async def test_the_answer_is_what_would_happen(server: Server, asked: dict[str, str], allowed: bool) -> None:
    await grant(server, rule("list", "pods"))
    answer = await may(server, JANE, resourceAttributes=asked)
    assert answer["allowed"] is allowed
    assert (answer.get("reason") == 'RBAC: allowed by RoleBinding "b/default" of Role "r" to User "jane"') is allowed


async def test_a_path_and_a_binding_of_a_role_that_is_not_there(server: Server) -> None:
    assert (await may(server, JANE, nonResourceAttributes={"path": "/version", "verb": "get"}))["allowed"] is True
    assert (await may(server, JANE, nonResourceAttributes={"path": "/metrics", "verb": "get"}))["allowed"] is False
    body = {
        "metadata": {"name": "b"},
        "subjects": [{"kind": "User", "name": "jane"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "nope"},
    }
    assert (await send(server, "POST", f"{RBAC}/namespaces/default/rolebindings", body))[0] == 201
    asked = {"verb": "list", "resource": "pods", "namespace": "default"}
    answer = await may(server, JANE, resourceAttributes=asked)
    assert answer == {"allowed": False, "reason": 'RBAC: clusterrole.rbac.authorization.k8s.io "nope" not found'}


@pytest.mark.parametrize(
    ("selector", "allowed"),
    [
        ({"rawSelector": "spec.nodeName=n1"}, True),
        ({"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["n1"]}]}, True),
        ({"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["n1", "n2"]}]}, False),
        ({"rawSelector": "spec.nodeName=n2"}, False),
        ({"rawSelector": "spec.nodeName!=n1"}, False),
    ],
)
async def test_a_node_may_list_what_a_selector_confines_to_it(
    server: Server, selector: dict[str, Any], allowed: bool
) -> None:
    asked = {"verb": "list", "resource": "pods", "fieldSelector": selector}
    assert (await may(server, NODE, resourceAttributes=asked))["allowed"] is allowed


async def test_a_selector_by_name_counts_as_that_object(server: Server) -> None:
    await grant(server, rule("list watch", "configmaps", resourceNames=["mine"]))
    maps = "/api/v1/namespaces/default/configmaps"
    codes = [
        (await send(server, "GET", f"{maps}{query}", who=JANE))[0]
        for query in ("?fieldSelector=metadata.name=mine", "?fieldSelector=metadata.name=other", "")
    ]
    assert codes == [200, 403, 403]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"user": "x", "resourceAttributes": {"namespace": "other"}}, "spec.resourceAttributes.namespace"),
        ({"user": "x", "nonResourceAttributes": {"path": "/"}}, "spec.nonResourceAttributes"),
        ({"resourceAttributes": {"namespace": "default"}}, "spec.user"),
    ],
)
async def test_local_questions_stay_local(server: Server, spec: dict[str, Any], field: str) -> None:
    path = f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews"
    status, answer = await send(server, "POST", path, {"spec": spec})
    assert (status, [cause["field"] for cause in answer["details"]["causes"]]) == (422, [field])


async def test_nobody_asks_about_others_without_the_right_to(server: Server) -> None:
    body = {"spec": {"user": "x", "resourceAttributes": {"verb": "get", "resource": "pods"}}}
    assert (await send(server, "POST", f"{AUTHORIZATION}/subjectaccessreviews", body, who=JANE))[0] == 403


TOKEN = "/api/v1/namespaces/default/serviceaccounts/default/token"


async def issued(server: Server, **spec: Any) -> str:
    status, made = await send(server, "POST", TOKEN, {"spec": spec})
    assert status == 201, made
    token: str = made["status"]["token"]
    return token


async def reviewed(server: Server, token: str, *audiences: str) -> dict[str, Any]:
    body = {"spec": {"token": token, "audiences": audiences}}
    status, answer = await send(server, "POST", f"{AUTHENTICATION}/tokenreviews", body)
    assert status == 201, answer
    found: dict[str, Any] = answer["status"]
    return found


async def test_a_token_of_a_pod_names_pod_and_node(server: Server) -> None:
    await pod(server, "p", "n1")
    token = await issued(server, boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p"}, audiences=["a", "b"])
    answer = await reviewed(server, token, "b", "c")
    assert (answer["authenticated"], answer["audiences"]) == (True, ["b"])
    extra = answer["user"]["extra"]
    prefix = "authentication.kubernetes.io/"
    assert (extra[f"{prefix}pod-name"], extra[f"{prefix}node-name"]) == (["p"], ["n1"])
    assert extra.keys() == {f"{prefix}{key}" for key in ("credential-id", "pod-name", "pod-uid", "node-name")}


async def test_what_is_wrong_with_a_token_is_said(server: Server) -> None:
    token, clock = await issued(server, expirationSeconds=600), server.context.clock
    assert isinstance(clock, FakeClock)
    await clock.advance(600)
    assert (await reviewed(server, token))["error"] == "[invalid bearer token, service account token has expired]"


@pytest.mark.parametrize("kind", ["Secret", "Node", "Pod"])
async def test_a_token_ends_with_what_it_is_bound_to(server: Server, kind: str) -> None:
    made: dict[str, tuple[str, dict[str, Any]]] = {
        "Secret": ("/api/v1/namespaces/default/secrets", {}),
        "Node": ("/api/v1/nodes", {}),
        "Pod": (PODS, {"spec": {"containers": [{"name": "c", "image": "i"}]}}),
    }
    path, body = made[kind]
    assert (await send(server, "POST", path, {"metadata": {"name": "x"}, **body}))[0] == 201
    token = await issued(server, boundObjectRef={"kind": kind, "apiVersion": "v1", "name": "x"})
    assert (await reviewed(server, token))["authenticated"]
    await send(server, "DELETE", f"{path}/x")
    answer = await reviewed(server, token)
    assert answer["error"] == "[invalid bearer token, service account token has been invalidated]"


async def test_a_pod_of_another_account_and_one_of_another_uid(server: Server) -> None:
    await send(server, "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "other"}})
    await pod(server, "p", serviceAccountName="other")
    ref = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
    status, refused = await send(server, "POST", TOKEN, {"spec": {"boundObjectRef": ref}})
    assert (status, "different serviceaccount name" in refused["message"]) == (400, True)
    await pod(server, "q")
    status, refused = await send(server, "POST", TOKEN, {"spec": {"boundObjectRef": {**ref, "name": "q", "uid": "u"}}})
    assert (status, "does not match the UID in record" in refused["message"]) == (409, True)


NOT_FOUND = (
    'audience "bank" not found in pod spec volume, system:node:n1 is not authorized to request tokens for this audience'
)


def projecting(*audiences: str) -> list[dict[str, Any]]:
    sources = [{"serviceAccountToken": {"path": f"t{audience}", "audience": audience}} for audience in audiences]
    return [{"name": "t", "projected": {"sources": sources}}]


@pytest.mark.parametrize(
    ("name", "audiences", "uid", "text"),
    [
        ("mine", [], True, ""),
        ("mine", ["vault"], True, ""),
        ("mine", ["bank"], True, NOT_FOUND),
        ("mine", ["vault", "bank"], True, "node may only request 0 or 1 audiences"),
        ("mine", [], False, "node requested token with a pod binding without a uid"),
        ("theirs", [], True, "node requested token bound to a pod scheduled on a different node"),
        ("", [], True, "node requested token not bound to a pod"),
    ],
)
async def test_a_node_gets_tokens_for_its_pods_only(
    server: Server, name: str, audiences: list[str], uid: bool, text: str
) -> None:
    uids = {}
    for pod_name, node in (("mine", "n1"), ("theirs", "n2")):
        await pod(server, pod_name, node, volumes=projecting("", "vault"))
        uids[pod_name] = (await send(server, "GET", f"{PODS}/{pod_name}"))[1]["metadata"]["uid"]
    ref = {"kind": "Pod", "apiVersion": "v1", "name": name} | ({"uid": uids.get(name, "")} if uid else {})
    spec = {"audiences": audiences} | ({"boundObjectRef": ref} if name else {})
    status, answer = await send(server, "POST", TOKEN, {"spec": spec}, who=NODE)
    if text:
        assert (status, answer["message"]) == (403, f'serviceaccounts "default" is forbidden: {text}')
    else:
        assert status == 201


SECRET = "0123456789abcdef"


async def bootstrap_token(server: Server, kind: str = "bootstrap.kubernetes.io/token", **data: str) -> str:
    whole = {"token-id": "abcdef", "token-secret": SECRET, "usage-bootstrap-authentication": "true"} | data
    encoded = {key.replace("_", "-"): base64.b64encode(value.encode()).decode() for key, value in whole.items()}
    body = {"metadata": {"name": "bootstrap-token-abcdef"}, "type": kind, "data": encoded}
    assert (await send(server, "POST", "/api/v1/namespaces/kube-system/secrets", body))[0] == 201
    return f"abcdef.{SECRET}"


async def test_a_bootstrap_token_is_a_bootstrapper(server: Server) -> None:
    token = await bootstrap_token(server, **{"auth-extra-groups": "system:bootstrappers:workers,admins"})
    answer = await reviewed(server, token)
    assert answer["user"] == {
        "username": "system:bootstrap:abcdef",
        "groups": ["system:bootstrappers", "system:bootstrappers:workers", "system:authenticated"],
    }
    assert not (await reviewed(server, token, "vault")).get("authenticated")
    assert not (await reviewed(server, f"abcdef.{SECRET[::-1]}")).get("authenticated")


@pytest.mark.parametrize(
    "data",
    [
        {"usage-bootstrap-authentication": "false"},
        {"expiration": "2020-01-01T00:00:00Z"},
        {"expiration": "soon"},
        {"token-id": "fedcba"},
        {"kind": "Opaque"},
    ],
)
async def test_bootstrap_tokens_that_are_none(server: Server, data: dict[str, str]) -> None:
    token = await bootstrap_token(server, **data)
    got = await server.ask("GET", "/api", identity=None, authorization=f"Bearer {token}")
    assert got.status == 401


BOT = Identity(
    "system:serviceaccount:default:bot",
    ("system:serviceaccounts",),
    "",
    {"authentication.kubernetes.io/node-name": ("n1",)},
)
API = "authentication.k8s.io"


@pytest.mark.parametrize(
    ("rules", "other", "status"),
    [
        (
            [rule("impersonate-on:associated-node:list", "pods"), rule("impersonate:associated-node", "nodes", API)],
            {"user": "system:node:n1"},
            200,
        ),
        (
            [rule("impersonate-on:associated-node:list", "pods"), rule("impersonate:associated-node", "nodes", API)],
            {"user": "system:node:n2"},
            403,
        ),
        (
            [
                rule("impersonate-on:arbitrary-node:list", "pods"),
                rule("impersonate:arbitrary-node", "nodes", API, resourceNames=["n1"]),
            ],
            {"user": "system:node:n1"},
            200,
        ),
        (
            [rule("impersonate-on:user-info:list", "pods"), rule("impersonate:user-info", "*", API)],
            {"user": "joe", "group": "system:masters"},
            403,
        ),
        (
            [rule("impersonate-on:user-info:list", "pods"), rule("impersonate:user-info", "*", API)],
            {"user": "system:serviceaccount:default:x"},
            403,
        ),
    ],
)
async def test_modes_of_impersonation(
    server: Server, rules: list[dict[str, Any]], other: dict[str, str], status: int
) -> None:
    account = {"kind": "ServiceAccount", "name": "bot", "namespace": "default"}
    await grant(server, *rules, kind="ClusterRole", subject=account)
    path = f"{PODS}?fieldSelector=spec.nodeName%3Dn1"
    assert (await as_other(server, path, who=BOT, **other))[0] == status


async def test_who_is_judged_after_an_impersonation(server: Server) -> None:
    rules = rule("impersonate-on:user-info:list", "pods"), rule("impersonate:user-info", "users groups", API)
    await grant(server, *rules, kind="ClusterRole")
    _, refused = await as_other(server, PODS, who=JANE, user="joe", group="a, b, c, d")
    assert 'User "joe" cannot list' in refused["message"]
    _, refused = await as_other(server, f"{PODS}/x", who=JANE, user="joe")
    assert 'User "jane" cannot impersonate-on:user-info:get resource "pods"' in refused["message"]


async def test_metadata_of_a_review(server: Server) -> None:
    """What only the server says is dropped, and so is a namespace of what is of the whole cluster."""
    sent = {"name": "y", "namespace": "x", "uid": "z", "creationTimestamp": "2020-01-01T00:00:00Z", "selfLink": "/"}
    answer = await server.ask(
        "POST",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        json.dumps({"metadata": sent, "spec": {"token": "abc"}}).encode(),
    )
    meta = json.loads(await answer.read())["metadata"]
    assert {name: value for name, value in meta.items() if name != "managedFields"} == {"name": "y"}
    empty = {"metadata": {"namespace": "x", "uid": "z"}, "spec": {"resourceAttributes": {"verb": "get"}}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert (await server.ask("POST", path, json.dumps(empty).encode())).status == 201
