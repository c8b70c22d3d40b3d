"""The objects of an informer that select others by labels, with their selectors prepared.

Whoever is asked about one pod after another does not go through all requirements of all selectors each time.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from podfit.api.meta.base import Object
from podfit.api.meta.v1.types import ObjectMeta
from podfit.client.informer import Informer
from podfit.controllers.base import Key
from podfit.core.selectors import Matcher, Requirement

T = TypeVar("T", bound=Object)


class Selecting(Generic[T]):
    """`selector` gives the requirements of an object; None where it selects nothing."""

    def __init__(self, informer: Informer[T], selector: Callable[[T], Iterable[Requirement] | None]) -> None:
        self._selector = selector
        self._matchers: dict[str, dict[str, Matcher]] = {}
        informer.add_handler(add=self._seen, update=self._changed, delete=self._gone)

    def keys(self, meta: ObjectMeta) -> Iterator[Key]:
        """The keys of those in the object's namespace that select it."""
        for name, matcher in self._matchers.get(meta.namespace, {}).items():
            if matcher.matches(meta.labels):
                yield meta.namespace, name

    def _changed(self, old: T, new: T) -> None:
        """A generation has one selector."""
        if not new.metadata.generation or old.metadata.generation != new.metadata.generation:
            self._seen(new)

    def _seen(self, obj: T) -> None:
        wanted = self._selector(obj)
        if wanted is None:
            self._gone(obj)
        else:
            self._matchers.setdefault(obj.metadata.namespace, {})[obj.metadata.name] = Matcher(wanted)

    def _gone(self, obj: T) -> None:
        of_namespace = self._matchers.get(obj.metadata.namespace, {})
        of_namespace.pop(obj.metadata.name, None)
        if not of_namespace:
            self._matchers.pop(obj.metadata.namespace, None)
