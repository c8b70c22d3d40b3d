"""The real kubectl asks the API server alone who somebody is and what they may do."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.requests import NODE_CLIENT, body, key_pem, request
from support.up import Answer, Up

pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("kubectl-apply")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A cluster without nodes."""
    up = Up(tmp_path_factory.mktemp("auth"))
    up.start(node="none")
    yield up
    assert up.down().code == 0


def test_can_i_and_who_am_i(server: Up) -> None:
    assert server.ok("auth", "can-i", "patch", "pods", "--subresource=resize").strip() == "yes"
    server.ok("create", "rolebinding", "editors", "--clusterrole=edit", "--user=jane")
    as_jane = ("--as", "jane", "--as-group", "dev")
    assert server.ok("auth", "can-i", "create", "pods", *as_jane).strip() == "yes"
    assert server.kubectl("auth", "can-i", "patch", "pods", "--subresource=resize", *as_jane).out.strip() == "no"
    listed = server.ok("auth", "can-i", "--list", *as_jane)
    assert "pods/eviction" in listed
    assert "selfsubjectaccessreviews.authorization.k8s.io" in listed
    who = json.loads(server.ok("auth", "whoami", "-o", "json", *as_jane))["status"]["userInfo"]
    assert who == {"username": "jane", "groups": ["dev", "system:authenticated"]}


def test_a_created_token_speaks_for_its_account(server: Up) -> None:
    server.ok("create", "serviceaccount", "robot")
    token = server.ok("create", "token", "robot", "--duration", "20m").strip()
    who = json.loads(server.ok("auth", "whoami", "-o", "json", "--token", token))["status"]["userInfo"]
    assert who["username"] == "system:serviceaccount:default:robot"


def test_roles_are_gathered_from_others(server: Up) -> None:
    label = "rbac.authorization.k8s.io/aggregate-to-view=true"
    server.ok("create", "clusterrole", "see-leases", "--verb=get", "--resource=leases.coordination.k8s.io")
    server.ok("label", "clusterrole", "see-leases", label)
    server.ok("wait", "clusterrole/view", "--timeout=10s", "--for=jsonpath={.rules[0].resources[0]}=leases")


TOKEN = {"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"}
NEW_NODE = request("system:node:new", "system:nodes")


def issued(server: Up, name: str, directory: Path) -> dict[str, Any]:
    """Waits for the certificate; who the server takes its bearer for, and for how long it is good."""
    server.ok("wait", "csr", name, "--timeout=20s", "--for=jsonpath={.status.certificate}")
    (directory / "key").write_bytes(key_pem())
    (directory / "crt").write_bytes(base64.b64decode(server.get("csr", name)["status"]["certificate"]))
    shown = as_bearer(server, directory, "auth", "whoami", "-o", "json")
    found: dict[str, Any] = json.loads(shown.out)["status"]["userInfo"]
    return found


def as_bearer(server: Up, directory: Path, *arguments: str) -> Answer:
    admin = server.kubeconfig.read_text().splitlines()
    kept = [line for line in admin if "client-certificate-data" not in line and "client-key-data" not in line]
    (directory / "nobody.kubeconfig").write_text("\n".join(kept))
    shown = ("--client-certificate", str(directory / "crt"), "--client-key", str(directory / "key"))
    return server.kubectl("--kubeconfig", str(directory / "nobody.kubeconfig"), *shown, *arguments)


def test_a_machine_with_a_bootstrap_token_becomes_a_node(server: Up, tmp_path: Path) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "bootstrap.kubernetes.io/token",
        "stringData": TOKEN,
        "metadata": {"name": "bootstrap-token-abcdef", "namespace": "kube-system"},
    }
    server.apply(secret)
    group = "--group=system:bootstrappers"
    server.ok("create", "clusterrolebinding", "ask", "--clusterrole=system:node-bootstrapper", group)
    token = ("--token", f"{TOKEN['token-id']}.{TOKEN['token-secret']}")
    server.ok("create", "-f", "-", *token, stdin=json.dumps(body("new", NEW_NODE, expirationSeconds=3600)))
    waiting = server.ok("get", "csr", "new").splitlines()
    assert waiting[0].split() == ["NAME", "AGE", "SIGNERNAME", "REQUESTOR", "REQUESTEDDURATION", "CONDITION"]
    assert waiting[1].split()[2:] == [NODE_CLIENT, "system:bootstrap:abcdef", "60m", "Pending"]
    assert "approved" in server.ok("certificate", "approve", "new")
    node = issued(server, "new", tmp_path)
    assert (node["username"], node["groups"]) == ("system:node:new", ["system:nodes", "system:authenticated"])
    assert "Approved,Issued" in server.ok("get", "csr", "new")
    assert "cannot delete" in as_bearer(server, tmp_path, "delete", "node", "other").err


def test_a_node_that_may_is_approved_by_itself(server: Up, tmp_path: Path) -> None:
    kind = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"
    server.ok("create", "clusterrolebinding", "renew", f"--clusterrole={kind}", "--group=system:nodes")
    as_node = ("--as", "system:node:new", "--as-group", "system:nodes")
    server.ok("create", "-f", "-", *as_node, stdin=json.dumps(body("again", NEW_NODE)))
    assert issued(server, "again", tmp_path)["username"] == "system:node:new"
    condition = server.get("csr", "again")["status"]["conditions"][0]
    assert (condition["type"], condition["reason"]) == ("Approved", "AutoApproved")


def test_a_denied_request_stays_denied(server: Up) -> None:
    server.ok("create", "-f", "-", stdin=json.dumps(body("no", request("jane"), "kubernetes.io/kube-apiserver-client")))
    assert "denied" in server.ok("certificate", "deny", "no")
    assert server.kubectl("certificate", "approve", "no").code
    selected = "--field-selector=spec.signerName=kubernetes.io/kube-apiserver-client"
    assert "Denied" in server.ok("get", "csr", selected)


def test_what_the_signer_does_not_sign_has_failed(server: Up) -> None:
    server.ok("create", "-f", "-", stdin=json.dumps(body("odd", request("jane"))))
    server.ok("certificate", "approve", "odd")
    server.ok("wait", "csr", "odd", "--timeout=20s", "--for=condition=Failed")
    assert "Approved,Failed" in server.ok("get", "csr", "odd")
    failed = server.get("csr", "odd")["status"]["conditions"][1]
    assert failed["message"] == "subject organization is not system:nodes"
