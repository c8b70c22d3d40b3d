"""Stored objects: their keys, their encoding, and the revision spliced into it.

An object is stored encoded, without its resource version, which is known only when the write has its place in the log.
Every encoding of a kind begins with the same bytes up to the first member of the metadata, so the version is put in by
slicing, and a list item loses `kind` and `apiVersion` by slicing: get, list and watch never encode an object.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar

from msgspec.structs import replace

from podfit.api.apiextensions.v1.types import CustomResourceDefinition
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.meta.alike import may_hold_amounts
from podfit.api.meta.base import Object
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.structural.custom import is_custom
from podfit.apiserver.request.documents import MOST_BUILT_IN, MOST_OF_POD, MOST_VALUES, check_encoded
from podfit.core import go_json
from podfit.core.bounded_cache import cached_within
from podfit.core.errors import ApiError, already_exists, conflict, not_found
from podfit.store.protocol import (
    Companion,
    CompanionConflict,
    KeyExists,
    Record,
    RecordDamaged,
    RevisionConflict,
    Store,
    StoreError,
    TooLarge,
    Unreadable,
)

T = TypeVar("T", bound=Object)
ROOT = "/registry"
MOST_STORED, MOST_STORED_BUILT_IN, MOST_STORED_POD = 2 * MOST_VALUES, 4 * MOST_BUILT_IN, 4 * MOST_OF_POD
"""Values of an object with what the server adds, such as the managers of its fields: each write looks at all."""


@lru_cache(maxsize=1024)  # declared kinds come and go
def head(info: ResourceInfo) -> bytes:
    """What every encoded object of the kind begins with."""
    start = f'{{"kind":"{info.kind}","apiVersion":"{info.group_version}","metadata":{{'
    return start.encode()


@lru_cache(maxsize=1024)
def of_kind(info: ResourceInfo) -> str:
    """Keys of a kind begin with this."""
    info = info.home
    group = f"{info.group}/" if info.group else ""
    return f"{ROOT}/{group}{info.resource}/"


def prefix(info: ResourceInfo, namespace: str = "") -> str:
    """Keys of a kind, or of it in one namespace, begin with this."""
    return f"{of_kind(info)}{namespace}/" if namespace and info.namespaced else of_kind(info)


def key(info: ResourceInfo, namespace: str, name: str) -> str:
    return f"{of_kind(info)}{namespace}/{name}" if namespace and info.namespaced else of_kind(info) + name


def pieces(info: ResourceInfo, record: Record) -> tuple[bytes, bytes, bytes]:
    """The encoded object with its resource version, in parts that are joined once."""
    start = head(info)
    return start, b'"resourceVersion":"%d",' % record.mod_revision, record.value[len(start) :]


def whole(info: ResourceInfo, record: Record) -> bytes:
    """The object as a line of text."""
    return b"".join((*pieces(info, record), b"\n"))


def unended(info: ResourceInfo, record: Record) -> bytes:
    """The object as watchers and other clients in this process decode it, which is done once for all of them."""
    return b"".join(pieces(info, record))


def items(info: ResourceInfo, records: Iterable[Record]) -> list[bytes]:
    """The records as list items, in parts, commas included; custom resources say in lists, too, what they are."""
    parts: list[bytes] = []
    start, opening = len(head(info)), _opening(info)
    for record in records:
        parts += (opening % record.mod_revision, record.value[start:], b",")
    return parts[:-1]


def each_item(info: ResourceInfo, records: Iterable[Record]) -> Iterator[bytes | memoryview]:
    """The same, one after the other: none of their bytes is copied. Each begins with its comma, of which the
    first is empty."""
    start, opening, comma = len(head(info)), _opening(info), b""
    for record in records:
        yield comma
        yield opening % record.mod_revision
        yield memoryview(record.value)[start:]
        comma = b","


def _opening(info: ResourceInfo) -> bytes:
    return (head(info) if is_custom(info.type) else b'{"metadata":{') + b'"resourceVersion":"%d",'


SMALL = 16 * 1024  # bytes of an encoded object; a decoded one takes ten times that, and more
MOST_SMALL, MOST_LARGE = 8 * 2**20, 4  # bytes; objects


def decoded(info: ResourceInfo, record: Record) -> Any:
    """Objects never change, so one decoding serves every reader: admission, tables, and each watcher's selector. Of
    large ones only the last few are kept."""
    kept = _decoded if len(record.value) <= SMALL else _large
    return kept(info, record.value, record.mod_revision)


def decoded_once(info: ResourceInfo, record: Record) -> Any:
    """The same for who goes through so many that to keep them would drive out what others ask for."""
    return codec.decode(unended(info, record), info.type)


def _decode(info: ResourceInfo, value: bytes, revision: int) -> Any:
    data, written = unended(info, Record("", value, 0, revision)), _decoded.known(info, value, UNWRITTEN)
    if written is None:
        return codec.decode_shared(data, info.type)
    obj = replace(written, metadata=replace(written.metadata, resource_version=str(revision)))
    codec.share(data, obj)
    return obj


_decoded, _large = cached_within(MOST_SMALL)(_decode), lru_cache(MOST_LARGE)(_decode)
UNWRITTEN = 0
"""The revision under which is remembered what has none yet."""


def remember(info: ResourceInfo, value: bytes, obj: Any) -> None:
    """What is about to be written need not be decoded: the first who is told of it gets the object, with its version,
    and whoever reads it next; and with it parts that were judged. Of what is new, much is never changed, and to keep it
    would cost more than it saves; a pod without a node is.

    Not of kinds with amounts, of which sums may have another form than their text, but of pods, in which amounts are as
    they were sent; nor of custom resources, which are documents that a client wrote.
    """
    if len(value) > SMALL or is_custom(info.type):
        return
    if may_hold_amounts(info.type) and (not isinstance(obj, Pod) or obj.spec.resources is not None):
        return
    _decoded.remember(obj, info, value, UNWRITTEN)


def most_stored(kind: type[Object]) -> int:
    """How many values an object of the kind may have in the store."""
    if is_custom(kind) or kind is CustomResourceDefinition:
        return MOST_STORED
    return MOST_STORED_POD if kind is Pod else MOST_STORED_BUILT_IN


def encoded(obj: Object) -> bytes:
    """The object as Go writes it: some clients compare bytes, as upstream's own tests do with the data of revisions."""
    meta = obj.metadata
    unversioned = replace(obj, metadata=replace(meta, resource_version="")) if meta.resource_version else obj
    return go_json.escaped(codec.encode(unversioned))


