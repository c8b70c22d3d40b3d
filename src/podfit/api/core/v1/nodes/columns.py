"""Columns of `kubectl get` for nodes."""

from typing import Any

from podfit.api.core.v1.nodes.types import Node
from podfit.api.meta.columns import AGE, NAME, NONE, UNKNOWN, age, name_of, wide
from podfit.api.meta.resource_info import Column

NODE = (
    NAME,
    Column("Status", description="Readiness of the node, and whether it takes new pods."),
    Column("Roles", description="Roles from the node's labels."),
    AGE,
    Column("Version", description="Version of the kubelet."),
    wide("Internal-IP", "Address inside the cluster."),
    wide("External-IP", "Address from outside."),
    wide("OS-Image", "Operating system."),
    wide("Kernel-Version", "Version of the kernel."),
    wide("Container-Runtime", "Container runtime and its version."),
)
_ROLE = "node-role.kubernetes.io/"


def node_row(node: Node, now: str) -> list[Any]:
    status = node.status
    ready = next((condition.status for condition in reversed(status.conditions) if condition.type == "Ready"), None)
    state = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    labels = node.metadata.labels
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE) and key != _ROLE}
    roles |= {labels["kubernetes.io/role"]} if labels.get("kubernetes.io/role") else set()
    addresses = {address.type: address.address for address in reversed(status.addresses)}
    info = status.node_info
    return [
        name_of(node),
        f"{state},SchedulingDisabled" if node.spec.unschedulable else state,
        ",".join(sorted(roles)) or NONE,
        age(node, now),
        info.kubelet_version,
        addresses.get("InternalIP", NONE),
        addresses.get("ExternalIP", NONE),
        info.os_image or UNKNOWN,
        info.kernel_version or UNKNOWN,
        info.container_runtime_version or UNKNOWN,
    ]
