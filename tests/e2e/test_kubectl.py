"""The real kubectl against a real node: what a user types, and what they see."""

import json
import subprocess
from pathlib import Path

import pytest

from support.up import STAY, Up, manifest, resources, running, settled

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]


@pytest.fixture
def web(cluster: Up):  # type: ignore[no-untyped-def]  # fixtures
    """A Guaranteed pod that runs; gone afterwards."""
    cluster.apply(manifest("web", {"name": "app", "resources": resources("100m", "64Mi")}))
    cluster.ok("wait", "--for=condition=Ready", "pod/web", "--timeout=30s")
    yield cluster
    cluster.ok("delete", "pod", "web", "--now", "--ignore-not-found")


def test_the_server_says_who_it_is(cluster: Up) -> None:
    assert "Server Version: v1.36" in cluster.ok("version")
    assert "pods" in cluster.ok("api-resources", "--namespaced=true")
    nodes = cluster.ok("get", "nodes")
    assert nodes.split()[:5] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert " Ready " in nodes


def test_get_shows_the_columns_people_know(web: Up) -> None:
    header, row = web.ok("get", "pods").splitlines()
    assert header.split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row.split()[:4] == ["web", "1/1", "Running", "0"]
    wide = web.ok("get", "pod", "web", "-o", "wide")
    assert "NOMINATED NODE" in wide
    assert "qosClass: Guaranteed" in web.ok("get", "pod", "web", "-o", "yaml")
    assert web.ok("get", "pod", "web", "-o", "jsonpath={.status.phase}") == "Running"


def test_describe_tells_the_events(web: Up) -> None:
    text = web.ok("describe", "pod", "web")
    for reason in ("Scheduled", "Pulled", "Created", "Started"):
        assert reason in text
    assert ["QoS", "Class:", "Guaranteed"] in [line.split() for line in text.splitlines()]
    assert "Allocated resources:" in web.ok("describe", "node")


def test_patch_of_the_resize_subresource_changes_the_running_container(web: Up) -> None:
    before = web.get("pod", "web")["status"]["containerStatuses"][0]
    patch = {"spec": {"containers": [{"name": "app", "resources": resources("200m", "96Mi")}]}}
    web.ok("patch", "pod", "web", "--subresource", "resize", "--patch", json.dumps(patch))
    pod = web.pod_when("web", settled, "completed its resize")
    after = pod["status"]["containerStatuses"][0]
    assert after["resources"] == resources("200m", "96Mi")
    assert after["allocatedResources"] == {"cpu": "200m", "memory": "96Mi"}
    assert (after["containerID"], after["restartCount"]) == (before["containerID"], 0)
    events = web.ok("get", "events", "--field-selector", "involvedObject.name=web")
    assert "ResizeStarted" in events
    assert "ResizeCompleted" in events


OLD_CLIENT = "unable to find api field in struct PodStatus for the json field"
"""kubectl up to 1.34 says so, to upstream's 1.36 too, when a pod's status has fields that it was not built with."""


def test_edit_of_the_resize_subresource(cluster: Up, tmp_path: Path) -> None:
    """On a pod that waits for a node, whose status even an old kubectl knows in full."""
    container = {"name": "app", "resources": resources("100m", "64Mi")}
    cluster.apply(manifest("waiting", container, nodeSelector={"no-such": "node"}))
    try:
        edited = _edit(cluster, "waiting", tmp_path)
        assert edited.returncode == 0, edited.stderr
        assert cluster.get("pod", "waiting")["spec"]["containers"][0]["resources"]["limits"]["cpu"] == "150m"
    finally:
        cluster.ok("delete", "pod", "waiting", "--now")


def test_edit_of_a_running_pod(web: Up, tmp_path: Path) -> None:
    edited = _edit(web, "web", tmp_path)
    if edited.returncode and OLD_CLIENT in edited.stderr:
        return
    assert edited.returncode == 0, edited.stderr
    pod = web.pod_when("web", settled, "completed its resize")
    assert pod["status"]["containerStatuses"][0]["resources"]["limits"]["cpu"] == "150m"


