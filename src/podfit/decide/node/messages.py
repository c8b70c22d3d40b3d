"""Texts of a node's events about resizes, whose messages end in JSON.

Pod resize started: {"containers":[{"name":"c1","resources":{"requests":{"cpu":"1"}}}],"generation":2}
"""

import json
from collections.abc import Iterable
from typing import Any

from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import Quantity

NORMAL = "Normal"
WARNING = "Warning"
_GO_ESCAPES = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})


def details(pod: Pod, *, generation: int, error: str = "") -> str:
    """Key order and escapes are part of the contract (R-179). Pod-level resources are not included."""
    document: dict[str, Any] = {}
    for key, containers in (("initContainers", pod.spec.init_containers), ("containers", pod.spec.containers)):
        if containers:
            document[key] = _containers(containers)
    document["generation"] = generation
    if error:
        document["error"] = error
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).translate(_GO_ESCAPES)


def _containers(containers: Iterable[Container]) -> list[dict[str, Any]]:
    return [
        {
            "name": container.name,
            "resources": {
                key: _amounts(amounts)
                for key, amounts in (("limits", container.resources.limits), ("requests", container.resources.requests))
                if amounts
            },
        }
        for container in containers
    ]


def _amounts(amounts: dict[str, Quantity]) -> dict[str, str]:
    return {name: str(amounts[name]) for name in sorted(amounts)}
