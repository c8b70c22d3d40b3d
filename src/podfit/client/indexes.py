"""Indexes of an informer: objects by namespace and name, and by other keys."""

from collections.abc import Callable, Hashable, ItemsView, Iterable, Mapping, ValuesView
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")

Key: TypeAlias = tuple[str, str]
"""Namespace and name."""


class Cache(Generic[T]):
    """A dict that keeps its indexes right. An index function gives the values under which an object is found."""

    def __init__(self, indexes: Mapping[str, Callable[[T], Iterable[Hashable]]]) -> None:
        self._functions = dict(indexes)
        self._objects: dict[Key, T] = {}
        self._indexes: dict[str, dict[Hashable, dict[Key, T]]] = {name: {} for name in indexes}

    def add_index(self, name: str, function: Callable[[T], Iterable[Hashable]]) -> None:
        """One more index, over what is there as well. Asked for again under the same name it must be the same."""
        if name in self._functions:
            if self._functions[name] is not function:
                raise ValueError(f"there is another index of the name {name!r}")
            return
        self._functions[name] = function
        index = self._indexes[name] = {}
        for key, obj in self._objects.items():
            for value in function(obj):
                index.setdefault(value, {})[key] = obj

    def get(self, key: Key) -> T | None:
        return self._objects.get(key)

    def values(self) -> ValuesView[T]:
        return self._objects.values()

    def items(self) -> ItemsView[Key, T]:
        return self._objects.items()

    def by_index(self, index: str, value: Hashable) -> list[T]:
        return list(self._indexes[index].get(value, {}).values())

    def put(self, key: Key, obj: T) -> T | None:
        """Remember an object; returns what it replaces."""
        old = self.pop(key) if self._functions else self._objects.get(key)
        self._objects[key] = obj
        for name, function in self._functions.items():
            for value in function(obj):
                self._indexes[name].setdefault(value, {})[key] = obj
        return old

    def pop(self, key: Key) -> T | None:
        """Forget an object; returns it."""
        old = self._objects.pop(key, None)
        if old is not None:
            for name, function in self._functions.items():
                for value in function(old):
                    self._unindex(self._indexes[name], value, key)
        return old

    def _unindex(self, index: dict[Hashable, dict[Key, T]], value: Hashable, key: Key) -> None:
        index.get(value, {}).pop(key, None)
        if not index.get(value):
            index.pop(value, None)
