"""The node of `podfit up --node simulated` and of the pytest cluster: its pods' volumes are looked for, not written,
and after a restart it goes on from their last status."""

from pathlib import Path

import msgspec
import pytest

from kubelet.harness import Node
from kubelet.test_resize import done, sized
from podfit.testing.cluster import Cluster

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: app
    image: app:1
    volumeMounts:
    - {name: settings, mountPath: /settings}
    - {name: data, mountPath: /data, subPath: a/b}
    - {name: host, mountPath: /host}
  volumes:
  - {name: settings, configMap: {name: settings}}
  - {name: data, emptyDir: {}}
  - {name: host, hostPath: {path: HOST, type: DirectoryOrCreate}}
"""
SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"}}


@pytest.fixture
def host(tmp_path: Path) -> Path:
    return tmp_path / "made-by-a-node"


def test_a_simulated_node_waits_for_what_a_volume_is_made_of(cluster: Cluster, host: Path) -> None:
    cluster.apply(POD.replace("HOST", str(host)))
    cluster.settle()
    (failed,) = {event.message for event in cluster.events("web") if event.reason == "FailedMount"}
    assert failed == 'MountVolume.SetUp failed for volume "settings" : configmap "settings" not found'
    cluster.apply(SETTINGS)
    cluster.wait_for("web", phase="Running")


def test_a_simulated_node_writes_no_files_of_its_pods(cluster: Cluster, host: Path) -> None:
    cluster.apply(SETTINGS, POD.replace("HOST", str(host)))
    cluster.wait_for("web", phase="Running")
    assert not host.exists()
    (runtime,) = cluster.runtimes()
    (container,) = runtime.containers()
    logs = next(path for path in Path(container.log_path).parents if path.name == "logs")
    assert not (logs.parent / "pods").exists()


def test_a_simulated_node_makes_no_host_path_of_a_persistent_volume(cluster: Cluster, host: Path) -> None:
    size = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    given = {"capacity": {"storage": "1Gi"}, "hostPath": {"path": str(host), "type": "DirectoryOrCreate"}}
    wanted = {"resources": {"requests": {"storage": "1Gi"}}}
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    spec = {"containers": [{"name": "app", "image": "app:1"}], "volumes": [volume]}
    cluster.apply(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": size | given},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": size | wanted},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec},
    )
    cluster.wait_for("web", phase="Running")
    assert not host.exists()


async def test_a_simulated_node_that_starts_anew_goes_on_from_the_last_status(tmp_path: Path) -> None:
    node = Node(tmp_path / "node")
    node.config = msgspec.structs.replace(node.config, simulated=True, files=False)
    node.restarted()
    await node.start()
    node.add(containers=[sized("1")])
    node.add("big", containers=[sized("2")])
    await node.runs("web")
    await node.runs("big")
    node.api.change("web", containers=[sized("3")])
    await node.until(lambda: (node.condition("PodResizePending") or {}).get("reason") == "Deferred")
    await node.crash(node.make_machine)
    await node.start()
    await node.runs("web")
    assert not list(node.config.root.glob("*_pods_state*"))
    assert node.state()["allocatedResources"]["cpu"] == "1", "the pending resize did not slip through"
    assert (node.condition("PodResizePending") or {})["reason"] == "Deferred"
    assert not [event for event in node.api.events() if event.startswith("Checkpoint")]
    node.api.remove("pods", "big")
    await node.until(lambda: done(node) and node.state()["resources"]["limits"]["cpu"] == "3")
    await node.kubelet.stop(stop_pods=False)


def test_a_simulated_container_has_a_log_once_it_is_read(cluster: Cluster) -> None:
    cluster.apply("{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: app, image: 'a:1'}]}}")
    cluster.wait_for("web", phase="Running")
    (runtime,) = cluster.runtimes()
    (container,) = runtime.containers()
    assert not Path(container.log_path).parent.exists()
    log = cluster.run(cluster.client.request("GET", "/api/v1/namespaces/default/pods/web/log"))
    assert log == b"this container is simulated: it runs nothing\n"
