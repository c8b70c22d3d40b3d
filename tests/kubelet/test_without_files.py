"""The node of `podfit up --node simulated` and of the pytest cluster: its pods' volumes are looked for, not written."""

from pathlib import Path

import pytest

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
