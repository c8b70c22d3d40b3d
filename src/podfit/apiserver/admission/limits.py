"""LimitRanger: a namespace's defaults and bounds for its pods, on creation and resize."""

from typing import Any

from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.types import Pod
from podfit.apiserver.admission.chain import Passive, PluginScope
from podfit.apiserver.context import Attributes
from podfit.decide.limits.limit_range import add_defaults, check_limits


class LimitRanger(Passive):
    concern = PluginScope(operations=("CREATE", "UPDATE"), kinds=(Pod,), subresources=("", "resize"))

    async def mutate(self, attributes: Attributes, obj: Any) -> Any:
        return add_defaults(obj, await self._ranges(attributes)) if _concerns(attributes) else obj

    async def validate(self, attributes: Attributes, obj: Any) -> None:
        if _concerns(attributes):
            refused = check_limits(obj, await self._ranges(attributes), self.context.gates)
            if refused is not None:
                raise refused.error(attributes.name)

    async def _ranges(self, attributes: Attributes) -> tuple[LimitRange, ...]:
        return await self.context.settings(LimitRange, attributes.namespace)


def _concerns(attributes: Attributes) -> bool:
    if attributes.operation == "CREATE":
        return True
    leaving = attributes.old is not None and attributes.old.metadata.deletion_timestamp
    return attributes.subresource == "resize" and not leaving
