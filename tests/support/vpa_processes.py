"""The VPA's three processes beside `podfit up --no-vpa`, at intervals of two seconds."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from support.eventually import PATIENCE, logged
from support.up import IMAGE, PODFIT, Up

GATES = ("--feature-gates", "CPUStartupBoost=true,InPlace=true,PerVPAConfig=true")
"""As in `podfit up`."""
DEFINITIONS = Path(__file__).parents[2] / "deploy" / "vpa" / "crds.yaml"
SMALL = ("--pod-recommendation-min-memory-mb", "8", "--pod-recommendation-min-cpu-millicores", "5")
"""Floors under what these workloads use."""
SURE = ("--confidence-interval-cpu", "10s", "--confidence-interval-memory", "10s")
SOON = ("--updater-interval", "2s", "--in-recommendation-bounds-eviction-lifetime-threshold", "1s")
START_SECONDS = 30.0
RECOMMENDER = ("--recommender-interval", "2s", *SMALL, *SURE)


@contextmanager
def vpa_processes(up: Up, *, recommender: Sequence[str] = RECOMMENDER) -> Iterator[None]:
    """In a cluster that was started with `--no-vpa`; each of them works when this begins."""
    up.ok("apply", "-f", str(DEFINITIONS))
    up.ok("wait", "--for=condition=Established", "crd/verticalpodautoscalers.autoscaling.k8s.io", "--timeout=30s")
    by_address = ("--register-by-url", "--webhook-address", "127.0.0.1", "--port", "18943")
    flags = {"admission-controller": by_address, "recommender": recommender, "updater": SOON}
    with ExitStack() as processes:
        for name, own in flags.items():
            processes.enter_context(vpa_process(up, name, own))
        yield


@contextmanager
def vpa_process(up: Up, name: str, flags: Sequence[str]) -> Iterator[None]:
    """Its log, at level info, is among `logs`; one of a name at a time."""
    command = (PODFIT, "vpa", name, "--kubeconfig", str(up.kubeconfig), "--secure-port", "0", "-v", *GATES, *flags)
    path = up.root / f"vpa-{name}.log"
    with path.open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        logged(path, process, "  leads ", "  works ", within=START_SECONDS)
        yield
    finally:
        process.terminate()
        assert process.wait(30 * PATIENCE) == 0, logs(up)


def logs(up: Up) -> str:
    return up.log() + "".join(f"--- {log.name}\n{log.read_text()[-3000:]}" for log in sorted(up.root.glob("vpa-*.log")))


def deployment(name: str, script: str, resources: dict[str, Any], *, replicas: int = 1) -> dict[str, Any]:
    """As a user writes it; `script` is the shell's, in one container."""
    container = {"name": "app", "image": IMAGE, "command": ["sh", "-c", script], "resources": resources}
    pod = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def vpa(name: str, kind: str = "Deployment", **spec: Any) -> dict[str, Any]:
    """For the workload of that name."""
    target = {"apiVersion": "apps/v1", "kind": kind, "name": name}
    whole = {"targetRef": target, **spec}
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": name},
        "spec": whole,
    }
