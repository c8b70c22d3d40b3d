"""The admission chain: plugins in order, and quotas, which are charged with the write itself."""

from functools import lru_cache
from typing import ClassVar, Protocol, TypeVar

import msgspec

from podfit.api.meta.base import Object, ObjectT
from podfit.apiserver.admission.quota import QuotaAdmission, Write
from podfit.apiserver.context import Attributes, Context

T = TypeVar("T")
CONNECT = "CONNECT"
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
    concern: ClassVar[PluginScope]

    async def mutate(self, attributes: Attributes, obj: ObjectT) -> ObjectT:
        """The object as this policy wants it."""

    async def validate(self, attributes: Attributes, obj: Object) -> None:
        """Raises ApiError when this policy refuses the write."""


class Passive:
    """A plugin that does nothing, for others to build on."""

    concern: ClassVar[PluginScope] = PluginScope()

    def __init__(self, context: Context) -> None:
        self.context = context

    async def mutate(self, attributes: Attributes, obj: ObjectT) -> ObjectT:
        return obj

    async def validate(self, attributes: Attributes, obj: Object) -> None:
        return None


class Chain:
    """Each plugin is asked about the writes that it names, for what it does itself."""

    def __init__(self, plugins: tuple[Plugin, ...], quotas: QuotaAdmission) -> None:
        self._plugins, self._quotas = plugins, quotas
        self._chosen = lru_cache(MOST_KEPT)(self._choose)

    def _choose(self, operation: str, kind: type[Object], subresource: str) -> tuple[list[Plugin], list[Plugin]]:
        """Those that change such a write, and those that refuse it."""
        asked = [plugin for plugin in self._plugins if plugin.concern.covers(operation, kind, subresource)]
        changing = [plugin for plugin in asked if type(plugin).mutate is not Passive.mutate]
        return changing, [plugin for plugin in asked if type(plugin).validate is not Passive.validate]

    async def mutate(self, attributes: Attributes, obj: ObjectT) -> ObjectT:
        """Once more when a webhook changed the object, so that every plugin has seen what the others made of it."""
        changing, _ = self._chosen(attributes.operation, attributes.info.type, attributes.subresource)
        for plugin in changing:
            obj = await plugin.mutate(attributes, obj)
        if not attributes.rounds.changed:
            return obj
        attributes.rounds.second = True
        for plugin in changing:
            obj = await plugin.mutate(attributes, obj)
        return obj

    async def validate(self, attributes: Attributes, obj: Object) -> None:
        _, refusing = self._chosen(attributes.operation, attributes.info.type, attributes.subresource)
        for plugin in refusing:
            await plugin.validate(attributes, obj)

    async def written(self, attributes: Attributes, obj: Object, write: Write[T]) -> T:
        """The last of admission and the write: quotas are charged together with what is stored."""
        return await self._quotas.charged(attributes, obj, write)
