"""HPAs on a real node: containers that burn CPU, what the kernel counted of it, replicas that come and go, pods that
grow before replicas are added, and a StatefulSet beside them that its VPA sizes."""

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.eventually import eventually
from support.up import PODFIT, Up, run
from support.vpa_processes import logs, vpa, vpa_processes

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node"), pytest.mark.timeout(300)]
FLAGS = (
    "--no-vpa",
    "--horizontal-pod-autoscaler-sync-period=2s",
    "--horizontal-pod-autoscaler-downscale-stabilization=2s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=1s",
)
MINUTES = 30
WITHIN = 100.0
"""Seconds; usage is measured every 15."""
FEW, MOST = 20, 40
"""Millicores of a pod that grows first: at its start, and at most."""
Document = dict[str, Any]


def workload(kind: str, name: str, load: Path, requests: dict[str, str], most: str) -> Document:
    """One replica that uses all of its limit of CPU while the file `load/on` is there, and next to nothing otherwise:
    looking for it makes no process."""
    burn = (
        "trap 'exit 0' TERM; mkfifo /tmp/never; exec 3<>/tmp/never; "
        "while :; do if [ -e /load/on ]; then :; else read -r -t 1 _ <&3; fi; done"
    )
    container = {
        "name": "app",
        "image": "busybox:1.36",
        "command": ["sh", "-c", burn],
        "resources": {"requests": requests, "limits": {"cpu": most}},
        "volumeMounts": [{"name": "load", "mountPath": "/load"}],
    }
    volumes = [{"name": "load", "hostPath": {"path": str(load)}}]
    pod = {"hostNetwork": True, "terminationGracePeriodSeconds": 1, "containers": [container], "volumes": volumes}
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    spec: Document = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    if kind == "StatefulSet":
        spec["serviceName"] = name
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def hpa(name: str, most: int, percent: int, mode: str = "") -> Document:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "annotations": {"podfit.dev/scale": mode} if mode else {}},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": 1,
            "maxReplicas": most,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }


def sized(name: str, kind: str, **policy: Any) -> Document:
    policies = [{"containerName": "*", "controlledValues": "RequestsOnly", **policy}]
    mode = {"updateMode": "InPlaceOrRecreate", "minReplicas": 1}
    return vpa(name, kind, updatePolicy=mode, resourcePolicy={"containerPolicies": policies})


@pytest.fixture
def up(cluster_dir: Up) -> Iterator[Up]:
    cluster_dir.start(*FLAGS)
    with vpa_processes(cluster_dir):
        yield cluster_dir


