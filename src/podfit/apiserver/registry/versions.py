"""Conversion between the served versions of a kind and its storage version."""

from functools import partial

from podfit.api.meta import codec
from podfit.api.meta.resource_info import Conversion, ResourceInfo
from podfit.apiserver.registry.converting_store import ConvertingStore
from podfit.store.decoded_cache import Remembered
from podfit.store.protocol import Store


def in_version(store: Store, info: ResourceInfo, conversion: Conversion, converted: Remembered) -> Store:
    """The store in which all objects of the kind are of this version."""
    return ConvertingStore(store, shown=partial(_shown, converted, conversion), kept=partial(_kept, info, conversion))


def _shown(converted: Remembered, conversion: Conversion, value: bytes) -> bytes:
    def convert() -> bytes:
        return codec.encode(conversion.shown(codec.decode(value, conversion.stored.type)))

    return converted.get((conversion, value), convert)


def _kept(info: ResourceInfo, conversion: Conversion, value: bytes) -> bytes:
    return codec.encode(conversion.kept(codec.decode(value, info.type)))
