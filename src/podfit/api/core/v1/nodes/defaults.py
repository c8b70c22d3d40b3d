"""Defaults of nodes."""

from collections.abc import Callable, Mapping
from typing import Any

from podfit.api.core.v1.nodes.types import Node, NodeStatus
from podfit.api.meta.base import Object
from podfit.api.meta.defaulting import change, fill, inside, rounded


def _node(node: Node) -> Node:
    cidr, cidrs = node.spec.pod_cidr, node.spec.pod_cidrs
    spec = node.spec
    if cidr and not cidrs:
        spec = change(spec, pod_cidrs=(cidr,))
    elif cidrs and not cidr:
        spec = change(spec, pod_cidr=cidrs[0])
    return inside(change(node, spec=spec), status=_node_status)


def _node_status(status: NodeStatus) -> NodeStatus:
    return inside(fill(status, allocatable=status.capacity), allocatable=rounded, capacity=rounded)


DEFAULTS: Mapping[type[Object], Callable[[Any], Any]] = {Node: _node}
