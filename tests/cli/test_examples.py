"""The examples of --help do what they say, on a cluster that has what they name."""

import shlex
import subprocess
from pathlib import Path

import pytest

from podfit.cli.examples import EXAMPLES
from podfit.testing.cluster import Cluster
from support.eventually import PATIENCE
from support.terminal import podfit

OBJECTS = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
  - {name: app, image: "web:1", resources: {requests: {cpu: 200m, memory: 64Mi}, limits: {cpu: 400m, memory: 512Mi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: app, image: "shop:1", resources: {requests: {cpu: 100m}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: shop-1, labels: {app: shop}}
spec: {containers: [{name: app, image: "shop:1", resources: {requests: {cpu: 100m}}}]}
"""
QUESTIONS = [
    (example.what, example.command)
    for verb in ("plan", "resize", "why", "top", "allocation", "export")
    for example in EXAMPLES[verb]
]


def test_examples_run(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.apply(OBJECTS)
    (tmp_path / "pods.yaml").write_text(OBJECTS.partition("---")[0])
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    told = {}
    for what, command in QUESTIONS:
        words = shlex.split(command)[1:]
        done = subprocess.run(
            podfit(*words), cwd=tmp_path, capture_output=True, text=True, timeout=60 * PATIENCE, check=False
        )
        cluster.settle()
        told[what] = (done.returncode, done.stdout + done.stderr)
    drifted, kept = "Does what runs differ from a manifest?", "Could a node go, and what keeps it?"
    assert {what: said for what, said in told.items() if said[0] != 0 and what not in (drifted, kept)} == {}
    assert "node simulated-1  not removable" in told[kept][1]
    assert "with the sizes of pods.yaml" in told[drifted][1]
    assert "web" in told["The pods of the namespace."][1]
