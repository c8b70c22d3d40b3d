"""NodeRestriction: a kubelet writes its own node, its own lease, and pods that are bound to it, and nothing else."""

from typing import Any

from podfit.api.coordination import Lease
from podfit.api.core.nodes import Node
from podfit.api.core.pods import Pod
from podfit.apiserver.admission.chain import Passive
from podfit.apiserver.context import Attributes
from podfit.core.errors import forbidden
from podfit.net.wire import Identity

PREFIX, GROUP = "system:node:", "system:nodes"


def node_name(identity: Identity) -> str:
    """The node that a kubelet speaks for; empty when it is no kubelet."""
    is_node = identity.user.startswith(PREFIX) and GROUP in identity.groups
    return identity.user.removeprefix(PREFIX) if is_node else ""


class NodeRestriction(Passive):
    async def validate(self, attributes: Attributes, obj: Any) -> None:
        node = node_name(attributes.identity)
        if not node:
            return
        if isinstance(obj, Pod):
            self._pod(attributes, obj, node)
        elif isinstance(obj, Node) and attributes.name != node:
            self._refuse(attributes, f'node "{node}" is not allowed to modify node "{attributes.name}"')
        elif isinstance(obj, Lease) and (attributes.name != node or attributes.namespace != "kube-node-lease"):
            self._refuse(attributes, "can only access node lease with the same name as the requesting node")

    def _pod(self, attributes: Attributes, pod: Pod, node: str) -> None:
        bound = (attributes.old or pod).spec.node_name
        if bound != node:
            self._refuse(attributes, f'node "{node}" can only act on pods with spec.nodeName set to itself')

    def _refuse(self, attributes: Attributes, text: str) -> None:
        raise forbidden(attributes.info.resource, attributes.name, text, group=attributes.info.group)
