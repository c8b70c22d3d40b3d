"""A metrics server that knows one pod."""

import json
from typing import Any

from podfit.net.wire import Request, Response

GROUP = "metrics.k8s.io"
PATH = f"/apis/{GROUP}/v1beta1"
PODS = f"{PATH}/namespaces/default/pods"
WHEN = {"timestamp": "2026-01-01T00:00:00Z", "window": "15s"}
POD = {
    "metadata": {"name": "web", "namespace": "default"},
    **WHEN,
    "containers": [{"name": "app", "usage": {"cpu": "123m", "memory": "64Mi"}}],
}
KINDS = [
    {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]},
    {"name": "nodes", "singularName": "", "namespaced": False, "kind": "NodeMetrics", "verbs": ["get", "list"]},
]
ANSWERS: dict[str, dict[str, Any]] = {
    PATH: {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/v1beta1", "resources": KINDS},
    PODS: {"kind": "PodMetricsList", "apiVersion": f"{GROUP}/v1beta1", "metadata": {}, "items": [POD]},
}


async def metrics(request: Request) -> Response:
    """A metrics server that knows one pod."""
    found = ANSWERS.get(request.path)
    body = json.dumps(found).encode() if found else b"404 page not found"
    return Response(200 if found else 404, {"content-type": "application/json"}, body)
