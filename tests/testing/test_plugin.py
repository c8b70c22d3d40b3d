"""The pytest plugin, used as its users use it."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from podfit.client.kubeconfig import load
from podfit.core.errors import ApiError
from podfit.testing.cluster import Clock, Cluster, NeverHappened
from support.eventually import PATIENCE

WEB = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: app
    image: app:1
    resources: {requests: {cpu: 500m, memory: 64Mi}, limits: {memory: 128Mi}}
    resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]
---
apiVersion: v1
kind: Pod
metadata: {name: big}
spec:
  containers:
  - {name: app, image: app:1, command: [sleep, "3600"], resources: {requests: {cpu: "3"}}}
  restartPolicy: Never
"""


@pytest.fixture
def web(cluster: Cluster) -> Cluster:
    cluster.apply(WEB)
    return cluster


def test_a_pod_runs_at_once_on_a_node_that_says_what_it_is(web: Cluster) -> None:
    pod = web.pod("web")
    assert (pod.phase, pod.node, pod.restarts, pod.resizing) == ("Running", "simulated-1", 0, "")
    assert pod.desired == pod.allocated == pod.actual
    assert (pod.actual.cpu, pod.actual.memory, pod.actual.memory_limit) == (0.5, 64 << 20, 128 << 20)
    assert [node.metadata.name for node in web.nodes()] == ["simulated-1"]


def test_a_resize_is_complete_when_the_call_returns(web: Cluster) -> None:
    web.resize("web", app={"requests": {"cpu": "700m"}})
    assert (web.pod("web").actual.cpu, web.pod("web").restarts) == (0.7, 0)
    web.resize("web", app={"limits": {"memory": "256Mi"}})
    assert (web.pod("web").actual.memory_limit, web.pod("web").restarts) == (256 << 20, 1)


def test_what_has_no_room_waits_until_time_makes_some(web: Cluster, clock: Clock) -> None:
    web.resize("web", app={"requests": {"cpu": "2"}})
    waiting = web.pod("web")
    assert (waiting.resizing, waiting.desired.cpu, waiting.allocated.cpu) == ("Deferred", 2.0, 0.5)
    clock.advance(minutes=59)
    assert web.pod("web").resizing == "Deferred"
    clock.advance(minutes=2)
    assert (web.pod("big").phase, web.pod("web").allocated.cpu) == ("Succeeded", 2.0)


def test_load_follows_its_curve_and_too_much_memory_ends_a_container(web: Cluster, clock: Clock) -> None:
    web.load("web", cpu=0.3, memory=lambda seconds: (1 << 20) * seconds)
    clock.advance(minutes=2)
    assert web.pod("web").restarts == 0
    clock.advance(seconds=20)
    last = web.pod("web").pod.status.container_statuses[0].last_state.terminated
    assert last is not None
    assert (last.reason, last.exit_code) == ("OOMKilled", 137)


def test_time_stands_still_until_it_is_moved(cluster: Cluster, clock: Clock) -> None:
    before = clock.elapsed
    cluster.settle()
    assert clock.elapsed == before
    clock.advance(30, minutes=1, hours=1)
    assert clock.elapsed - before == pytest.approx(3690)


def test_what_never_happens_is_shown(web: Cluster) -> None:
    with pytest.raises(NeverHappened, match=r"(?s)not as it was waited for after 5 s.*containerStatuses"):
        web.wait_for("web", phase="Failed", within=5)
    assert web.wait_for("web", lambda pod: pod.restarts == 0, phase="Running").name == "web"


def test_errors_are_the_apis_own(cluster: Cluster) -> None:
    with pytest.raises(ApiError, match=r"spec\.containers: Required value"):
        cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": []}})
    with pytest.raises(ApiError, match='pods "x" not found'):
        cluster.pod("x")
    with pytest.raises(LookupError, match=r"does not serve example\.com/v1 Thing"):
        cluster.apply({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}})


def test_apply_changes_what_is_there_and_takes_files(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "map.yaml"
    path.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: '1'}\n")
    cluster.apply(path)
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"b": "2"}})


