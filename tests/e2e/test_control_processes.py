"""Controllers and scheduler as processes beside an API server: elected, asked for their health, and handing over."""

import json
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from podfit.client.kubeconfig import load
from podfit.net.tls import client_context
from support.apiserver_processes import ApiProcess
from support.demand import hpa, utilization, workload
from support.eventually import PATIENCE, eventually, logged
from support.kubelet import joined
from support.up import PODFIT, Up, manifest, running, settled

pytestmark = pytest.mark.kubectl
SECONDS = 60.0
LEASES = (f"--leader-elect-lease-duration={15 * PATIENCE:g}s", f"--leader-elect-renew-deadline={10 * PATIENCE:g}s")
"""Whoever cannot renew within the deadline ends, rightly: on full cores that takes as much longer as anything else."""


class Part:
    """`podfit controllers`, `podfit scheduler` or `podfit dns`, which holds no Lease."""

    def __init__(self, api: ApiProcess, log: Path, verb: str, *options: str) -> None:
        self.log = log
        leases = () if verb == "dns" else LEASES
        with log.open("w") as file:
            self.process = subprocess.Popen(
                (PODFIT, verb, "--data", str(api.data), "--secure-port", "0", *leases, *options),
                stdout=file,
                stderr=file,
                text=True,
            )

    def said(self, text: str) -> str:
        """The line with the text, once it was said."""
        return logged(self.log, self.process, text, within=SECONDS)

    def end(self) -> int:
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(30 * PATIENCE)


def _accounted(up: Up, *namespace: str) -> None:
    """Return once pods are let in: their account comes from the controllers, which nothing else here waits for."""
    up.ok("wait", "--for=create", "serviceaccount/default", *namespace, "--timeout=30s")


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiProcess]:
    made = ApiProcess(tmp_path / "api", "admin")
    made.start()
    made.await_ready()
    yield made
    made.stop()


def _ask(url: str, tls: ssl.SSLContext) -> int:
    try:
        with urllib.request.urlopen(url, context=tls, timeout=10 * PATIENCE) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_the_parts_are_a_cluster_and_one_of_two_leads(api: ApiProcess, tmp_path: Path) -> None:
    up = Up(api.data)
    first = Part(api, tmp_path / "first.log", "controllers")
    scheduler = Part(api, tmp_path / "scheduler.log", "scheduler")
    parts = [first, scheduler]
    try:
        first.said("  leads ")
        scheduler.said("  leads ")
        second = Part(api, tmp_path / "second.log", "controllers")
        parts.append(second)
        server = second.said("  serves ").split()[1]
        with joined(tmp_path / "node", api.kubeconfig):
            _accounted(up)
            up.apply(manifest("web"))
            up.pod_when("web", running, "ran")

        def tls(name: str) -> ssl.SSLContext:
            access = load([api.data / f"{name}.kubeconfig"])
            return client_context(certificate=access.certificate, key=access.key, verify=False)

        nobody = client_context(verify=False)
        assert [_ask(f"{server}/{page}", nobody) for page in ("healthz", "livez", "readyz")] == [200] * 3
        assert _ask(f"{server}/metrics", nobody) == 401
        assert _ask(f"{server}/metrics", tls("scheduler")) == 403
        assert _ask(f"{server}/metrics", tls("admin")) == 200

        assert "  leads " not in second.log.read_text()
        assert first.end() == 0
        second.said("  leads ")
        up.ok("create", "namespace", "later")
        _accounted(up, "-n", "later")
        theft = json.dumps({"spec": {"holderIdentity": "thief"}})
        up.ok("patch", "lease", "kube-controller-manager", "-n", "kube-system", "--type=merge", "-p", theft)
        assert second.process.wait(30 * PATIENCE) == 3
        assert "no longer the leader: kube-controller-manager: thief holds it" in second.log.read_text()
    finally:
        for part in parts:
            part.end()


def test_the_hpa_controller_runs_alone(api: ApiProcess, tmp_path: Path) -> None:
    """Beside whoever acts on the rest of the cluster; here nobody does."""
    up, log = Up(api.data), tmp_path / "controllers.log"
    alone = ("--controllers=horizontal-pod-autoscaler", "--horizontal-pod-autoscaler-sync-period=1s")
    controllers = Part(api, log, "controllers", *alone)
    try:
        up.apply(workload("Deployment", "web", 5), hpa(utilization(50), most=3))
        replicas = partial(up.get, "deployment", "web")
        told = "three replicas, the most that its HPA allows"
        eventually(replicas, lambda it: it["spec"]["replicas"] == 3, within=SECONDS, what=told, told=log.read_text)
        assert up.ok("get", "replicasets,pods", "-o", "name") == ""
    finally:
        controllers.end()


def test_controllers_alone_make_room(api: ApiProcess, tmp_path: Path) -> None:
    """As `up --make-room` does: a neighbour of lower priority shrinks for a resize that does not fit."""
    up = Up(api.data)
    controllers = Part(api, tmp_path / "controllers.log", "controllers", "--make-room")
    try:
        controllers.said("  leads ")
        with joined(tmp_path / "node", api.kubeconfig):
            cpus = int(up.get("node", "n1")["status"]["allocatable"]["cpu"])
            tenth = cpus * 100

            def pod(name: str, value: int, tenths: int, **annotations: str) -> tuple[dict[str, Any], dict[str, Any]]:
                size = {"requests": {"cpu": f"{tenths * tenth}m"}}
                made = manifest(name, {"name": "app", "resources": size}, priorityClassName=name, nodeName="n1")
                klass = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": value}
                return klass | {"metadata": {"name": name}}, made | {
                    "metadata": {"name": name, "annotations": annotations}
                }

            minimum = {"podfit.dev/minimum": f"cpu={tenth}m"}
            _accounted(up)
            up.apply(*pod("high", 1000, 2), *pod("low", 10, 6, **minimum))
            for name in ("high", "low"):
                up.pod_when(name, running, "ran")
            size = {"containers": [{"name": "app", "resources": {"requests": {"cpu": f"{5 * tenth}m"}}}]}
            up.ok("patch", "pod", "high", "--subresource=resize", "--patch", json.dumps({"spec": size}))

            def grown(pod: dict[str, Any]) -> bool:
                allocated = pod["status"]["containerStatuses"][0]["allocatedResources"]["cpu"]
                return settled(pod) and allocated in (f"{5 * tenth}m", f"{5 * tenth // 1000}")

            up.pod_when("high", grown, "grew")
            assert "GaveRoom" in up.ok("get", "events", "--field-selector", "involvedObject.name=low")
    finally:
        assert controllers.end() == 0
