"""Who asks and what they may: credentials, RBAC, and the little that a node is allowed."""

import base64
import datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from podfit.api.meta.resource_info import ResourceInfo
from podfit.apiserver.authn.tokens import ISSUER
from podfit.apiserver.authz.node_authorizer import NodeAuthorizer
from podfit.apiserver.authz.question import Question
from podfit.apiserver.handlers.patching import MERGE_PATCH, STRATEGIC_PATCH
from podfit.apiserver.housekeeping.bootstrap import bootstrap
from podfit.apiserver.registry import stored
from podfit.net.guard import answer
from podfit.net.wire import Identity, Request
from podfit.store.protocol import Record
from support.access import JANE, NODE, PODS, RBAC, as_other, grant, pod, rule, send
from support.clock import FakeClock
from support.server import ADMIN, Server, document, running_server

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize(
    ("method", "path", "what", "verb", "resource", "where"),
    [
        ("GET", f"{PODS}/x", 'pods "x"', "get", "pods", 'in the namespace "default"'),
        ("GET", "/api/v1/pods", "pods", "list", "pods", "at the cluster scope"),
        ("GET", f"{PODS}?watch=1", "pods", "watch", "pods", 'in the namespace "default"'),
        ("PATCH", f"{PODS}/x/resize", 'pods "x"', "patch", "pods/resize", 'in the namespace "default"'),
        ("GET", "/api/v1/namespaces/x", 'namespaces "x"', "get", "namespaces", 'in the namespace "x"'),
        ("POST", "/api/v1/foos", "foos", "create", "foos", "at the cluster scope"),
    ],
)
async def test_refusals_say_who_may_not_do_what_where(
    server: Server, method: str, path: str, what: str, verb: str, resource: str, where: str
) -> None:
    status, refused = await send(server, method, path, who=JANE)
    assert (status, refused["reason"]) == (403, "Forbidden")
    text = f'{what} is forbidden: User "jane" cannot {verb} resource "{resource}" in API group "" {where}'
    assert refused["message"] == text


async def test_refusals_name_the_group_or_the_path(server: Server) -> None:
    _, refused = await send(server, "DELETE", "/apis/apps/v1/namespaces/default/deployments", who=JANE)
    assert refused["message"] == (
        'deployments.apps is forbidden: User "jane" cannot deletecollection resource "deployments" '
        'in API group "apps" in the namespace "default"'
    )
    _, refused = await send(server, "GET", "/metrics", who=JANE)
    assert refused["message"] == 'forbidden: User "jane" cannot get path "/metrics"'


@pytest.mark.parametrize(
    ("rules", "method", "path", "allowed"),
    [
        (rule("get", "pods"), "GET", f"{PODS}/x", True),
        (rule("get", "pods"), "GET", PODS, False),
        (rule("get", "pods"), "GET", f"{PODS}/x/log", False),
        (rule("get", "pods/log"), "GET", f"{PODS}/x/log", True),
        (rule("get", "*/log"), "GET", f"{PODS}/x/log", True),
        (rule("get", "*/log"), "GET", f"{PODS}/x", False),
        (rule("*", "*"), "DELETE", f"{PODS}/x", True),
        (rule("*", "*"), "GET", f"{PODS}/x/log", True),
        (rule("*", "*", "apps"), "GET", f"{PODS}/x", False),
        (rule("*", "*", "*"), "GET", f"{PODS}/x", True),
        (rule("get", "pods", resourceNames=["x"]), "GET", f"{PODS}/x", True),
        (rule("get", "pods", resourceNames=["x"]), "GET", f"{PODS}/y", False),
        (rule("list", "pods", resourceNames=["x"]), "GET", PODS, False),
        (rule("get", "pods"), "GET", "/api/v1/namespaces/kube-system/pods/x", False),
        (rule("watch", "pods"), "GET", f"{PODS}?watch=true", True),
    ],
)
async def test_rules(server: Server, rules: dict[str, Any], method: str, path: str, allowed: bool) -> None:
    await grant(server, rules)
    status, _ = await send(server, method, path, who=JANE)
    assert (status != 403) is allowed


