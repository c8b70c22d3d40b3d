"""A cluster's life from a seed, and every write of it: what two runs of one seed have in common.

    python -m support.seeded_script SEED DIRECTORY MINUTES [vpa]

writes it to DIRECTORY/writes. The port on which the API listens and the authority's certificate are the machine's own,
and are left out.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from podfit.process.control.stores import passing_store
from podfit.store.protocol import Change, Store
from podfit.testing.cluster import Cluster

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----")


class Recorder:
    """`store` opens one whose changes are kept."""

    def __init__(self) -> None:
        self.changes: list[Change] = []

    def store(self) -> Store:
        store = passing_store()
        watch = store.watch("", after=store.revision)

        def take() -> None:
            try:
                while (batch := watch.take()) is not None:
                    self.changes.extend(batch)
            except StopAsyncIteration:
                """The store is closed."""

        watch.on_news(take)
        return store


def writes(seed: int, directory: Path, *, minutes: float, vpa: bool = False) -> list[bytes]:
    """`REVISION PUT|DELETE KEY OBJECT` of each, in order. The script is followed for so many minutes of its clock."""
    recorder = Recorder()
    cluster = Cluster(directory, nodes=3, vpa=vpa, seed=seed, store=recorder.store)
    try:
        _live(cluster, minutes, vpa)
    finally:
        cluster.close()
    port = cluster.url.rpartition(":")[2].encode()
    return [_CERTIFICATE.sub(b"CERTIFICATE", line).replace(port, b"PORT") for line in _lines(recorder.changes)]


def _lines(changes: Sequence[Change]) -> list[bytes]:
    return [
        b"%d %s %s %s"
        % (record.mod_revision, b"DELETE" if change.deleted else b"PUT", record.key.encode(), record.value)
        for change in changes
        for record in (change.record,)
    ]


def _live(cluster: Cluster, minutes: float, vpa: bool) -> None:
    """Rollouts, resizes, a node that is lost and comes back, and a namespace that goes."""
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    for namespace in ("default", "team"):
        cluster.apply(*_workloads(1), *_around(), namespace=namespace)
    if vpa:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        spec = {"targetRef": target, "updatePolicy": {"updateMode": "InPlaceOrRecreate"}}
        cluster.apply(_object("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", "web", spec))
    cluster.load("web", cpu=lambda seconds: 0.05 + 0.0001 * seconds, memory="40Mi")
    cluster.clock.advance(minutes=1.5)
    cluster.apply(*_workloads(2))
    for pod in [pod for pod in cluster.pods() if pod.name.startswith("web-")][:3]:
        cluster.resize(pod.name, app={"requests": {"cpu": "300m"}})
    cluster.clock.advance(minutes=0.5)
    cluster.lose_node("simulated-2")
    cluster.clock.advance(minutes=7)
    cluster.restore_node("simulated-2")
    cluster.clock.advance(minutes=1)
    cluster.delete("team", kind="Namespace")
    cluster.clock.advance(minutes=minutes - 10)


def _workloads(version: int) -> tuple[dict[str, Any], ...]:
    def of(kind: str, name: str, **more: Any) -> dict[str, Any]:
        amounts = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}}
        container = {"name": "app", "image": f"{name}:{version}", "resources": amounts}
        template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
        spec = {"selector": {"matchLabels": {"app": name}}, "template": template} | more
        return _object("apps/v1", kind, name, spec)

    return (
        of("Deployment", "web", replicas=4 + version),
        of("StatefulSet", "db", replicas=2, serviceName="db"),
        of("DaemonSet", "agent"),
    )


def _around() -> tuple[dict[str, Any], ...]:
    def job(seconds: int, code: int, restart: str) -> dict[str, Any]:
        command = ["sh", "-c", f"sleep {seconds}; exit {code}"]
        amounts = {"requests": {"cpu": "50m"}, "limits": {"memory": "32Mi"}}
        containers = [{"name": "app", "image": "job:1", "command": command, "resources": amounts}]
        return {"spec": {"restartPolicy": restart, "containers": containers}}

    selector = {"matchLabels": {"app": "web"}}
    whole = {"completions": 3, "parallelism": 2, "ttlSecondsAfterFinished": 60, "template": job(7, 0, "Never")}
    return (
        _object("v1", "Service", "web", {"type": "NodePort", "selector": {"app": "web"}, "ports": [{"port": 80}]}),
        _object("policy/v1", "PodDisruptionBudget", "web", {"minAvailable": 2, "selector": selector}),
        _object("v1", "ResourceQuota", "all", {"hard": {"pods": "40", "requests.cpu": "10", "limits.memory": "20Gi"}}),
        _object("batch/v1", "Job", "once", whole),
        _object(
            "batch/v1",
            "CronJob",
            "often",
            {"schedule": "*/3 * * * *", "jobTemplate": {"spec": {"template": job(3, 1, "OnFailure")}}},
        ),
    )


def _object(api_version: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


if __name__ == "__main__":
    seed, directory, minutes = int(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
    found = writes(seed, directory, minutes=minutes, vpa=sys.argv[4:] == ["vpa"])
    (directory / "writes").write_bytes(b"\n".join(found))
