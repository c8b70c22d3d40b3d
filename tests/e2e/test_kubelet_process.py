"""A node in a process of its own: it joins with a token, is reached at its address, and asks who comes to it."""

import json
import re
import ssl
import stat
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path

import pytest

from podfit.client.kubeconfig import load
from podfit.net.authority import Authority
from podfit.net.system import SystemClock
from podfit.net.tls import client_context
from support.eventually import PATIENCE, eventually
from support.kubelet import KubeletProcess, joined
from support.up import PODFIT, Up, manifest, run, running

pytestmark = pytest.mark.kubectl
SECONDS = 30.0


def _ask(url: str, tls: ssl.SSLContext) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, context=tls, timeout=10 * PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def _logs(up: Up, name: str) -> str:
    """Once the node has its serving certificate."""
    look = partial(up.kubectl, "logs", name)
    return eventually(look, lambda answer: answer.code == 0, within=SECONDS, what=f"{name} tells its log").out


def _server(kubelet: KubeletProcess) -> str:
    found = re.search(r"serves +(https://\S+)", kubelet.said())
    assert found
    return found[1]


def test_a_machine_joins_and_is_asked_by_those_who_may(cluster_dir: Up, tmp_path: Path) -> None:
    cluster_dir.start(node="none")
    with joined(tmp_path / "node", cluster_dir.kubeconfig) as kubelet:
        cluster_dir.apply(manifest("web"))
        cluster_dir.pod_when("web", running, "ran")
        assert "simulated" in _logs(cluster_dir, "web")
        for file in (kubelet.kubeconfig, kubelet.data / "pki" / "kubelet-server.pem"):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
        node = cluster_dir.get("node", "n1")
        address = next(address["address"] for address in node["status"]["addresses"] if address["type"] == "InternalIP")
        assert not address.startswith("127.")
        assert cluster_dir.get("pod", "web")["status"]["podIP"] == address

        server, authority = _server(kubelet), Authority.load(cluster_dir.root / "pki", clock=SystemClock())
        assert server.startswith(f"https://{address}:")

        def tls(user: str = "", *groups: str) -> ssl.SSLContext:
            pair = authority.client(user.replace(":", "-"), user=user, groups=groups) if user else None
            return client_context(
                authorities=authority.certificate,
                certificate=pair.certificate if pair else None,
                key=pair.key if pair else None,
            )

        assert _ask(f"{server}/pods", tls()) == (401, "Unauthorized")
        assert _ask(f"{server}/containerLogs/default/web/app", tls("jane")) == (
            403,
            "Forbidden (user=jane, verb=get, resource=nodes, subresource(s)=[proxy])\n",
        )
        assert _ask(f"{server}/pods", tls("system:node:n1", "system:nodes"))[0] == 403, "not even a node"
        code, pods = _ask(f"{server}/pods", tls("root", "system:masters"))
        assert (code, json.loads(pods)["items"][0]["metadata"]["name"]) == (200, "web")
        assert cluster_dir.ok("get", "--raw", "/api/v1/nodes/n1/proxy/healthz") == "ok"
        told = run(PODFIT, "status", "--data", str(kubelet.data))
        assert (told.code, told.err) == (0, "")
        assert "n1: simulated, Ready" in told.out
        assert "1 Running" in told.out

    stopped = cluster_dir.kubectl("logs", "web")
    assert stopped.code == 1
    assert f'node "n1" cannot be reached at {server}: dial tcp' in stopped.err


def test_a_node_comes_back_as_who_it_was_without_the_token(cluster_dir: Up, tmp_path: Path) -> None:
    cluster_dir.start(node="none")
    with joined(tmp_path / "node", cluster_dir.kubeconfig) as kubelet:
        first = kubelet.kubeconfig.read_bytes()
        assert kubelet.end() == 0
        (kubelet.data / "bootstrap.kubeconfig").unlink()
        kubelet.start()
        assert kubelet.kubeconfig.read_bytes() == first
        assert load([kubelet.kubeconfig]).token == ""
        (other := tmp_path / "other").mkdir()
        refused = run(PODFIT, "kubelet", "--data", str(other), "--runtime", "simulated", "--node-name", "n2")
        assert refused.code == 2
        assert "join the cluster with --bootstrap-kubeconfig FILE" in refused.err


def test_a_token_that_is_over_does_not_join(cluster_dir: Up, tmp_path: Path) -> None:
    cluster_dir.start(node="none")
    file = tmp_path / "bootstrap.kubeconfig"
    made = run(PODFIT, "token", "create", "--kubeconfig", str(cluster_dir.kubeconfig), "--out", str(file))
    assert (made.code, stat.S_IMODE(file.stat().st_mode)) == (0, 0o600)
    secret = json.loads(cluster_dir.ok("get", "secret", "-n", "kube-system", "-o", "json"))["items"][0]
    cluster_dir.ok("delete", "secret", "-n", "kube-system", secret["metadata"]["name"])
    refused = run(
        PODFIT,
        "kubelet",
        "--data",
        str(tmp_path / "node"),
        "--runtime",
        "simulated",
        "--node-name",
        "n1",
        "--port",
        "0",
        "--bootstrap-kubeconfig",
        str(file),
    )
    assert refused.code == 3
    assert "node n1 cannot join" in refused.err
    assert "Unauthorized" in refused.err
