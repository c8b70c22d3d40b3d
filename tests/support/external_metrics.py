"""An adapter for external metrics, behind an APIService of a simulated cluster. It answers in the cluster's process, as
its metrics server does: time does not wait for sockets."""

import json
from typing import Any

from podfit.net.wire import Request, Response
from podfit.testing.cluster import Cluster

GROUP, VERSION, NAME = "external.metrics.k8s.io", "v1beta1", "external-metrics-server"
Document = dict[str, Any]


class ExternalMetrics:
    """`values` are those of the metrics that there are, by name, the same in every namespace."""

    def __init__(self, **values: int) -> None:
        self.values = values

    async def answer(self, request: Request) -> Response:
        *namespace, name = request.path.removeprefix(f"/apis/{GROUP}/{VERSION}").split("/")
        if not name:
            return _said(200, {"kind": "APIResourceList", "groupVersion": f"{GROUP}/{VERSION}", "resources": []})
        if name not in self.values or namespace[1:2] != ["namespaces"]:
            problem = f"the server could not find the metric {name}"
            return _said(404, {"kind": "Status", "status": "Failure", "message": problem, "code": 404})
        item = {"metricName": name, "metricLabels": {}, "timestamp": "2026-01-01T00:00:00Z"}
        items = [{**item, "value": str(self.values[name])}]
        return _said(200, {"kind": "ExternalMetricValueList", "apiVersion": f"{GROUP}/{VERSION}", "items": items})


def serve(cluster: Cluster, metrics: ExternalMetrics) -> None:
    """From now on the cluster's API has the group, and asks these of it."""
    spec = {
        "group": GROUP,
        "version": VERSION,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "service": {"namespace": "default", "name": NAME},
        "insecureSkipTLSVerify": True,
    }
    cluster._composed._services.offer("default", NAME, metrics.answer)
    registered = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "spec": spec}
    cluster.apply({**registered, "metadata": {"name": f"{VERSION}.{GROUP}"}})


def _said(code: int, body: Document) -> Response:
    return Response(code, {"content-type": "application/json"}, json.dumps(body).encode())
