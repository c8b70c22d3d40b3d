"""Objects as people write them, for tests that hand them to kubectl."""

from pathlib import Path
from typing import Any

import yaml

WHOLE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("whole_pod.yaml").read_text())
"""The spec of a pod that has something of everything: volumes of many kinds, probes, affinity, security."""


def made(version: str, kind: str, name: str, *, labels: dict[str, str] | None = None, **members: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": labels or {}}, **members}


def deployment(name: str, image: str = "i", replicas: int = 2) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return made("apps/v1", "Deployment", name, labels=labels, spec=spec)


def revision(owner: dict[str, Any], number: int, *, image: str, cause: str) -> dict[str, Any]:
    """A replica set of a deployment, as its controller leaves one behind with each new template."""
    name = owner["metadata"]["name"]
    labels = {"app": name, "pod-template-hash": str(number)}
    found = deployment(name, image, replicas=0)
    template = found["spec"]["template"] | {"metadata": {"labels": labels}}
    replicas = made(
        "apps/v1",
        "ReplicaSet",
        f"{name}-{number}",
        labels=labels,
        spec={"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    )
    replicas["metadata"]["annotations"] = {
        "deployment.kubernetes.io/revision": str(number),
        "kubernetes.io/change-cause": cause,
    }
    replicas["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": name,
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
    ]
    return replicas
