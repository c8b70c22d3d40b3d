"""A store that converts its values on the way, such as to another version of a kind."""

from collections.abc import Callable, Sequence
from functools import partial
from weakref import WeakSet

from podfit.api.meta import codec
from podfit.api.meta.resource_info import Conversion, ResourceInfo
from podfit.store.decoded_cache import Remembered
from podfit.store.layer import LayerWatch, StoreLayer
from podfit.store.protocol import About, Companion, Record, Store, Watch

Convert = Callable[[bytes], bytes]


class ConvertingStore(StoreLayer):
    """A Store between the two forms; `retire` ends its watches when nobody is to be shown this one any more."""

    def __init__(self, store: Store, *, shown: Convert, kept: Convert) -> None:
        super().__init__(store)
        self._convert = shown
        self._back = kept
        self._watches: WeakSet[LayerWatch] = WeakSet()

    def watch(self, prefix: str, *, after: int, about: About | None = None) -> Watch:
        watch = LayerWatch(self._store.watch(prefix, after=after), self._shown)
        self._watches.add(watch)
        return watch

    def retire(self) -> None:
        for watch in list(self._watches):
            watch.close()

    def _shown(self, record: Record) -> Record:
        value = self._convert(record.value)
        return Record(record.key, value, record.create_revision, record.mod_revision, record.stale)

    def _companions(self, along: Sequence[Companion]) -> Sequence[Companion]:
        """They are of another kind than is converted here."""
        return along

    def _kept(self, key: str, value: bytes) -> bytes:
        return self._back(value)


def in_version(store: Store, info: ResourceInfo, conversion: Conversion, converted: Remembered) -> Store:
    """The store in which all objects of the kind are of this version."""
    return ConvertingStore(store, shown=partial(_shown, converted, conversion), kept=partial(_kept, info, conversion))


def _shown(converted: Remembered, conversion: Conversion, value: bytes) -> bytes:
    def convert() -> bytes:
        return codec.encode(conversion.shown(codec.decode(value, conversion.stored.type)))

    return converted.get((conversion, value), convert)


def _kept(info: ResourceInfo, conversion: Conversion, value: bytes) -> bytes:
    return codec.encode(conversion.kept(codec.decode(value, info.type)))
