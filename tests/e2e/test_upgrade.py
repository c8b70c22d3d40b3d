"""A cluster made by an earlier podfit comes up under this one, and goes back, with everything that it had.

The earlier one is built from the repository's own history, with the libraries of this one.
"""

import json
import os
import signal
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from podfit.process.data.release import described
from support.eventually import eventually
from support.history import program
from support.up import IMAGE, STAY, Up, manifest, resources, running

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node")]

EARLIER = "d125676c"
PODS = ("single", "db-0", "db-1")
LISTED = "pods,statefulsets,persistentvolumeclaims,persistentvolumes,configmaps,services,vpa,vpacheckpoint"

STATEFUL: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "db"},
    "spec": {
        "serviceName": "db",
        "replicas": 2,
        "selector": {"matchLabels": {"app": "db"}},
        "template": {
            "metadata": {"labels": {"app": "db"}},
            "spec": {
                "hostNetwork": True,
                "terminationGracePeriodSeconds": 1,
                "containers": [
                    {
                        "name": "app",
                        "image": IMAGE,
                        "command": STAY,
                        "resources": resources("100m", "32Mi"),
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    }
                ],
            },
        },
        "volumeClaimTemplates": [
            {
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
            }
        ],
    },
}
AUTOSCALER: dict[str, Any] = {
    "apiVersion": "autoscaling.k8s.io/v1",
    "kind": "VerticalPodAutoscaler",
    "metadata": {"name": "db"},
    "spec": {
        "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
        "updatePolicy": {"updateMode": "Off"},
    },
}
CHECKPOINT: dict[str, Any] = {
    "apiVersion": "autoscaling.k8s.io/v1",
    "kind": "VerticalPodAutoscalerCheckpoint",
    "metadata": {"name": "db-app"},
    "spec": {"vpaObjectName": "db", "containerName": "app"},
    "status": {
        "version": "v3",
        "cpuHistogram": {
            "referenceTimestamp": "2026-11-01T00:00:00Z",
            "bucketWeights": {"3": 10000},
            "totalWeight": 9.5,
        },
        "memoryHistogram": {
            "referenceTimestamp": "2026-11-02T00:00:00Z",
            "bucketWeights": {"2": 10000},
            "totalWeight": 2,
        },
        "firstSampleStart": "2026-11-01T00:00:00Z",
        "lastSampleStart": "2026-11-01T12:00:00Z",
        "totalSamplesCount": 700,
        "lastUpdateTime": "2026-11-01T12:00:00Z",
    },
}


def objects(up: Up) -> dict[str, Any]:
    """Everything that must not be lost, by UID: what was asked for, and a claim's and a checkpoint's status."""
    found = json.loads(up.ok("get", LISTED, "-o", "json"))["items"]
    return {item["metadata"]["uid"]: (item["kind"], item["metadata"]["name"], item.get("spec")) for item in found}


def containers(up: Up) -> dict[str, tuple[str, int]]:
    """Ids and restarts."""
    statuses = {name: up.get("pod", name)["status"]["containerStatuses"][0] for name in PODS}
    return {name: (status["containerID"], status["restartCount"]) for name, status in statuses.items()}


def make(up: Up) -> None:
    up.apply(
        manifest("single", {"name": "app", "resources": resources("100m", "32Mi")}), STATEFUL, AUTOSCALER, CHECKPOINT
    )
    for name in PODS:
        eventually(partial(up.kubectl, "get", "pod", name), lambda answer: answer.code == 0, within=30, what=name)
        up.pod_when(name, running, "runs")
    up.ok("exec", "db-0", "--", "sh", "-c", "echo kept > /data/file")
    resize(up, "150m")


def resize(up: Up, cpu: str) -> None:
    patch = {
        "spec": {"containers": [{"name": "app", "resources": {name: {"cpu": cpu} for name in ("requests", "limits")}}]}
    }
    up.ok("patch", "pod", "single", "--subresource", "resize", "--patch", json.dumps(patch))
    actual = ("containerStatuses", "resources", "limits", "cpu")
    up.pod_when("single", lambda pod: pod["status"][actual[0]][0][actual[1]][actual[2]][actual[3]] == cpu, f"has {cpu}")


def leave(up: Up, number: signal.Signals = signal.SIGTERM) -> None:
    """The process ends, and the containers go on."""
    pid = up.state()["pid"]
    os.kill(pid, number)
    eventually(lambda: Path(f"/proc/{pid}/fd").exists(), lambda there: not there, within=30, what="the end of podfit")


def same(up: Up, objects_before: dict[str, Any], containers_before: dict[str, tuple[str, int]]) -> None:
    for name in PODS:
        up.pod_when(name, running, "runs")
    assert containers(up) == containers_before
    now = objects(up)
    assert {uid: now.get(uid) for uid in objects_before} == objects_before
    assert up.ok("exec", "db-0", "--", "cat", "/data/file") == "kept\n"
    samples = up.ok("get", "vpacheckpoint", "db-app", "-o", "jsonpath={.status.totalSamplesCount}")
    assert int(samples) >= 700


@pytest.mark.timeout(240)
def test_a_cluster_of_an_earlier_version_comes_up_and_goes_back(cluster_dir: Up, tmp_path: Path) -> None:
    earlier = replace(cluster_dir, program=program(EARLIER, tmp_path / "earlier"))
    earlier.start()
    make(earlier)
    before = objects(earlier), containers(earlier)
    leave(earlier)
    cluster_dir.start()
    same(cluster_dir, *before)
    assert json.loads((cluster_dir.root / "version.json").read_text())["written_by"] == described()
    resize(cluster_dir, "120m")
    before = objects(cluster_dir), containers(cluster_dir)
    leave(cluster_dir)
    went_back(earlier, before)


def went_back(earlier: Up, before: tuple[dict[str, Any], dict[str, tuple[str, int]]]) -> None:
    """The earlier version goes on with the directory."""
    earlier.start()
    same(earlier, *before)
    resize(earlier, "140m")


@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_upgrades_are_killed_at_any_moment(cluster_dir: Up, tmp_path: Path, figure: Any) -> None:
    """20 upgrades from d125676c, each killed (SIGKILL) at a random moment of its start and started again; then back."""
    random = Random(26)
    earlier = replace(cluster_dir, program=program(EARLIER, tmp_path / "earlier"))
    earlier.start()
    make(earlier)
    before = objects(earlier), containers(earlier)
    for _ in range(20):
        leave(earlier)
        command = [cluster_dir.program, "up", "--data", str(cluster_dir.root), "--port", "0", "--eviction-hard", ""]
        begun = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            begun.wait(random.uniform(0.1, 3.0))
        except subprocess.TimeoutExpired:
            begun.kill()
            begun.wait()
        cluster_dir.start()
        same(cluster_dir, *before)
        leave(cluster_dir, random.choice((signal.SIGTERM, signal.SIGKILL)))
        earlier.start()
        same(earlier, *before)
    figure("upgrades killed and returns", 20)