@pytest.mark.parametrize(
    ("subject", "who", "allowed"),
    [
        ({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "dev"}, JANE, True),
        ({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:authenticated"}, JANE, True),
        ({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "jane"}, JANE, False),
        (
            {"kind": "ServiceAccount", "name": "bot", "namespace": "default"},
            Identity("system:serviceaccount:default:bot"),
            True,
        ),
        (
            {"kind": "ServiceAccount", "name": "bot", "namespace": "default"},
            Identity("system:serviceaccount:other:bot"),
            False,
        ),
    ],
)
async def test_subjects(server: Server, subject: dict[str, str], who: Identity, allowed: bool) -> None:
    await grant(server, rule("list", "pods"), subject=subject)
    assert ((await send(server, "GET", PODS, who=who))[0] == 200) is allowed


async def test_a_cluster_role_bound_everywhere_and_paths(server: Server) -> None:
    paths = {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/x/*"]}
    await grant(server, rule("list", "nodes"), paths, kind="ClusterRole")
    codes = [(await send(server, "GET", path, who=JANE))[0] for path in ("/api/v1/nodes", "/metrics", "/x/y", "/y")]
    assert codes == [200, 200, 404, 403]


async def test_a_role_taken_away_counts_at_once(server: Server) -> None:
    await grant(server, rule("list", "pods"))
    assert (await send(server, "GET", PODS, who=JANE))[0] == 200
    await send(server, "DELETE", f"{RBAC}/namespaces/default/rolebindings/b")
    assert (await send(server, "GET", PODS, who=JANE))[0] == 403


RESIZE = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}


@pytest.mark.row("R-012")
@pytest.mark.parametrize(("resources", "status"), [("pods", 403), ("pods/resize", 200)])
async def test_r_012_resizing_is_a_right_of_its_own(server: Server, resources: str, status: int) -> None:
    await pod(server)
    await grant(server, rule("get list patch update", resources))
    assert (await send(server, "PATCH", f"{PODS}/p/resize", RESIZE, who=JANE, kind=STRATEGIC_PATCH))[0] == status


@pytest.mark.row("R-013")
@pytest.mark.parametrize("role", ["edit", "admin"])
async def test_r_013_default_roles_may_not_resize(server: Server, role: str) -> None:
    await pod(server)
    body = {
        "metadata": {"name": "b"},
        "subjects": [{"kind": "User", "name": "jane"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
    }
    assert (await send(server, "POST", f"{RBAC}/namespaces/default/rolebindings", body))[0] == 201
    label = {"metadata": {"labels": {"a": "b"}}}
    assert (await send(server, "PATCH", f"{PODS}/p", label, who=JANE, kind=MERGE_PATCH))[0] == 200
    assert (await send(server, "PATCH", f"{PODS}/p/resize", RESIZE, who=JANE, kind=STRATEGIC_PATCH))[0] == 403


ADMIN_OF_DEFAULT = {
    "metadata": {"name": "admins"},
    "subjects": [{"kind": "User", "name": "jane"}],
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
}


@pytest.mark.parametrize(
    ("rules", "status"),
    [
        ([rule("get list", "pods")], 201),
        ([rule("get", "pods/log")], 201),
        ([rule("get", "pods", resourceNames=["x"])], 201),
        ([rule("patch", "pods/resize")], 403),
        ([rule("*", "pods")], 403),
        ([rule("get", "*")], 403),
        ([rule("get", "pods", "*")], 403),
        ([rule("get", "pods"), rule("get", "nodes")], 403),
    ],
)
async def test_nobody_grants_what_they_do_not_hold(server: Server, rules: list[dict[str, Any]], status: int) -> None:
    where = f"{RBAC}/namespaces/default"
    assert (await send(server, "POST", f"{where}/rolebindings", ADMIN_OF_DEFAULT))[0] == 201
    got, refused = await send(server, "POST", f"{where}/roles", {"metadata": {"name": "r"}, "rules": rules}, who=JANE)
    assert got == status
    if status == 403:
        assert "is attempting to grant RBAC permissions not currently held" in refused["message"]


@pytest.mark.parametrize(("role", "status"), [("view", 201), ("admin", 201), ("cluster-admin", 403)])
async def test_nobody_binds_a_role_beyond_their_own(server: Server, role: str, status: int) -> None:
    where = f"{RBAC}/namespaces/default"
    assert (await send(server, "POST", f"{where}/rolebindings", ADMIN_OF_DEFAULT))[0] == 201
    body = {**ADMIN_OF_DEFAULT, "metadata": {"name": "more"}}
    body["roleRef"] = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    assert (await send(server, "POST", f"{where}/rolebindings", body, who=JANE))[0] == status


async def test_the_first_objects_are_made_once_and_changes_to_them_stay(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        path = f"{RBAC}/clusterroles/system:kube-dns"
        mine = {"metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}, "rules": []}
        await send(server, "PATCH", path, mine, kind=MERGE_PATCH)
        written = server.context.store.revision
        await bootstrap(server.context)
        assert server.context.store.revision == written
        assert not (await send(server, "GET", path))[1].get("rules")
        for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
            assert (await send(server, "GET", f"/api/v1/namespaces/{name}"))[0] == 200


async def test_default_roles_and_bindings_get_back_what_they_lack_and_keep_what_they_have_more(server: Server) -> None:
    role, binding = f"{RBAC}/clusterroles/system:kube-dns", f"{RBAC}/clusterrolebindings/system:kube-dns"
    extra, someone = rule("get", "pods"), {"kind": "Group", "name": "dns", "apiGroup": "rbac.authorization.k8s.io"}
    await send(server, "PATCH", role, {"rules": [extra]}, kind=MERGE_PATCH)
    await send(server, "PATCH", binding, {"subjects": [someone]}, kind=MERGE_PATCH)
    await bootstrap(server.context)
    assert (await send(server, "GET", role))[1]["rules"] == [extra, rule("list watch", "endpoints services")]
    names = [subject["name"] for subject in (await send(server, "GET", binding))[1]["subjects"]]
    assert names == ["dns", "kube-dns"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/healthz", 200),
        ("/livez", 200),
        ("/readyz", 200),
        ("/readyz/ping", 403),
        ("/version", 200),
        ("/api", 403),
        ("/metrics", 403),
        (PODS, 403),
        ("/openapi/v3", 403),
        ("/healthzz", 403),
    ],
)
async def test_what_nobody_may_see(server: Server, path: str, status: int) -> None:
    assert (await send(server, "GET", path, who=None))[0] == status


@pytest.mark.parametrize(
    "header", ["Bearer x", "Bearer", "bearer a.b.c", "Bearer " + "x" * 5000, "Bearer eyJhbGciOiJub25lIn0.e30."]
)
async def test_wrong_credentials_are_refused_even_where_none_are_needed(server: Server, header: str) -> None:
    got = await server.ask("GET", "/healthz", identity=None, authorization=header)
    status = document(await got.read())
    assert (got.status, status["reason"], status["message"]) == (401, "Unauthorized", "Unauthorized")


async def token(server: Server, **spec: Any) -> str:
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    status, made = await send(server, "POST", path, {"spec": spec})
    assert status == 201, made
    issued: str = made["status"]["token"]
    return issued


async def welcome(server: Server, bearer: str) -> bool:
    """Whether the token opens a door at all: anyone who is someone may see /api."""
    return (await server.ask("GET", "/api", identity=None, authorization=f"Bearer {bearer}")).status == 200


async def test_a_token_speaks_for_its_account(server: Server) -> None:
    account = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    await grant(server, rule("list", "pods"), subject=account)
    bearer = await token(server)
    assert (await server.ask("GET", PODS, identity=None, authorization=f"Bearer {bearer}")).status == 200
    tampered = bearer[:-4] + ("AAAA" if not bearer.endswith("AAAA") else "BBBB")
    assert not await welcome(server, tampered)


@pytest.mark.parametrize(
    "header",
    [
        '{"alg":"ES256","crit":1}',
        '{"alg":"ES256","crit":[1]}',
        '{"alg":"ES256","b64":false,"crit":["b64"]}',
        '{"alg":"ES256","typ":"JWT","kid":"a"}',
        '{"alg":"none","typ":"JWT"}',
        '{"alg":["ES256"],"typ":"JWT"}',
        "[]",
        "{}",
        "é",
    ],
)
async def test_a_token_with_another_header_than_ours_is_refused(server: Server, header: str) -> None:
    """The library that reads tokens fails in ways of its own on some of them."""
    ours = (await token(server)).split(".")
    other = base64.urlsafe_b64encode(header.encode()).rstrip(b"=").decode()
    assert (ours[0], await welcome(server, ".".join(ours))) == ("eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9", True)
    got = await server.ask("GET", "/api", identity=None, authorization=f"Bearer {other}.{ours[1]}.{ours[2]}")
    assert got.status == 401


async def test_a_token_ends_with_its_time(server: Server) -> None:
    bearer = await token(server, expirationSeconds=600)
    clock = server.context.clock
    assert isinstance(clock, FakeClock)
    await clock.advance(599)
    assert await welcome(server, bearer)
    await clock.advance(2)
    assert not await welcome(server, bearer)


async def test_a_token_ends_with_its_pod_and_with_its_account(server: Server) -> None:
    await pod(server)
    for_pod = await token(server, boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p"})
    plain = await token(server)
    assert await welcome(server, for_pod)
    await send(server, "DELETE", f"{PODS}/p")
    await pod(server)
    assert not await welcome(server, for_pod), "a pod of the same name is another pod"
    await send(server, "DELETE", "/api/v1/namespaces/default/serviceaccounts/default")
    await server.account("default")
    assert not await welcome(server, plain)


async def test_a_token_for_someone_else_is_none_for_the_server(server: Server) -> None:
    assert not await welcome(server, await token(server, audiences=["vault"]))
    assert await welcome(server, await token(server, audiences=["vault", ISSUER]))


@pytest.mark.parametrize(
    "spec",
    [
        {"expirationSeconds": 5},
        {"expirationSeconds": "x"},
        {"audiences": "a"},
        {"boundObjectRef": {"kind": "ConfigMap"}},
        {"boundObjectRef": 7},
    ],
)
async def test_token_requests_that_make_no_sense(server: Server, spec: dict[str, Any]) -> None:
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    assert (await send(server, "POST", path, {"spec": spec}))[0] in (400, 422)


def certificate(*names: x509.NameAttribute[str]) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    name = x509.Name(names)
    made = x509.CertificateBuilder(name, name, key.public_key(), 7, now, now + datetime.timedelta(days=1))
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


async def test_certificates_name_user_and_groups(server: Server) -> None:
    common, group = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME
    masters = certificate(x509.NameAttribute(common, "root"), x509.NameAttribute(group, "system:masters"))
    nobody = certificate(x509.NameAttribute(group, "dev"))
    for der, status in ((masters, 200), (nobody, 401), (b"junk", 401)):
        got = await answer(server.api.handler, Request("GET", PODS, peer_certificate=der))
        assert got.status == status


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/api/v1/pods?fieldSelector=spec.nodeName=n1", True),
        ("GET", "/api/v1/pods?watch=1&fieldSelector=spec.nodeName=n1", True),
        ("GET", "/api/v1/pods", False),
        ("GET", "/api/v1/pods?fieldSelector=spec.nodeName=n2", False),
        ("GET", "/api/v1/pods?fieldSelector=spec.nodeName!=n1", False),
        ("GET", f"{PODS}/mine", True),
        ("GET", f"{PODS}/other", False),
        ("DELETE", f"{PODS}/mine?gracePeriodSeconds=0", True),
        ("DELETE", f"{PODS}/other", False),
        ("GET", "/api/v1/namespaces/default/configmaps/used", True),
        ("GET", "/api/v1/namespaces/default/configmaps/private", False),
        ("GET", "/api/v1/namespaces/default/secrets/used", True),
        ("GET", "/api/v1/namespaces/default/secrets/private", False),
        ("GET", "/api/v1/namespaces/default/secrets", False),
        ("DELETE", "/api/v1/namespaces/default/configmaps/used", False),
        ("GET", "/api/v1/nodes/n1", True),
        ("GET", "/api/v1/nodes/n2", False),
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1", True),
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n2", False),
        ("GET", "/api/v1/namespaces", False),
        ("GET", f"{RBAC}/clusterroles", False),
    ],
)
async def test_what_a_kubelet_may_see(server: Server, method: str, path: str, allowed: bool) -> None:
    volumes = [{"name": "m", "configMap": {"name": "used"}}]
    env = [{"name": "S", "valueFrom": {"secretKeyRef": {"name": "used", "key": "k"}}}]
    await pod(server, "mine", "n1", volumes=volumes, containers=[{"name": "c", "image": "i", "env": env}])
    await pod(server, "other", "n2")
    status, _ = await send(server, method, path, who=NODE)
    assert (status != 403) is allowed


async def test_what_a_kubelet_may_see_goes_with_the_pods_that_are_on_its_node_now(server: Server) -> None:
    async def may() -> bool:
        said = {(await send(server, "GET", "/api/v1/namespaces/default/secrets/used", who=NODE))[0] for _ in range(2)}
        assert len(said) == 1
        return said != {403}

    env = [{"name": "S", "valueFrom": {"secretKeyRef": {"name": "used", "key": "k"}}}]
    using = {"containers": [{"name": "c", "image": "i", "env": env}]}
    await pod(server, "bystander", "n1")
    assert not await may()
    for node, allowed in (("n2", False), ("n1", True), ("n2", False)):  # the same name, each time another pod
        await pod(server, "moving", node, **using)
        assert await may() is allowed
        assert (await send(server, "DELETE", f"{PODS}/moving?gracePeriodSeconds=0"))[0] == 200
        assert not await may()


async def test_a_node_that_asks_decodes_only_what_was_written_since(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        await pod(server, f"elsewhere-{number}", "n2")
    seen: list[str] = []
    decoded = stored.decoded

    def watched(info: ResourceInfo, record: Record) -> Any:
        seen.append(record.key)
        return decoded(info, record)

    monkeypatch.setattr(stored, "decoded", watched)
    authorizer = NodeAuthorizer(server.context)
    question = Question("get", "", "secrets", "", "default", "used")
    for expected in (5, 0):
        seen.clear()
        assert await authorizer.objection("n1", question)
        assert len(seen) == expected
    await pod(server, "new", "n2")
    seen.clear()
    assert await authorizer.objection("n1", question)
    assert seen == ["/registry/pods/default/new"]


async def test_what_a_kubelet_may_write(server: Server) -> None:
    await pod(server, "mine", "n1")
    await pod(server, "other", "n2")
    node = {"metadata": {"name": "n1"}}
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    ready = {"status": {"phase": "Running"}}
    tries = [
        ("POST", "/api/v1/nodes", node, "", 201),
        ("POST", "/api/v1/nodes", {"metadata": {"name": "n2"}}, "", 403),
        ("POST", lease, node, "", 201),
        ("POST", lease, {"metadata": {"name": "n2"}}, "", 403),
        ("PATCH", "/api/v1/nodes/n1", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}, MERGE_PATCH, 403),
        ("PATCH", f"{PODS}/mine/status", ready, MERGE_PATCH, 200),
        ("PATCH", f"{PODS}/other/status", ready, MERGE_PATCH, 403),
        ("PATCH", f"{PODS}/mine", {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH, 403),
        ("PATCH", f"{PODS}/mine/status", {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH, 403),
        ("PATCH", f"{PODS}/mine/resize", RESIZE, STRATEGIC_PATCH, 403),
        ("POST", PODS, {"metadata": {"name": "new"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}, "", 403),
        ("DELETE", PODS, None, "", 403),
    ]
    got = [(await send(server, method, path, body, who=NODE, kind=kind))[0] for method, path, body, kind, _ in tries]
    assert got == [status for *_, status in tries]


async def test_as_someone_else_is_with_their_rights(server: Server) -> None:
    await grant(server, rule("list", "pods"))
    assert (await as_other(server, PODS, user="jane"))[0] == 200
    status, refused = await as_other(server, "/api/v1/nodes", user="jane")
    assert (status, 'User "jane" cannot list' in refused["message"]) == (403, True)
    assert (await as_other(server, "/api/v1/nodes", user="jane", group="dev, system:masters"))[0] == 403, "one group"
    both, headers = ("dev", "system:masters"), {"impersonate-user": "jane", "impersonate-group": "dev, system:masters"}
    repeated = Request("GET", "/api/v1/nodes", headers=headers, identity=ADMIN, repeated={"impersonate-group": both})
    assert (await server.api.handler(repeated)).status == 200
    assert (await as_other(server, "/api", user="system:anonymous"))[0] == 403
    assert (await as_other(server, "/api", user="someone"))[0] == 200


async def test_a_service_account_brings_its_groups(server: Server) -> None:
    group = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:serviceaccounts:default"}
    await grant(server, rule("list", "pods"), subject=group)
    assert (await as_other(server, PODS, user="system:serviceaccount:default:bot"))[0] == 200
    assert (await as_other(server, PODS, user="system:serviceaccount:other:bot"))[0] == 403


@pytest.mark.parametrize(
    ("rules", "other", "status"),
    [
        (rule("impersonate", "users", resourceNames=["joe"]), {"user": "joe"}, 200),
        (rule("impersonate", "users", resourceNames=["joe"]), {"user": "root"}, 403),
        (rule("impersonate", "users"), {"user": "joe", "group": "system:masters"}, 403),
        (rule("impersonate", "users"), {"user": "joe", "uid": "7"}, 403),
        (rule("impersonate", "users"), {"user": "joe", "extra-scopes": "a"}, 403),
        (rule("impersonate", "users"), {"user": "system:serviceaccount:default:bot"}, 403),
        (rule("impersonate", "users groups"), {"user": "joe", "group": "dev"}, 200),
        (rule("impersonate", "users"), {"group": "dev"}, 400),
    ],
)
async def test_nobody_becomes_who_they_may_not(
    server: Server, rules: dict[str, Any], other: dict[str, str], status: int
) -> None:
    await grant(server, rules, kind="ClusterRole")
    assert (await as_other(server, "/api", who=JANE, **other))[0] == status


async def test_a_put_that_would_create_needs_the_right_to_create(server: Server) -> None:
    path, lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l", {"metadata": {"name": "l"}, "spec": {}}
    await grant(server, rule("update", "leases", "coordination.k8s.io"))
    code, refused = await send(server, "PUT", path, lease, who=JANE)
    assert (code, "cannot create resource" in refused["message"]) == (403, True)
    assert (await send(server, "PUT", path, {**lease, "metadata": {"name": "other"}}))[0] == 400
    code, made = await send(server, "PUT", path, lease)
    assert code == 201
    assert (await send(server, "PUT", path, made, who=JANE))[0] == 200
    assert (await send(server, "PUT", f"{MAPS}/a", {"metadata": {"name": "a"}}))[0] == 404
