"""What a kubelet's own certificate may do, rule by rule, over TLS (docs/security.md has the same table)."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.certified import Certified, certified
from support.node_rules import RULES, table
from support.node_world import NODES, PODS, Rule, filled, node_world
from support.server import Server

GROUP = "rbac.authorization.k8s.io"


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pki")


@pytest.fixture
async def clients(server: Server, pki: Path) -> AsyncIterator[Certified]:
    async with certified(server, pki) as made:
        yield made


@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule.id) for rule in RULES])
async def test_rule(server: Server, clients: Certified, rule: Rule) -> None:
    uids = await node_world(server)
    code, answer = await clients.node("n1", rule.method, rule.path, filled(rule.body, uids), kind=rule.kind)
    assert code == rule.code, answer
    if rule.text:
        assert rule.text in answer["message"]


def test_the_page_has_every_rule() -> None:
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
    assert table() in page


async def test_a_node_registers_itself(clients: Certified) -> None:
    """With the labels that a kubelet sets, and not with others."""
    body = {"metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "n1", "kubernetes.io/os": "linux"}}}
    refused = {"metadata": {"name": "n1", "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/x": ""}}}
    code, answer = await clients.node("n1", "POST", NODES, refused)
    assert code == 403
    text = "is not allowed to set the following labels: kubernetes.io/x, node-role.kubernetes.io/worker"
    assert text in answer["message"]
    assert (await clients.node("n1", "POST", NODES, body))[0] == 201


async def test_a_node_is_not_registered_with_a_config_source(clients: Certified) -> None:
    source = {"configMap": {"name": "c", "namespace": "default", "kubeletConfigKey": "k"}}
    body = {"metadata": {"name": "n1"}, "spec": {"configSource": source}}
    code, answer = await clients.node("n1", "POST", NODES, body)
    assert code == 403
    assert 'node "n1" is not allowed to create pods with a non-nil configSource' in answer["message"]


async def test_a_mirror_pod_needs_its_node(server: Server, clients: Certified) -> None:
    uids = await node_world(server)
    rule = next(rule for rule in RULES if rule.id == "mirror-own")
    body = filled(rule.body, uids)
    await server.ask("DELETE", f"{NODES}/n1")
    code, answer = await clients.node("n1", "POST", PODS, body)
    assert (code, answer["message"]) == (404, 'node "n1" not found')


async def test_a_mirror_pod_gives_its_node_nothing(server: Server, clients: Certified) -> None:
    """Not even one that an administrator made with a reference: what a mirror pod says is its node's word."""
    await node_world(server)
    path = "/api/v1/namespaces/default/configmaps/c3"
    assert (await clients.node("n1", "GET", path))[0] == 403
    spec = {
        "nodeName": "n1",
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", "configMap": {"name": "c3"}}],
    }
    meta = {"name": "odd", "annotations": {"kubernetes.io/config.mirror": "x"}}
    assert (await server.ask("POST", PODS, _json({"metadata": meta, "spec": spec}))).status == 201
    assert (await clients.node("n1", "GET", path))[0] == 403


async def test_a_right_to_an_audience_lifts_its_restriction(server: Server, clients: Certified) -> None:
    uids = await node_world(server)
    rule = next(rule for rule in RULES if rule.id == "token-audience")
    body = filled(rule.body, uids)
    role = {
        "metadata": {"name": "bank"},
        "rules": [
            {
                "verbs": ["request-serviceaccounts-token-audience"],
                "apiGroups": [""],
                "resources": ["bank"],
                "resourceNames": ["default"],
            }
        ],
    }
    binding = {
        "metadata": {"name": "bank"},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "bank"},
        "subjects": [{"kind": "User", "apiGroup": GROUP, "name": "system:node:n1"}],
    }
    for resource, made in (("clusterroles", role), ("clusterrolebindings", binding)):
        assert (await server.ask("POST", f"/apis/{GROUP}/v1/{resource}", _json(made))).status == 201
    assert (await clients.node("n1", rule.method, rule.path, body))[0] == 201


@pytest.mark.parametrize(
    ("user", "groups", "text"),
    [
        ("system:node:", ("system:nodes",), 'unknown node for user "system:node:"'),
        ("system:node:n1", (), "cannot create resource"),
        ("n1", ("system:nodes",), "cannot create resource"),
    ],
)
async def test_who_is_no_node(clients: Certified, user: str, groups: tuple[str, ...], text: str) -> None:
    code, answer = await clients.send(user, groups, "POST", NODES, {"metadata": {"name": "n1"}})
    assert code == 403
    assert text in answer["message"]


async def test_a_node_without_a_name_writes_nothing_whatever_roles_it_has(server: Server, clients: Certified) -> None:
    await _nodes_are_administrators(server)
    code, answer = await clients.send("system:node:", ("system:nodes",), "POST", NODES, {"metadata": {"name": "n1"}})
    assert (code, answer["message"]) == (
        403,
        'nodes "n1" is forbidden: could not determine node from user "system:node:"',
    )


@pytest.mark.parametrize(
    ("path", "method", "text"),
    [
        (
            f"{PODS}/mine/resize",
            "PATCH",
            "unexpected pod subresource \"resize\", only 'status' and 'eviction' are allowed",
        ),
        (f"{PODS}/mine", "PATCH", 'unexpected operation "UPDATE", node "n1" can only create and delete mirror pods'),
        ("/api/v1/namespaces/default/persistentvolumeclaims/claim1", "PATCH", "may only update PVC status"),
    ],
)
async def test_what_roles_give_a_node_admission_still_refuses(
    server: Server, clients: Certified, path: str, method: str, text: str
) -> None:
    await node_world(server)
    await _nodes_are_administrators(server)
    change = {"metadata": {"labels": {"a": "b"}}}
    code, answer = await clients.node("n1", method, path, change, kind="application/merge-patch+json")
    assert code == 403
    assert text in answer["message"]


async def _nodes_are_administrators(server: Server) -> None:
    role = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "cluster-admin"}
    subjects = [{"kind": "Group", "apiGroup": GROUP, "name": "system:nodes"}]
    body = {"metadata": {"name": "all"}, "roleRef": role, "subjects": subjects}
    assert (await server.ask("POST", f"/apis/{GROUP}/v1/clusterrolebindings", _json(body))).status == 201


def _json(body: object) -> bytes:
    return json.dumps(body).encode()
