"""Conversion between the served versions of a kind and its storage version."""

from dataclasses import replace
from functools import partial

from podfit.api.meta import codec
from podfit.api.meta.resource_info import Conversion, ResourceInfo
from podfit.apiserver.context import Context
from podfit.apiserver.registry.converting_store import ConvertingStore
from podfit.store.decoded_cache import Remembered


def in_version(context: Context, info: ResourceInfo | None) -> Context:
    """The context in which all objects of the kind are of this version."""
    if info is None or info.conversion is None:
        return context
    shown, kept = partial(_shown, context.converted, info.conversion), partial(_kept, info, info.conversion)
    return replace(context, store=ConvertingStore(context.store, shown=shown, kept=kept))


def _shown(converted: Remembered, conversion: Conversion, value: bytes) -> bytes:
    def convert() -> bytes:
        return codec.encode(conversion.shown(codec.decode(value, conversion.stored.type)))

    return converted.get((conversion, value), convert)


def _kept(info: ResourceInfo, conversion: Conversion, value: bytes) -> bytes:
    return codec.encode(conversion.kept(codec.decode(value, info.type)))
