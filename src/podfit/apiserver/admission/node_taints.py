"""TaintNodesByCondition: a new node begins with the taint of one that is not ready, so that nothing is placed on it."""

from typing import Any

from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node, Taint
from podfit.apiserver.admission.chain import BasePlugin, PluginScope
from podfit.apiserver.context import Attributes
from podfit.decide.workload.nodes.health import NO_SCHEDULE, NOT_READY


class TaintNodesByCondition(BasePlugin):
    """The node lifecycle controller takes the taint away when the node says that it is ready."""

    scope = PluginScope(operations=("CREATE",), kinds=(Node,), subresources=("",))

    async def mutate(self, attributes: Attributes, obj: Any) -> Any:
        taints = obj.spec.taints
        if any((taint.key, taint.effect) == (NOT_READY, NO_SCHEDULE) for taint in taints):
            return obj
        return replace(obj, spec=replace(obj.spec, taints=(*taints, Taint(key=NOT_READY, effect=NO_SCHEDULE))))
