"""What the node has a say in: the features that an update needs, and whether a resize can ever fit (R-069 to R-074)."""

from typing import Any

from podfit.api.core.nodes import Node
from podfit.api.core.pods import Pod
from podfit.apiserver.admission.chain import Passive
from podfit.apiserver.context import Attributes
from podfit.decide.node_admission import check_capacity, check_features, concerns_node


class NodeDeclaredFeatures(Passive):
    async def validate(self, attributes: Attributes, obj: Any) -> None:
        if _update(attributes, "", "resize") and concerns_node(obj, attributes.old):
            node = await self.context.find(Node, obj.spec.node_name)
            refused = check_features(obj, attributes.old, node, self.context.gates)
            if refused is not None:
                raise refused.error(attributes.name)


class PodResizeValidator(Passive):
    async def validate(self, attributes: Attributes, obj: Any) -> None:
        if _update(attributes, "resize") and concerns_node(obj, attributes.old):
            node = await self.context.find(Node, obj.spec.node_name)
            refused = check_capacity(obj, attributes.old, node, self.context.gates)
            if refused is not None:
                raise refused.error(attributes.name)


def _update(attributes: Attributes, *doors: str) -> bool:
    return attributes.operation == "UPDATE" and attributes.info.type is Pod and attributes.subresource in doors
