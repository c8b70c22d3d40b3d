"""An HPA on a real node: containers that burn CPU, what the kernel counted of it, replicas that come and go."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.eventually import eventually
from support.up import PODFIT, Up, run

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node"), pytest.mark.timeout(300)]
FLAGS = (
    "--horizontal-pod-autoscaler-sync-period=2s",
    "--horizontal-pod-autoscaler-downscale-stabilization=10s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=1s",
)
WITHIN = 100.0
"""Seconds; usage is measured every 15."""


def manifest(load: Path) -> str:
    """Each pod uses all of its limit while the file `load/on` is there."""
    burn = "trap 'exit 0' TERM; while :; do if [ -e /load/on ]; then :; else sleep 1; fi; done"
    container: dict[str, Any] = {
        "name": "app",
        "image": "busybox:1.36",
        "command": ["sh", "-c", burn],
        "resources": {"requests": {"cpu": "20m", "memory": "16Mi"}, "limits": {"cpu": "60m"}},
        "volumeMounts": [{"name": "load", "mountPath": "/load"}],
    }
    volumes = [{"name": "load", "hostPath": {"path": str(load)}}]
    pod = {"hostNetwork": True, "terminationGracePeriodSeconds": 1, "containers": [container], "volumes": volumes}
    labels = {"app": "busy"}
    template = {"metadata": {"labels": labels}, "spec": pod}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "busy"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }
    target = {"type": "Utilization", "averageUtilization": 80}
    hpa = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "busy"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "busy"},
            "minReplicas": 1,
            "maxReplicas": 4,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [deployment, hpa]})


def ready(up: Up) -> int:
    """Replicas that run."""
    return int(json.loads(up.ok("get", "deployment", "busy", "-o", "json"))["status"].get("readyReplicas", 0))


def test_hpa_adds_replicas_under_real_load_and_takes_them_away(cluster_dir: Up, tmp_path: Path) -> None:
    up, load = cluster_dir, tmp_path / "load"
    load.mkdir()
    (load / "on").touch()
    up.start(*FLAGS)
    up.ok("apply", "-f", "-", stdin=manifest(load))
    for wanted in (4, 1):
        eventually(
            partial(ready, up), wanted.__eq__, within=WITHIN, what=f"{wanted} replicas run", told=up.log, every=1
        )
        why = run(PODFIT, "why", "hpa/busy", "--kubeconfig", str(up.kubeconfig))
        assert "hpa busy  for deployment/busy, 1 to 4 replicas" in why.out, why.err
        (load / "on").unlink(missing_ok=True)
    events = json.loads(up.ok("get", "events", "-o", "json"))["items"]
    told = [event["message"] for event in events if event["reason"] == "SuccessfulRescale"]
    assert any("New size: 4; reason: cpu resource utilization" in text for text in told), told
    assert any("reason: All metrics below target" in text for text in told), told