def _edit(up: Up, pod: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """`kubectl edit --subresource resize` with an editor that turns 100m into 150m."""
    editor = directory / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/cpu: 100m/cpu: 150m/' \"$1\"\n")
    editor.chmod(0o755)
    environment = {"KUBE_EDITOR": str(editor), "PATH": "/usr/bin:/bin", "HOME": str(directory)}
    command = up.kubectl_command("edit", "pod", pod, "--subresource", "resize")
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_plain_edit_of_resources_is_refused(web: Up) -> None:
    patch = {"spec": {"containers": [{"name": "app", "resources": resources("200m", "64Mi")}]}}
    answer = web.kubectl("patch", "pod", "web", "--patch", json.dumps(patch))
    assert answer.code == 1
    assert "pod updates may not change fields other than" in answer.err


def test_more_than_the_node_has_is_refused(web: Up) -> None:
    patch = {"spec": {"containers": [{"name": "app", "resources": resources("1000", "64Mi")}]}}
    answer = web.kubectl("patch", "pod", "web", "--subresource", "resize", "--patch", json.dumps(patch))
    assert answer.code == 1
    assert "node didn't have enough allocatable resources: cpu, requested: 1000000, allocatable:" in answer.err


# The two streams are two pipes, and containerd reads them after the container has ended: pauses keep the order.
SCRIPT = "for n in 1 2 3 4 5; do echo line $n; done; sleep 0.3; echo last >&2; sleep 0.3"


def test_logs_follow_and_tail(cluster: Up) -> None:
    count = ["sh", "-c", SCRIPT]
    cluster.apply(manifest("talker", {"name": "app", "command": count}, restartPolicy="Never"))
    try:
        cluster.ok("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/talker", "--timeout=30s")
        assert cluster.ok("logs", "talker").splitlines() == [f"line {n}" for n in range(1, 6)] + ["last"]
        assert cluster.ok("logs", "talker", "--tail=2").splitlines() == ["line 5", "last"]
        assert "last" in cluster.ok("logs", "-f", "talker")
    finally:
        cluster.ok("delete", "pod", "talker", "--now")


def test_get_watch_prints_changes(cluster: Up) -> None:
    with subprocess.Popen(
        cluster.kubectl_command("get", "pods", "-w", "--no-headers"), stdout=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        cluster.apply(manifest("seen"))
        statuses = set()
        for line in watching.stdout:
            statuses.add(line.split()[2])
            if "Running" in statuses:
                break
        watching.terminate()
    cluster.ok("delete", "pod", "seen", "--now")
    assert {"Pending", "Running"} <= statuses


def test_environment_and_volumes_reach_the_container(cluster: Up) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf"}, "data": {"greeting": "hello"}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hidden"}, "stringData": {"word": "sesame"}}
    script = (
        "echo $GREETING $CPU $NAME; cat /conf/greeting /hidden/word; echo; echo x > /scratch/file && cat /scratch/file"
    )
    reader = manifest(
        "reader",
        {
            "name": "app",
            "command": ["sh", "-c", script],
            "resources": resources("250m", "32Mi"),
            "env": [
                {"name": "GREETING", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "greeting"}}},
                {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
            ],
            "volumeMounts": [
                {"name": "conf", "mountPath": "/conf"},
                {"name": "hidden", "mountPath": "/hidden"},
                {"name": "scratch", "mountPath": "/scratch"},
            ],
        },
        restartPolicy="Never",
        volumes=[
            {"name": "conf", "configMap": {"name": "conf"}},
            {"name": "hidden", "secret": {"secretName": "hidden"}},
            {"name": "scratch", "emptyDir": {}},
        ],
    )
    cluster.apply(config, secret, reader)
    try:
        cluster.ok("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/reader", "--timeout=30s")
        assert cluster.ok("logs", "reader").split() == ["hello", "250", "reader", "hellosesame", "x"]
    finally:
        cluster.ok("delete", "pod/reader", "configmap/conf", "secret/hidden", "--now")


def test_init_containers_and_sidecars_run_in_order(cluster: Up) -> None:
    cluster.apply(
        manifest(
            "ordered",
            {"name": "app"},
            initContainers=[
                {"name": "side", "image": "busybox:1.36", "command": STAY, "restartPolicy": "Always"},
                {"name": "once", "image": "busybox:1.36", "command": ["true"]},
            ],
        )
    )
    try:
        pod = cluster.pod_when("ordered", running, "ran")
        side, once = pod["status"]["initContainerStatuses"]
        assert "running" in side["state"]
        assert once["state"]["terminated"]["exitCode"] == 0
    finally:
        cluster.ok("delete", "pod", "ordered", "--now")


def test_a_namespace_goes_with_all_that_is_in_it(cluster: Up) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "room"}}
    cluster.ok("create", "-f", "-", stdin=json.dumps(namespace))
    cluster.ok("-n", "room", "create", "configmap", "c", "--from-literal=a=b")
    cluster.ok("-n", "room", "apply", "-f", "-", stdin=json.dumps(manifest("inside")))
    cluster.ok("-n", "room", "wait", "--for=condition=Ready", "pod/inside", "--timeout=30s")
    cluster.ok("delete", "namespace", "room", "--timeout=30s")
    assert cluster.kubectl("get", "namespace", "room").code == 1
