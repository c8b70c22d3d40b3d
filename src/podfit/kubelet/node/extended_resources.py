"""Extended resources such as `example.com/dongle`, which somebody writes into the node's status.

They are written to `status.capacity`, by hand or by an operator; the kubelet makes them allocatable and admits pods by
them. Those of spare capacity are this kubelet's own to tell, whoever writes them (docs/spare.md).
"""

from podfit.api.core.v1.nodes.types import Node
from podfit.api.meta.base import ResourceList
from podfit.decide.pod.spare import SPARE

_OURS = "kubernetes.io/"


def extended(node: Node | None) -> ResourceList:
    """Names with a domain that is not Kubernetes' own."""
    if node is None:
        return {}
    return {name: amount for name, amount in node.status.capacity.items() if is_extended(name) and name not in SPARE}


def is_extended(name: str) -> bool:
    domain, slash, _ = name.partition("/")
    return bool(slash) and not f"{domain}/".endswith(_OURS)


def outdated(node: Node, lent: ResourceList) -> bool:
    """Whether something else is allocatable than there is, with what is `lent`."""
    told = {name: amount for name, amount in node.status.allocatable.items() if is_extended(name)}
    spare = {name: amount for name, amount in node.status.capacity.items() if name in SPARE}
    return told != {**extended(node), **lent} or spare != lent