class Scene:
    """Three workloads: `busy` has replicas added, `first` grows before that, `kept` is sized by its VPA alone."""

    def __init__(self, up: Up, load: Path) -> None:
        self._up, self._load = up, load
        (load / "never").mkdir(parents=True)
        few = {"cpu": f"{FEW}m", "memory": "16Mi"}
        up.apply(
            workload("Deployment", "busy", load, few, "60m"),
            hpa("busy", 4, 50),
            workload("Deployment", "first", load, few, "60m"),
            sized("first", "Deployment", controlledResources=["cpu"], maxAllowed={"cpu": f"{MOST}m"}),
            hpa("first", 2, 50, "vertical-first"),
            workload("StatefulSet", "kept", load / "never", {"cpu": "300m", "memory": "200Mi"}, "300m"),
            sized("kept", "StatefulSet"),
        )
        for name in ("busy", "first", "kept"):
            self.until(partial(self.ready, name), (1).__eq__, f"the pod of {name} runs")

    def pods(self, name: str) -> list[Document]:
        found = json.loads(self._up.ok("get", "pods", "-l", f"app={name}", "-o", "json"))["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def ready(self, name: str) -> int:
        statuses = [one for pod in self.pods(name) for one in pod["status"].get("containerStatuses", [])]
        assert all(status["restartCount"] == 0 for status in statuses)
        return sum(status["ready"] for status in statuses)

    def sizes(self, name: str) -> list[int]:
        """Millicores that the node enforces for each pod."""
        statuses = [one for pod in self.pods(name) for one in pod["status"].get("containerStatuses", [])]
        return [int(one["resources"]["requests"]["cpu"].removesuffix("m")) for one in statuses if "resources" in one]

    def until(self, look: Callable[[], Any], holds: Callable[[Any], bool], what: str) -> None:
        eventually(look, holds, within=WITHIN, what=what, told=self.told, every=1)

    def told(self) -> str:
        """What the cluster says of all of it."""
        verbs = ("why", "hpa/first"), ("why", "vpa/first"), ("why", "hpa/busy")
        answers = [run(PODFIT, *verb, "--kubeconfig", str(self._up.kubeconfig)).out for verb in verbs]
        return "\n".join((logs(self._up), self._up.ok("get", "hpa,vpa,pods", "-o", "wide"), *answers))

    def first_grows(self) -> None:
        """As long as it is not as large as it may be, it is alone."""

        def look() -> tuple[list[int], int]:
            deployment = self._up.get("deployment", "first")
            sizes = self.sizes("first")
            assert deployment["spec"]["replicas"] == 1 or max(sizes) == MOST, (sizes, deployment["spec"]["replicas"])
            return sizes, deployment["spec"]["replicas"]

        self.until(look, lambda seen: max(seen[0], default=0) == MOST and seen[1] == 2, "it has grown, then replicas")

    def wave(self) -> None:
        """Load, until all has happened that it makes; then none."""
        kept = {pod["metadata"]["uid"] for pod in self.pods("kept")}
        (self._load / "on").touch()
        self.first_grows()
        self.until(partial(self.ready, "busy"), (4).__eq__, "4 replicas run")
        for name in ("busy", "first"):
            why = run(PODFIT, "why", f"hpa/{name}", "--kubeconfig", str(self._up.kubeconfig))
            assert f"hpa {name}  for deployment/{name}, 1 to" in why.out, why.err
        (self._load / "on").unlink()
        self.until(partial(self.ready, "busy"), (1).__eq__, "1 replica runs")
        self.until(lambda: self.sizes("first"), lambda sizes: len(sizes) == 1 and sizes[0] < MOST, "it gives back")
        assert {pod["metadata"]["uid"] for pod in self.pods("kept")} == kept
        assert self.ready("kept") == 1


def test_hpa_scales_under_real_load_and_pods_grow_first_where_they_may(up: Up, tmp_path: Path) -> None:
    scene = Scene(up, tmp_path / "load")
    scene.wave()
    assert scene.sizes("kept")[0] < 300
    events = json.loads(up.ok("get", "events", "-o", "json"))["items"]
    told = [event["message"] for event in events if event["reason"] == "SuccessfulRescale"]
    assert any("New size: 4; reason: cpu resource utilization" in text for text in told), told
    assert any("reason: All metrics below target" in text for text in told), told
    why = run(PODFIT, "why", "vpa/first", "--kubeconfig", str(up.kubeconfig))
    assert "which HorizontalPodAutoscaler first asks for" in why.out, why.out


@pytest.mark.campaign
@pytest.mark.timeout(2700)
def test_hpa_scales_under_real_load_for_thirty_minutes(
    up: Up, tmp_path: Path, figure: Callable[[str, object], None]
) -> None:
    """Load comes and goes for 30 minutes on a node with containerd: each time a Deployment goes from 1 to 4 replicas
    and back, another grows in place before it has a second replica and gives back, and the StatefulSet beside them,
    sized by its VPA, keeps its pod; no container restarts.
    """
    scene, end, waves = Scene(up, tmp_path / "load"), time.monotonic() + MINUTES * 60, 0
    while time.monotonic() < end:
        scene.wave()
        waves += 1
    figure("on cgroup v", 2 if Path("/sys/fs/cgroup/cgroup.controllers").exists() else 1)
    figure("waves", waves)
    assert scene.sizes("kept")[0] < 300
    assert waves > 1
