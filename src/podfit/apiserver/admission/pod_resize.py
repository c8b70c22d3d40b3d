"""Checks of a resize that are judged by what is stored: LimitRanges and the pod's node (R-069 to R-074)."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.apiserver.admission.chain import BasePlugin, Plugin, PluginScope, Turns
from podfit.apiserver.context import Attributes, Context
from podfit.decide.resize.checks import NODE_CHECKS, RESIZE_CHECKS, Check, ResizeToCheck, checks_of, judged
from podfit.decide.resize.node_support import concerns_node
from podfit.decide.write_stages import Stage


class JudgedChecks(BasePlugin):
    """Checks that stand together in the list, so that what they ask about is looked up once."""

    scope = PluginScope(operations=("UPDATE",), kinds=(Pod,), subresources=("resize",))

    def __init__(self, context: Context, checks: Sequence[Check]) -> None:
        super().__init__(context)
        self.checks = tuple(checks)

    async def mutate(self, attributes: Attributes, obj: Any) -> Any:
        return (await self._judged(attributes, obj)).new

    async def validate(self, attributes: Attributes, obj: Any) -> None:
        await self._judged(attributes, obj)

    async def _judged(self, attributes: Attributes, obj: Any) -> ResizeToCheck:
        node, old, find = None, attributes.old, self.context.find
        if concerns_node(obj, old):
            node = await find(Node, obj.spec.node_name)
        ranges = await self.context.settings(LimitRange, attributes.namespace)
        resize = ResizeToCheck(new=obj, old=old, node=node, limit_ranges=ranges, gates=self.context.gates)
        return judged(resize, self.checks)


class NodeDeclaredFeatureValidator(JudgedChecks):
    """What an update of the pod itself needs of its node, by the same check."""

    scope = PluginScope(operations=("UPDATE",), kinds=(Pod,), subresources=("",))
    mutate = BasePlugin.mutate

    def __init__(self, context: Context) -> None:
        super().__init__(context, [check for check in NODE_CHECKS if check.updates])


def resize_turns(context: Context, plugins: Mapping[str, Plugin], checks: Sequence[Check] = RESIZE_CHECKS) -> Turns:
    """Who is asked about a resize, in the order of the checks; `plugins` are, by name, those that make checks which
    only the request itself can answer."""

    def of(stage: Stage) -> list[Plugin]:
        turns: list[Plugin] = []
        for judges, group in groupby(checks_of(stage, checks), lambda check: check.make is not None):
            together = [*group]
            turns += [JudgedChecks(context, together)] if judges else [plugins[check.name] for check in together]
        return turns

    return Turns(changing=of(Stage.MUTATE), refusing=of(Stage.ADMIT))
