"""LimitRanger: a namespace's defaults and bounds for its new pods; of a resize, `decide.resize.checks` has them."""

from collections.abc import Awaitable
from typing import Any

from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.types import Pod
from podfit.apiserver.admission.chain import BasePlugin, PluginScope
from podfit.apiserver.context import Attributes
from podfit.decide.limits.limit_range import add_defaults, check_limits


class LimitRanger(BasePlugin):
    scope = PluginScope(operations=("CREATE",), kinds=(Pod,), subresources=("",))

    async def mutate(self, attributes: Attributes, obj: Any) -> Any:
        return add_defaults(obj, await self._ranges(attributes))

    async def validate(self, attributes: Attributes, obj: Any) -> None:
        refused = check_limits(obj, await self._ranges(attributes), self.context.gates)
        if refused is not None:
            raise refused.error(attributes.name)

    def _ranges(self, attributes: Attributes) -> Awaitable[tuple[LimitRange, ...]]:
        return self.context.settings(LimitRange, attributes.namespace)
