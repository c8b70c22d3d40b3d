"""The store as one version of a custom kind sees it: converted on reads and writes.

Objects are stored in one version. Between versions nothing but the name changes (conversion strategy None), so a stored
object is shown under the version that was asked for, without what that version's schema does not declare, and with its
defaults: a default that came after an object was written is there when the object is read, unless that makes it
too long.
"""

import logging
from functools import partial

import msgspec

from podfit.api.meta.base import Document
from podfit.api.structural.defaulting import TooMuch, fill
from podfit.api.structural.pruning import prune
from podfit.apiserver.context import Context
from podfit.apiserver.extensions.customresources.kinds import CustomInfo
from podfit.apiserver.registry import stored
from podfit.apiserver.registry.converting_store import ConvertingStore
from podfit.store.decoded_cache import Remembered

log = logging.getLogger(__name__)


class VersionedStore(ConvertingStore):
    """A Store whose records are all in one version of a declared kind."""

    def __init__(self, context: Context, info: CustomInfo) -> None:
        super().__init__(context.store, shown=partial(_converted, context.converted, info), kept=partial(_kept, info))


def _kept(info: CustomInfo, value: bytes) -> bytes:
    if info.version == info.stored_as:
        return value
    return _head(info, info.stored_as) + value[len(stored.head(info)) :]


def _head(info: CustomInfo, version: str) -> bytes:
    return f'{{"kind":"{info.kind}","apiVersion":"{info.group}/{version}","metadata":{{'.encode()


def _converted(known: Remembered, info: CustomInfo, value: bytes) -> bytes:
    """Stored values never change, so one conversion serves every reader."""
    return known.get((info, value), lambda: _convert(info, value))


def _convert(info: CustomInfo, value: bytes) -> bytes:
    document: Document = msgspec.json.decode(value)
    schema = info.type.declared.schema
    shown = prune(document, schema)
    try:
        shown = fill(shown, schema)
    except TooMuch:
        log.warning("object is shown without defaults kind=%s name=%s", info.kind, document["metadata"].get("name"))
    head = {"kind": info.kind, "apiVersion": info.group_version, "metadata": document["metadata"]}
    return msgspec.json.encode(head | {name: value for name, value in shown.items() if name not in head})
