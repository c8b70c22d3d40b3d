"""What the benches send, to the server of any version."""

import json

PODS = "/api/v1/namespaces/default/pods"
STRATEGIC = "application/strategic-merge-patch+json"


def pod(name: str, *, node: str = "n1") -> bytes:
    """About 2.4 KB when it is stored, as a pod of a Deployment is."""
    requests = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}}
    containers = [
        {
            "name": name,
            "image": f"registry.example/{name}:1.2.3",
            "command": ["/bin/serve", "--port=8080"],
            "env": [{"name": f"SETTING_{number}", "value": f"value-{number}"} for number in range(4)],
            "ports": [{"containerPort": 8080, "name": "http"}],
            "resources": requests,
        }
        for name in ("app",)
    ]
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "labels": {"app": "web", "pod-template-hash": "5d89bdb4f7"},
                "annotations": {"example.org/checksum": "0123456789abcdef" * 4},
            },
            "spec": {"nodeName": node, "containers": containers, "terminationGracePeriodSeconds": 30},
        }
    ).encode()


def resize(number: int) -> bytes:
    wanted = {"requests": {"cpu": f"{100 + number % 50}m"}}
    return json.dumps({"spec": {"containers": [{"name": "app", "resources": wanted}]}}).encode()
