"""The plugins in their order, and quotas, which are charged with the write itself."""

from typing import Any, Protocol, TypeVar

from podfit.apiserver.admission.quota import QuotaAdmission, Write
from podfit.apiserver.context import Attributes, Context

T = TypeVar("T")


class Plugin(Protocol):
    async def mutate(self, attributes: Attributes, obj: Any) -> Any:
        """The object as this policy wants it."""

    async def validate(self, attributes: Attributes, obj: Any) -> None:
        """Raises ApiError when this policy refuses the write."""


class Passive:
    """A plugin that does nothing, for others to build on."""

    def __init__(self, context: Context) -> None:
        self.context = context

    async def mutate(self, attributes: Attributes, obj: Any) -> Any:
        return obj

    async def validate(self, attributes: Attributes, obj: Any) -> None:
        return None


class Chain:
    """`Passive` plugins are asked only for what they do themselves."""

    def __init__(self, plugins: tuple[Plugin, ...], quotas: QuotaAdmission) -> None:
        self._quotas = quotas
        self._changing = tuple(each for each in plugins if type(each).mutate is not Passive.mutate)
        self._refusing = tuple(each for each in plugins if type(each).validate is not Passive.validate)

    async def mutate(self, attributes: Attributes, obj: Any) -> Any:
        """Once more when a webhook changed the object, so that every plugin has seen what the others made of it."""
        obj = await self._round(attributes, obj)
        if not attributes.rounds.changed:
            return obj
        attributes.rounds.second = True
        return await self._round(attributes, obj)

    async def _round(self, attributes: Attributes, obj: Any) -> Any:
        for plugin in self._changing:
            obj = await plugin.mutate(attributes, obj)
        return obj

    async def validate(self, attributes: Attributes, obj: Any) -> None:
        for plugin in self._refusing:
            await plugin.validate(attributes, obj)

    async def written(self, attributes: Attributes, obj: Any, write: Write[T]) -> T:
        """The last of admission and the write: quotas are charged together with what is stored."""
        return await self._quotas.charged(attributes, obj, write)