DECLARED = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: lamps, singular: lamp, kind: Lamp}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {watts: {type: integer, maximum: 100}, dim: {type: boolean}}}}
---
apiVersion: example.com/v1
kind: Lamp
metadata: {name: desk}
spec: {watts: 40}
"""


def test_kinds_that_a_test_declares_are_applied_like_any_other(cluster: Cluster) -> None:
    cluster.apply(DECLARED)
    lamp: dict[str, Any] = {"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": {"name": "desk"}}
    cluster.apply(lamp | {"spec": {"watts": 60}})
    cluster.apply(lamp | {"spec": {"watts": 25}}, namespace="kube-system")
    assert cluster.get("example.com/v1", "Lamp", "desk")["spec"] == {"watts": 60}
    assert cluster.get("example.com/v1", "Lamp", "desk", "kube-system")["spec"] == {"watts": 25}
    with pytest.raises(ApiError, match=r"spec\.watts: Invalid value: 600"):
        cluster.apply(lamp | {"spec": {"watts": 600}})
    with pytest.raises(ApiError, match=r'lamps\.example\.com "hall" not found'):
        cluster.get("example.com/v1", "Lamp", "hall")
    assert cluster.get("v1", "Node", "simulated-1")["kind"] == "Node"


@pytest.mark.podfit(nodes=3)
def test_nodes_can_be_many(cluster: Cluster) -> None:
    assert [node.metadata.name for node in cluster.nodes()] == ["simulated-1", "simulated-2", "simulated-3"]
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {"containers": [{"name": "app", "image": "i", "resources": {"requests": {"cpu": "3"}}}]},
    }
    for name in "abc":
        cluster.apply(pod | {"metadata": {"name": name}})
    assert len({pod.node for pod in cluster.pods()}) == 3


@pytest.mark.parametrize("test", [1, 2])
def test_each_test_has_a_cluster_of_its_own(cluster: Cluster, test: int) -> None:
    assert cluster.pods() == [], f"test {test} sees what another left"
    cluster.apply(WEB)


def test_a_foreign_client_reaches_it_over_https(web: Cluster) -> None:
    async def names() -> list[str]:
        client = load([web.kubeconfig]).client()
        try:
            body = await client.request("GET", "/api/v1/namespaces/default/pods")
        finally:
            await client.close()
        return sorted(item["metadata"]["name"] for item in json.loads(body)["items"])

    assert asyncio.run(names()) == ["big", "web"]
    assert web.url.startswith("https://127.0.0.1:")


def test_a_watch_ends_after_the_seconds_that_its_client_asked_for(web: Cluster) -> None:
    """They are the client's own: one that waits for the end could not move the cluster's time meanwhile."""

    async def watched() -> list[str]:
        client = load([web.kubeconfig]).client()
        try:
            async with asyncio.timeout(60):
                query = {"watch": "true", "timeoutSeconds": "1"}
                body = await client.request("GET", "/api/v1/namespaces/default/pods", query=query)
        finally:
            await client.close()
        return sorted(json.loads(line)["object"]["metadata"]["name"] for line in body.splitlines())

    assert asyncio.run(watched()) == ["big", "web"]
    assert web.clock.elapsed == 0


async def test_a_test_may_be_a_coroutine(cluster: Cluster) -> None:
    cluster.apply(WEB)
    await asyncio.sleep(0)
    assert cluster.pod("web").phase == "Running"


@pytest.mark.kubectl
def test_kubectl_reaches_it(web: Cluster) -> None:
    command = ["kubectl", "--kubeconfig", str(web.kubeconfig), "get", "pods", "-o", "name"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30 * PATIENCE, check=True)
    assert done.stdout.split() == ["pod/big", "pod/web"]


def test_the_plugin_costs_nothing_until_it_is_used(tmp_path: Path) -> None:
    heavy = "[name for name in sys.modules if name.startswith(('podfit.api', 'aiohttp'))]"
    (tmp_path / "test_nothing.py").write_text(f"import sys\ndef test_it():\n    assert not {heavy}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 * PATIENCE, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout


def test_two_hours_with_ten_pods(cluster: Cluster, clock: Clock) -> None:
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {"containers": [{"name": "app", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]},
    }
    for number in range(10):
        cluster.apply(pod | {"metadata": {"name": f"web-{number}"}})
    clock.advance(hours=2)
    assert {pod.phase for pod in cluster.pods()} == {"Running"}


def test_a_text_that_is_indented_may_have_several_documents(cluster: Cluster) -> None:
    """A namespace, and a pod in it that needs the service account which a controller makes."""
    cluster.apply("""
        apiVersion: v1
        kind: Namespace
        metadata: {name: team}
        ---
        apiVersion: scheduling.k8s.io/v1
        kind: PriorityClass
        metadata: {name: high}
        value: 1000
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: a, namespace: team}
        spec: {priorityClassName: high, containers: [{name: a, image: "a:1"}]}
    """)
    assert cluster.pod("a", namespace="team").phase == "Running"
    assert cluster.pod("a", namespace="team").document["spec"]["priority"] == 1000