class Stored(Generic[T]):
    """Reads and writes of one kind, in typed objects; the API's errors for what the store refuses. What it is unable
    to do stays a StoreError, which the server answers with 503. On the way of every request it is made without its
    parameter, `objects: Stored[Pod] = Stored(…)`: with it, it costs three times as much."""

    def __init__(self, store: Store, info: ResourceInfo) -> None:
        self._store = store
        self._info = info

    async def record(self, namespace: str, name: str) -> Record:
        found = await self._store.get(key(self._info, namespace, name))
        if found is None:
            raise not_found(self._info.resource, name, group=self._info.group)
        return found

    async def get(self, namespace: str, name: str) -> T:
        obj: T = decoded(self._info, await self.record(namespace, name))
        return obj

    async def check_free(self, namespace: str, name: str) -> None:
        """Raises what a creation under this name would."""
        if await self._store.get(key(self._info, namespace, name)) is not None:
            raise await self._taken(namespace, name)

    async def _taken(self, namespace: str, name: str) -> ApiError:
        """What is said of a name that an object has; when that one is going, this is said first."""
        refusal = already_exists(self._info.resource, name, group=self._info.group)
        record = await self._store.get(key(self._info, namespace, name))
        if record is None or not decoded(self._info, record).metadata.deletion_timestamp:
            return refusal
        return ApiError(refusal.code, refusal.reason, f"object is being deleted: {refusal.message}", refusal.details)

    def companion(self, obj: T, *, expected: int) -> Companion:
        """The update of the object, to be made along with another write."""
        meta = obj.metadata
        return Companion(key(self._info, meta.namespace, meta.name), self._encoded(obj), expected)

    async def create(self, obj: T, *, along: Sequence[Companion] = ()) -> Record:
        """Raises Superseded, and writes nothing, when one of the companions was written since."""
        meta = obj.metadata
        try:
            where = key(self._info, meta.namespace, meta.name)
            encoding = self._encoded(obj)
            if isinstance(obj, Pod) and not obj.spec.node_name:
                remember(self._info, encoding, obj)  # it is bound next
            return await self._store.create(where, encoding, along=along)
        except CompanionConflict:
            raise _superseded() from None
        except KeyExists:
            raise await self._taken(meta.namespace, meta.name) from None

    async def update(self, obj: T, *, expected: int, freeing: bool = False, along: Sequence[Companion] = ()) -> Record:
        """Replace the object whose revision is `expected`. Raises Changed when it is not the current one any more,
        Superseded as `create` does.
        `freeing` is done on a full disk too; so is any write to what is being deleted, which brings its end nearer."""
        meta = obj.metadata
        try:
            where = key(self._info, meta.namespace, meta.name)
            freeing = freeing or bool(meta.deletion_timestamp)
            encoding = self._encoded(obj)
            remember(self._info, encoding, obj)
            return await self._store.update(where, encoding, expected=expected, freeing=freeing, along=along)
        except CompanionConflict:
            raise _superseded() from None
        except RevisionConflict as error:
            raise self._changed(meta.name, error) from None

    async def delete(self, namespace: str, name: str, *, expected: int) -> Record:
        try:
            return await self._store.delete(key(self._info, namespace, name), expected=expected)
        except RevisionConflict as error:
            raise self._changed(name, error) from None

    def _encoded(self, obj: T) -> bytes:
        value = encoded(obj)
        assert value.startswith(head(self._info)), f"not a whole {self._info.kind}: {value[:80]!r}"
        if len(value) > MOST_STORED_POD:
            check_encoded(value, most_stored(self._info.type))  # what patches have made of it, one after the other
        return value

    def _changed(self, name: str, error: RevisionConflict) -> ApiError:
        if error.current is None:
            return not_found(self._info.resource, name, group=self._info.group)
        refusal = conflict(self._info.resource, name, group=self._info.group)
        return Changed(refusal.code, refusal.reason, refusal.message, refusal.details)


class Changed(ApiError):
    """Someone else wrote the object meanwhile: 409, unless the caller can try again on the new state."""


class Superseded(ApiError):
    """What was to be written along with an object was written by someone else meanwhile, and the object was not."""


def _superseded() -> Superseded:
    refusal = conflict("resourcequotas", "", "the quota was written since; please try again")
    return Superseded(refusal.code, refusal.reason, refusal.message, refusal.details)


def unavailable(error: StoreError) -> ApiError:
    """What the store could not do, such as a write that the disk refused: not the client's fault, worth another try.

    Only what is too large for it will not become smaller, and a key that is missing will not come by itself.
    """
    if isinstance(error, Unreadable | RecordDamaged):
        return ApiError(500, "InternalError", f"Internal error occurred: {error}")
    if isinstance(error, TooLarge):
        return ApiError(413, "RequestEntityTooLarge", str(error))
    return ApiError(503, "ServiceUnavailable", f"the store is not available: {error}", {"retryAfterSeconds": 1})
