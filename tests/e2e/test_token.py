"""A real container finds a token that the API server takes for its pod's service account."""

import json

import pytest

from support.up import IMAGE, Up

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]
PLACE = "/var/run/secrets/kubernetes.io/serviceaccount"


def test_the_token_in_a_container_speaks_for_its_account(cluster: Up) -> None:
    cluster.ok("create", "serviceaccount", "robot")
    command = ["sh", "-c", f"cat {PLACE}/token; echo; cat {PLACE}/namespace; echo; head -1 {PLACE}/ca.crt"]
    spec = {
        "serviceAccountName": "robot",
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": IMAGE, "command": command}],
    }
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "holder"}, "spec": spec}
    cluster.ok("create", "-f", "-", stdin=json.dumps(body))
    cluster.ok("wait", "pod/holder", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=30s")
    token, namespace, authority = cluster.ok("logs", "holder").splitlines()
    assert (namespace, authority) == ("default", "-----BEGIN CERTIFICATE-----")
    who = json.loads(cluster.ok("auth", "whoami", "-o", "json", "--token", token))["status"]["userInfo"]
    assert who["username"] == "system:serviceaccount:default:robot"
    assert who["extra"]["authentication.kubernetes.io/pod-name"] == ["holder"]
    cluster.ok("delete", "pod", "holder", "--now")
    assert "Unauthorized" in cluster.kubectl("auth", "whoami", "--token", token).err
    cluster.ok("delete", "serviceaccount", "robot")
