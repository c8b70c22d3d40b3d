"""A demand on a workload of a simulated cluster, which its ready pods share, as behind a service; time moves as the HPA
looks."""

from collections.abc import Callable
from typing import Any

from podfit.testing.cluster import Cluster

PERIOD = 15.0
"""Seconds between two looks of the HPA controller."""
Document = dict[str, Any]


class Demand:
    """Of pods whose names begin with `name`, or of one container of each; CPU in millicores and memory in MiB, all of
    them together."""

    def __init__(self, cluster: Cluster, name: str = "web", *, container: str = "") -> None:
        self._cluster, self.name = cluster, name
        self.milli, self.mebibytes, self._sharing = 0.0, 0.0, 1
        self.course: list[int] = []
        """How many pods were ready, whenever that changed."""
        cluster.load(
            name, cpu=lambda _: self.milli / 1000 / self._sharing, memory=lambda _: self._memory(), container=container
        )

    def _memory(self) -> float:
        return self.mebibytes * 2**20 / self._sharing

    def ready(self) -> int:
        pods = [pod for pod in self._cluster.pods() if pod.name.startswith(f"{self.name}-")]
        return sum(pod.ready for pod in pods)

    def look(self) -> None:
        """A period passes, and the demand is shared by who is ready then."""
        self._cluster.clock.advance(PERIOD)
        ready = self.ready()
        self._sharing = max(ready, 1)
        if not self.course or self.course[-1] != ready:
            self.course.append(ready)

    def until(self, happened: Callable[[], bool], *, minutes: float) -> float:
        """Seconds until it is so. Raises AssertionError when it does not happen in time."""
        for number in range(int(minutes * 60 / PERIOD)):
            if happened():
                return number * PERIOD
            self.look()
        assert happened(), f"not within {minutes:g} minutes; ready were {self.course}"
        return minutes * 60

    def comes_to(self, replicas: int, *, minutes: float = 10) -> float:
        return self.until(lambda: self.ready() == replicas, minutes=minutes)

    def stays(self, *, minutes: float) -> None:
        """Raises AssertionError when the number of ready pods changes."""
        before = self.ready()
        for _ in range(int(minutes * 60 / PERIOD)):
            self.look()
            assert self.ready() == before, self.course


def workload(
    kind: str = "Deployment", name: str = "web", replicas: int = 1, *containers: Document, **pod: Any
) -> Document:
    """Of one container `app` that requests 100m, where no container is given."""
    labels = {"app": name}
    app: Document = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}
    spec = {"terminationGracePeriodSeconds": 1, "containers": list(containers) or [app], **pod}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def hpa(*metrics: Document, kind: str = "Deployment", most: int = 5, mode: str = "", **spec: Any) -> Document:
    """On 50 % of the requested CPU where no metric is given."""
    version = "apps/v1" if kind in ("Deployment", "ReplicaSet", "StatefulSet") else spec.pop("version")
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "annotations": {"podfit.dev/scale": mode} if mode else {}},
        "spec": {
            "scaleTargetRef": {"apiVersion": version, "kind": kind, "name": "web"},
            "minReplicas": 1,
            "maxReplicas": most,
            "metrics": list(metrics) or [utilization(50)],
            **spec,
        },
    }


def utilization(percent: int, resource: str = "cpu", container: str = "") -> Document:
    return _metric(resource, container, {"type": "Utilization", "averageUtilization": percent})


def average(amount: str, resource: str = "cpu", container: str = "") -> Document:
    return _metric(resource, container, {"type": "AverageValue", "averageValue": amount})


def _metric(resource: str, container: str, target: Document) -> Document:
    if container:
        return {
            "type": "ContainerResource",
            "containerResource": {"name": resource, "container": container, "target": target},
        }
    return {"type": "Resource", "resource": {"name": resource, "target": target}}
