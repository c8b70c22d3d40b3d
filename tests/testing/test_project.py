"""A project of somebody else's, whose tests have nothing but the fixtures."""

import subprocess
import sys
from pathlib import Path

from support.eventually import PATIENCE

TESTS = '''
import json
import ssl
import urllib.error
import urllib.request

import pytest
import yaml

WEB = """
    apiVersion: v1
    kind: Namespace
    metadata: {name: team}
    ---
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web, namespace: team}
    spec:
      replicas: 2
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec:
          initContainers:
          - {name: first, image: "first:1"}
          containers:
          - name: app
            image: "web:1"
            readinessProbe: {httpGet: {port: 80}, periodSeconds: 5, failureThreshold: 2}
"""


NAMES = []


def started(cluster):
    cluster.apply(WEB)
    names = [pod.name for pod in cluster.pods("team")]
    for name in names:
        cluster.end(name, namespace="team")
    return [cluster.wait_for(name, lambda pod: pod.ready, namespace="team").name for name in names]


def test_init_containers_end_when_they_are_told_to(cluster):
    cluster.apply(WEB)
    pod = cluster.pods("team")[0]
    assert pod.phase == "Pending"
    cluster.end(pod.name, namespace="team")
    assert cluster.wait_for(pod.name, phase="Running", namespace="team").ready
    other = cluster.pods("team")[1].name
    cluster.crash(other, namespace="team")
    told = cluster.pod(other, "team").document["status"]["initContainerStatuses"][0]
    assert (told["restartCount"], told["lastState"]["terminated"]["exitCode"]) == (1, 1)
    assert cluster.pod(other, "team").phase == "Pending"


def test_a_container_ends_or_crashes(cluster, clock):
    name = started(cluster)[0]
    cluster.crash(name, namespace="team")
    assert cluster.pod(name, "team").restarts == 1
    cluster.crash(name, oom=True, namespace="team")
    assert {each.reason for each in cluster.events(name, namespace="team")} >= {"BackOff", "Scheduled", "Started"}
    clock.advance(15)
    last = cluster.pod(name, "team").document["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert (cluster.pod(name, "team").restarts, last["reason"], last["exitCode"]) == (2, "OOMKilled", 137)
    cluster.end(name, code=3, namespace="team")
    with pytest.raises(LookupError, match="container app of pod .* does not run"):
        cluster.end(name, container="app", namespace="team")


def test_a_container_is_unready_and_ready_again(cluster, clock):
    name = started(cluster)[0]
    cluster.unready(name, namespace="team")
    assert cluster.pod(name, "team").ready
    clock.advance(12)
    assert not cluster.pod(name, "team").ready
    status = cluster.get("apps/v1", "Deployment", "web", "team")["status"]
    assert (status["readyReplicas"], status["unavailableReplicas"]) == (1, 1)
    cluster.ready(name, namespace="team")
    clock.advance(6)
    assert cluster.pod(name, "team").ready


def test_who_has_no_probe_cannot_be_unready(cluster):
    spec = {"containers": [{"name": "a", "image": "a"}, {"name": "b", "image": "b"}]}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "two"}, "spec": spec})
    with pytest.raises(ValueError, match="several containers of pod .* run, say which: a, b"):
        cluster.unready("two")
    with pytest.raises(ValueError, match="container a of pod default/two has no readinessProbe"):
        cluster.unready("two", container="a")


@pytest.mark.podfit(nodes=[{"cpu": "16", "memory": "64Gi"}, {"cpu": "500m"}, {}])
def test_nodes_have_sizes(cluster):
    told = {node.metadata.name: node.status.allocatable for node in cluster.nodes()}
    sizes = [(str(told[f"simulated-{n}"]["cpu"]), str(told[f"simulated-{n}"]["memory"])) for n in (1, 2, 3)]
    assert sizes == [("16", "64Gi"), ("500m", "8Gi"), ("4", "8Gi")]


def test_anything_is_deleted(cluster, clock):
    started(cluster)
    cluster.delete("web", kind="Deployment", api_version="apps/v1", namespace="team")
    clock.advance(31)
    assert cluster.pods("team") == []
    cluster.delete("team", kind="Namespace")
    clock.advance(10)
    with pytest.raises(Exception, match='namespaces "team" not found'):
        cluster.get("v1", "Namespace", "team")


def ready(node):
    return next(condition.status for condition in node.status.conditions if condition.type == "Ready")


@pytest.mark.podfit(nodes=2)
def test_a_node_is_lost_and_comes_back(cluster, clock):
    started(cluster)
    cluster.lose_node("simulated-2")
    clock.advance(minutes=7)
    assert (ready(cluster.nodes()[0]), ready(cluster.nodes()[1])) == ("True", "Unknown")
    cluster.restore_node("simulated-2")
    clock.advance(15)
    assert ready(cluster.nodes()[1]) == "True"
    with pytest.raises(LookupError, match="no node other; there are: simulated-1, simulated-2"):
        cluster.lose_node("other")


def test_a_service_account_has_a_kubeconfig_and_its_rights(cluster):
    cluster.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bot"}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "bot", "namespace": "default"}],
        },
    )
    config = yaml.safe_load(cluster.kubeconfig_of("bot").read_text())
    token = config["users"][0]["user"]["token"]
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE

    def asked(path):
        request = urllib.request.Request(cluster.url + path, headers={"Authorization": "Bearer " + token})
        try:
            with urllib.request.urlopen(request, context=tls) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    assert asked("/api/v1/namespaces/default/pods") == 200
    assert asked("/api/v1/namespaces/default/secrets") == 403


@pytest.mark.parametrize("again", [1, 2])
@pytest.mark.podfit(seed=4)
def test_a_seed_gives_the_same_names(cluster, again):
    cluster.apply(WEB)
    NAMES.append(sorted(pod.name for pod in cluster.pods("team")))
    assert NAMES[0] == NAMES[-1]
'''


def test_its_tests_pass(tmp_path: Path) -> None:
    (tmp_path / "test_ours.py").write_text(TESTS)
    done = subprocess.run(
        [
            sys.executable,
            *["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", "--tb=short", "test_ours.py"],
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110 * PATIENCE,
        check=False,
    )
    assert f"{TESTS.count('def test_') + 1} passed" in done.stdout, done.stdout + done.stderr
