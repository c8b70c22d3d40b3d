"""A real Prometheus beside a cluster: it asks kubelets, by an account's token.

Debian's is built without the discovery of a cluster's nodes, so they are named.
"""

import json
import shutil
import subprocess
import urllib.request
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml

from support.etcd import free_ports
from support.eventually import PATIENCE, eventually
from support.up import Up

UNPACKED = Path(__file__).parents[2] / ".prometheus" / "usr" / "bin" / "prometheus"
JOB = "kubernetes-cadvisor"
SCRAPE_SECONDS = 3
START_SECONDS = 30.0
ACCOUNT = """
apiVersion: v1
kind: Namespace
metadata: {name: monitoring}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: prometheus, namespace: monitoring}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: prometheus}
rules:
- {apiGroups: [""], resources: [nodes/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: prometheus}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: prometheus}
subjects: [{kind: ServiceAccount, name: prometheus, namespace: monitoring}]
"""


@cache
def program() -> str:
    return shutil.which("prometheus") or (str(UNPACKED) if UNPACKED.exists() else "")


def missing_prometheus() -> str:
    """Why no Prometheus can run here; empty when one can."""
    return "" if program() else "no prometheus (scripts/setup-prometheus fetches one)"


def kubelet(status: dict[str, Any]) -> str:
    """Where it listens, as its node tells."""
    (address,) = (address["address"] for address in status["addresses"] if address["type"] == "InternalIP")
    return f"{address}:{status['daemonEndpoints']['kubeletEndpoint']['Port']}"


def configuration(up: Up, folder: Path) -> dict[str, Any]:
    """Its nodes' /metrics/cadvisor, over TLS that the cluster's authority has signed."""
    cluster = yaml.safe_load(up.kubeconfig.read_text())["clusters"][0]["cluster"]
    (folder / "ca.crt").write_bytes(b64decode(cluster["certificate-authority-data"]))
    (folder / "token").write_text(up.ok("create", "token", "prometheus", "--namespace", "monitoring").strip())
    nodes = json.loads(up.ok("get", "nodes", "-o", "json"))["items"]
    job = {
        "job_name": JOB,
        "scheme": "https",
        "metrics_path": "/metrics/cadvisor",
        "scrape_interval": f"{SCRAPE_SECONDS}s",
        "scrape_timeout": f"{SCRAPE_SECONDS}s",
        "authorization": {"credentials_file": str(folder / "token")},
        "tls_config": {"ca_file": str(folder / "ca.crt")},
        "static_configs": [{"targets": [kubelet(node["status"]) for node in nodes]}],
    }
    return {"scrape_configs": [job]}


@contextmanager
def prometheus(up: Up, folder: Path) -> Iterator[str]:
    """Its address, once it answers."""
    up.ok("apply", "-f", "-", stdin=ACCOUNT)
    folder.mkdir()
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(configuration(up, folder)))
    address = f"127.0.0.1:{free_ports(1)[0]}"
    flags = (f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={address}")
    with (folder / "log").open("w") as log:
        process = subprocess.Popen((program(), *flags), stdout=log, stderr=log)
    try:
        _await_ready(process, f"http://{address}", folder / "log")
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(30 * PATIENCE)


def _await_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    def ready() -> bool:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=1):
                return True
        except OSError:
            return False

    eventually(ready, within=START_SECONDS, what="Prometheus is ready", told=log.read_text)


def ask(url: str, query: str) -> list[dict[str, Any]]:
    """The series that an instant query finds."""
    with urllib.request.urlopen(f"{url}/api/v1/query?{urlencode({'query': query})}", timeout=10) as answer:
        found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
    return found
