"""`SharedMap`: an immutable map of which a changed version costs as much as the change, however large the map is.

All versions share one dict, which holds what the version that was asked last maps. Every other version knows one key
that it has otherwise than its neighbour towards that one (Baker's rerooting), so asking another version turns that many
entries. Made for values of which nearly always the newest is read, as the state of a machine is. The order is that of
insertion, as with a dict, so that what is decided in that order is the same in every process; turning back and forth
may move an entry to the end. To be used by one thread at a time.
"""

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Final, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")
_ABSENT: Final = object()


class SharedMap(Mapping[K, V]):
    __slots__ = ("_entries", "_key", "_nearer", "_value")

    def __init__(self, entries: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        self._entries: dict[K, V] | None = dict(entries)
        self._nearer: SharedMap[K, V] = self  # while `_entries` is None: as this one, but for `_key`
        self._key: K
        self._value: object

    def set(self, key: K, value: V) -> "SharedMap[K, V]":
        """The map with this entry."""
        return self._changed(key, value)

    def without(self, keys: Iterable[K]) -> "SharedMap[K, V]":
        """The map without these keys; the same object when it has none of them."""
        fewer = self
        for key in keys:
            if key in fewer:
                fewer = fewer._changed(key, _ABSENT)
        return fewer

    def _changed(self, key: K, value: object) -> "SharedMap[K, V]":
        newer: SharedMap[K, V] = SharedMap.__new__(SharedMap)
        newer._take(self, key, value)
        return newer

    def _take(self, holder: "SharedMap[K, V]", key: K, value: object) -> None:
        """Take the dict over from the map that holds it and differs by this key, which has `value` from now on."""
        entries = holder._own()
        holder._key, holder._value, holder._nearer, holder._entries = key, entries.get(key, _ABSENT), self, None
        if value is _ABSENT:
            entries.pop(key, None)
        else:
            entries[key] = value  # type: ignore[assignment]  # what is not _ABSENT came out of a map of these
        self._entries, self._nearer = entries, self

    def _own(self) -> dict[K, V]:
        """The dict, holding what this version maps."""
        if self._entries is not None:
            return self._entries
        way = [self]
        while way[-1]._entries is None:
            way.append(way[-1]._nearer)
        while len(way) > 1:
            holder, following = way.pop(), way[-1]
            following._take(holder, following._key, following._value)
        return self._own()

    @overload
    def get(self, key: K, /) -> V | None: ...

    @overload
    def get(self, key: K, /, default: V | T) -> V | T: ...

    def get(self, key: K, /, default: V | T | None = None) -> V | T | None:
        entries = self._entries  # here and in the two below: asked for in every step, many times
        return (self._own() if entries is None else entries).get(key, default)

    def __getitem__(self, key: K) -> V:
        entries = self._entries
        return (self._own() if entries is None else entries)[key]

    def __contains__(self, key: object) -> bool:
        entries = self._entries
        return key in (self._own() if entries is None else entries)

    def __len__(self) -> int:
        return len(self._own())

    def __iter__(self) -> Iterator[K]:
        return iter(tuple(self._own()))

    def keys(self) -> KeysView[K]:
        return dict(self._own()).keys()

    def values(self) -> ValuesView[V]:
        return dict(self._own()).values()

    def items(self) -> ItemsView[K, V]:
        return dict(self._own()).items()

    def __repr__(self) -> str:
        return f"SharedMap({self._own()!r})"
