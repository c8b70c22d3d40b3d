"""Nodes and pods as the placement rules see them."""

from typing import Any

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.placement.view import NodeInfo, Resident

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def a_node(
    name: str,
    *residents: Resident,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: str = "110",
    zone: str = "",
    labels: dict[str, str] | None = None,
    features: tuple[str, ...] = (),
    **spec: Any,
) -> NodeInfo:
    every = {HOSTNAME: name} | ({ZONE: zone} if zone else {}) | (labels or {})
    document = {
        "metadata": {"name": name, "labels": every},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods}, "declaredFeatures": list(features)},
    }
    return NodeInfo.of(convert(document, Node), residents)


def a_pod(
    name: str = "p",
    *,
    cpu: str = "",
    memory: str = "",
    namespace: str = "default",
    meta: dict[str, Any] | None = None,
    labels: dict[str, str] | None = None,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> Resident:
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    document = {
        "metadata": {"name": name, "namespace": namespace, "uid": name, "labels": labels or {}, **(meta or {})},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}], **spec},
        "status": status or {},
    }
    return Resident.of(convert(document, Pod))


def affinity(kind: str, app: str, key: str = HOSTNAME, **term: Any) -> dict[str, Any]:
    """`kind` is podAffinity or podAntiAffinity: required, near pods labelled app=`app`."""
    given = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **term}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [given]}}


def spreading(app: str, key: str = ZONE, skew: int = 1, **given: Any) -> list[dict[str, Any]]:
    return [
        {
            "maxSkew": skew,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": app}},
            **given,
        }
    ]
