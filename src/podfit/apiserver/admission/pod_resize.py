"""Checks of a resize against the pod's node (R-069 to R-074): NodeDeclaredFeatures and the resize validator."""

from typing import Any

from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.apiserver.admission.chain import Passive, PluginScope
from podfit.apiserver.context import Attributes
from podfit.core.errors import ApiError
from podfit.decide.resize.checks import NODE_CHECKS, Resize, judge
from podfit.decide.resize.node_support import concerns_node


class NodeChecks(Passive):
    """Several plugins of upstream's in one, so that the node is looked up once: `NODE_CHECKS`, in their order."""

    concern = PluginScope(
        operations=("UPDATE",),
        kinds=(Pod,),
        subresources=tuple({name: None for check in NODE_CHECKS for name in check.subresources}),
    )

    async def validate(self, attributes: Attributes, obj: Any) -> None:
        if not concerns_node(obj, attributes.old):
            return
        checks = tuple(check for check in NODE_CHECKS if attributes.subresource in check.subresources)
        node = await self.context.find(Node, obj.spec.node_name)
        outcome = judge(Resize(new=obj, old=attributes.old, node=node, gates=self.context.gates), checks)
        if isinstance(outcome, ApiError):
            raise outcome
