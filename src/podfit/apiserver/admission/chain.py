"""The admission chain: plugins in order, and quotas, which are charged with the write itself."""

from collections.abc import Awaitable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import ClassVar, Protocol, TypeAlias, TypeVar

import msgspec

from podfit.api.meta.base import Object, ObjectT
from podfit.apiserver.admission.quota import QuotaAdmission, Write
from podfit.apiserver.context import Attributes, Context

T = TypeVar("T")
CONNECT = "CONNECT"
Sort: TypeAlias = tuple[str, type[Object], str]
"""Of writes: operation, kind, subresource."""
MOST_KEPT = 1024
"""Sorts of writes for which the plugins are chosen once; custom kinds come and go."""


class PluginScope(msgspec.Struct, frozen=True, kw_only=True):
    """Which writes a plugin is asked about. What is None has no say; the subresource of an object itself is empty.
    Connections, which write nothing, are for plugins that say `connections`.
    """

    operations: tuple[str, ...] | None = None
    kinds: tuple[type[Object], ...] | None = None
    subresources: tuple[str, ...] | None = None
    connections: bool = False

    def covers(self, operation: str, kind: type[Object], subresource: str) -> bool:
        if operation == CONNECT and not self.connections:
            return False
        named = (self.operations, operation), (self.kinds, kind), (self.subresources, subresource)
        return all(wanted is None or value in wanted for wanted, value in named)


class Plugin(Protocol):
    scope: ClassVar[PluginScope]

    async def mutate(self, attributes: Attributes, obj: ObjectT) -> ObjectT:
        """The object as this policy wants it."""

    async def validate(self, attributes: Attributes, obj: Object) -> None:
        """Raises ApiError when this policy refuses the write."""


class BasePlugin:
    """A plugin that does nothing, for others to build on."""

    scope: ClassVar[PluginScope] = PluginScope()

    def __init__(self, context: Context) -> None:
        self.context = context

    async def mutate(self, attributes: Attributes, obj: ObjectT) -> ObjectT:
        return obj

    async def validate(self, attributes: Attributes, obj: Object) -> None:
        return None


class Turns(msgspec.Struct, frozen=True):
    """Who changes a sort of write, and who refuses it, in their order."""

    changing: Sequence[Plugin]
    refusing: Sequence[Plugin]


class AdmissionChain:
    """Each plugin is asked about the writes that it names, for what it does itself. The `turns` of some sorts of writes
    are given: there the order is not that of the plugins."""

    def __init__(
        self, plugins: tuple[Plugin, ...], quotas: QuotaAdmission, turns: Mapping[Sort, Turns] = MappingProxyType({})
    ) -> None:
        self._plugins, self._quotas, self._turns = plugins, quotas, turns
        self.turns = lru_cache(MOST_KEPT)(self._choose)

    def _choose(self, operation: str, kind: type[Object], subresource: str) -> Turns:
        if given := self._turns.get((operation, kind, subresource)):
            return given
        asked = [plugin for plugin in self._plugins if plugin.scope.covers(operation, kind, subresource)]
        return Turns(
            changing=[plugin for plugin in asked if type(plugin).mutate is not BasePlugin.mutate],
            refusing=[plugin for plugin in asked if type(plugin).validate is not BasePlugin.validate],
        )

    async def mutate(self, attributes: Attributes, obj: ObjectT) -> ObjectT:
        """Once more when a webhook changed the object, so that every plugin has seen what the others made of it."""
        changing = self.turns(attributes.operation, attributes.info.type, attributes.subresource).changing
        for plugin in changing:
            obj = await plugin.mutate(attributes, obj)
        if not attributes.reinvocations.changed:
            return obj
        attributes.reinvocations.second = True
        for plugin in changing:
            obj = await plugin.mutate(attributes, obj)
        return obj

    async def validate(self, attributes: Attributes, obj: Object) -> None:
        for plugin in self.turns(attributes.operation, attributes.info.type, attributes.subresource).refusing:
            await plugin.validate(attributes, obj)

    def charge_and_write(self, attributes: Attributes, obj: Object, write: Write[T]) -> Awaitable[T]:
        """The last of admission and the write: quotas are charged together with what is stored."""
        return self._quotas.charged(attributes, obj, write)
