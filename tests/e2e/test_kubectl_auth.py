"""The real kubectl asks the API server alone who somebody is and what they may do."""

import json
from collections.abc import Iterator

import pytest

from support.up import Up

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
