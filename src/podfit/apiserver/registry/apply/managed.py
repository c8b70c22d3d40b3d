"""managedFields: which manager last wrote which field (R-011).

A write is compared with what was stored: its manager comes to own what it added or changed, others lose that, and what
is gone belongs to nobody. Entries of one manager are told apart by operation and subresource; an apply replaces its
manager's fields (`registry.apply`), any other write adds to them.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.meta import codec
from podfit.api.meta.alike import Recent
from podfit.api.meta.base import Object, ObjectT
from podfit.api.meta.member import Kind
from podfit.api.meta.resource_info import ResourceInfo
from podfit.api.meta.schema import members
from podfit.api.meta.v1.types import ManagedFieldsEntry
from podfit.api.structural.custom import is_custom
from podfit.apiserver.registry.apply.compare import changed, gone, surviving
from podfit.apiserver.registry.apply.differing import changes, differing
from podfit.apiserver.registry.apply.sets import (
    Tree,
    contains,
    meets,
    sorted_tree,
    union,
    union_of,
    well_formed,
    without,
)
from podfit.apiserver.request.write_options import LONGEST_NAME
from podfit.core.bounded_cache import cached_where_short
from podfit.net.wire import Request

NO_MANAGERS = (ManagedFieldsEntry(),)
"""What a client sends to have everyone forgotten: `managedFields: [{}]`, or an empty list."""
UPDATE, APPLY = "Update", "Apply"
MOST_UPDATERS = 10
ANCIENT = "ancient-changes"
LONGEST_KEPT = 4096
MOST_RECENT = 4  # of each kind
_FIELDS = "FieldsV1"
_UNTRACKED = ("f:apiVersion", "f:kind")
_UNTRACKED_META = (
    "f:name",
    "f:namespace",
    "f:creationTimestamp",
    "f:selfLink",
    "f:uid",
    "f:generation",
    "f:managedFields",
    "f:resourceVersion",
)

Entries = tuple[ManagedFieldsEntry, ...]


def manager_of(request: Request) -> str:
    """The name under which the writes of a client are recorded whose options were checked."""
    return _written_name(request.param("fieldManager") or request.headers.get("user-agent", "").partition("/")[0])


@cached_where_short(256, longest=64)
def _written_name(name: str) -> str:
    if not name.isprintable():
        name = "".join(letter for letter in name if letter.isprintable())
    return name.encode()[:LONGEST_NAME].decode(errors="ignore") or "unknown"


def tracked(
    info: ResourceInfo, new: ObjectT, old: ObjectT | None, *, manager: str, subresource: str, now: str
) -> ObjectT:
    """The object with the managers of its fields; `old` is what was stored, None for a new object.

    A new object has the managers that its client names, and the client. One whose managers were forgotten has none
    until someone applies it.
    """
    writer = entry_of(info, manager, UPDATE, subresource, time=now)
    entries: Entries = new.metadata.managed_fields
    if old is None:
        created = _fields_of_new(info, new)
        if not entries:
            return _managed_by(new, (replace(writer, fields_v1=created),) if created else ())
        return _managed_by(new, in_order(_settled(given(entries) or (), created, writer)))
    if not entries:
        return new
    if is_custom(info.type):
        before, after = _apart(old, new)
        written, went = changed(before, after, info.type), gone(before, after, info.type)
    else:
        written, went = changes(*_unmanaged(old, new))
    if went:
        entries = tuple(replace(entry, fields_v1=surviving(entry.fields_v1 or {}, went)) for entry in entries)
    return _managed_by(new, in_order(_capped(_settled(entries, tracked_part(written), writer))))


def _managed_by(obj: ObjectT, entries: Entries) -> ObjectT:
    return replace(obj, metadata=replace(obj.metadata, managed_fields=entries))


def entry_of(
    info: ResourceInfo, manager: str, operation: str, subresource: str, *, time: str | None
) -> ManagedFieldsEntry:
    return ManagedFieldsEntry(
        manager=manager,
        operation=operation,
        api_version=info.group_version,
        time=time,
        fields_type=_FIELDS,
        subresource=subresource,
    )


def same_manager(one: ManagedFieldsEntry, other: ManagedFieldsEntry) -> bool:
    return (one.manager, one.operation, one.subresource) == (other.manager, other.operation, other.subresource)


def in_order(entries: Iterable[ManagedFieldsEntry]) -> Entries:
    """Those who apply first, then by age and name."""
    return tuple(
        sorted(entries, key=lambda entry: (entry.operation, entry.time or "", entry.manager, entry.subresource))
    )


def tracked_part(tree: Tree) -> Tree:
    """Without the fields that nobody owns."""
    found = {name: inner for name, inner in tree.items() if name not in _UNTRACKED}
    meta = {name: inner for name, inner in found.pop("f:metadata", {}).items() if name not in _UNTRACKED_META}
    return found | ({"f:metadata": meta} if meta.keys() - {"."} else {})


def everything(info: ResourceInfo, document: Any) -> Tree:
    """What the writer of the whole document would own."""
    return tracked_part(changed(_blank(info), document, info.type))


def without_times(entries: Entries) -> Entries:
    return tuple(replace(entry, time=None) for entry in entries)


def given(entries: Entries) -> Entries | None:
    """The entries that a client wrote itself, as a migration of managers does; None when they make no sense."""
    fine = all(
        entry.operation in (UPDATE, APPLY)
        and entry.fields_type == _FIELDS
        and well_formed(entry.fields_v1)
        and len(entry.manager.encode()) <= LONGEST_NAME
        for entry in entries
    )
    return entries if fine and entries else None


def _fields_of_new(info: ResourceInfo, new: Object) -> Tree:
    """What the client that makes an object owns of it: not its name, and not the status, which is not the client's."""
    meta = replace(new.metadata, name="", namespace="", uid="", creation_timestamp=None)
    anonymous = replace(new, metadata=meta)
    if is_custom(info.type):
        return _of_new(info, everything(info, codec.to_dict(anonymous)))
    recent = _recent(info)
    if (found := recent.find(anonymous)) is not None:
        return found[1]
    tree = _of_new(info, tracked_part(changes(info.type(), anonymous)[0]))
    if len(codec.encode(anonymous)) <= LONGEST_KEPT:
        recent.keep(anonymous, tree)
    return tree


def _of_new(info: ResourceInfo, written: Tree) -> Tree:
    return sorted_tree({name: inner for name, inner in written.items() if name != "f:status" or not info.has_status})


@lru_cache(maxsize=256)  # declared kinds come and go
def _recent(_info: ResourceInfo) -> Recent[Object, Tree]:
    """The fields of the last new objects: pods of one template differ in their names alone. Nobody changes a tree."""
    return Recent(MOST_RECENT)  # which fields there are does not depend on how an amount is written


def _apart(old: Object, new: Object) -> tuple[Any, Any]:
    """Both as documents, without what is the same in both, which is most of an object, and without their managers."""
    before, after = map(codec.to_dict, differing(*_unmanaged(old, new)))
    return before, after


def _unmanaged(old: Object, new: Object) -> tuple[Object, Object]:
    if old.metadata.managed_fields is new.metadata.managed_fields:
        return old, new
    one, other = (replace(version, metadata=replace(version.metadata, managed_fields=())) for version in (old, new))
    return one, other


@lru_cache(maxsize=1024)  # declared kinds come and go
def _blank(info: ResourceInfo) -> Any:
    """What a new object is compared with: members that upstream writes even when empty are there, so not owned."""
    return _with_containers(info.type, codec.to_dict(info.type()))


def _with_containers(kind: Kind, document: Any) -> Any:
    """Upstream writes the containers of a pod, or of a template, even when there are none."""
    if kind is PodSpec:
        return {**document, "containers": None}
    known = members(kind)
    inside = {name: known[name].item for name, value in document.items() if isinstance(value, dict)}
    return document | {name: _with_containers(item, document[name]) for name, item in inside.items() if item}


def _settled(
    entries: Iterable[ManagedFieldsEntry], written: Tree, writer: ManagedFieldsEntry
) -> Iterator[ManagedFieldsEntry]:
    """The entries after a write, the writer's among them. The writer's gets the time when a value of its own changed,
    another's when it lost a field.
    """
    found = False
    for entry in entries:
        owned = entry.fields_v1 or {}
        mine = not found and same_manager(entry, writer)
        found = found or mine
        if owned and (not written if mine else not meets(owned, written)):
            yield entry
        elif mine and owned and contains(owned, written):
            yield replace(entry, time=writer.time)
        elif kept := union(owned, written) if mine else without(owned, written):
            yield replace(entry, fields_v1=sorted_tree(kept), time=writer.time)
    if not found and written:
        yield replace(writer, fields_v1=sorted_tree(written))


def _capped(entries: Iterable[ManagedFieldsEntry]) -> list[ManagedFieldsEntry]:
    """The oldest of too many writers become one, so that an object with many of them stays small."""
    kept = list(entries)
    if len(kept) <= MOST_UPDATERS:
        return kept
    updaters = sorted((entry for entry in kept if entry.operation == UPDATE), key=lambda entry: entry.time or "")
    surplus = updaters[: len(updaters) - MOST_UPDATERS + 1] if len(updaters) > MOST_UPDATERS else []
    if not surplus:
        return kept
    newest = surplus[-1]
    fields = union_of(entry.fields_v1 or {} for entry in surplus)
    ancient = replace(newest, manager=ANCIENT, subresource="", fields_v1=fields)
    merged = set(map(id, surplus))  # comparing each with each takes a third of a second for as many as one may write
    return [entry for entry in kept if id(entry) not in merged] + [ancient]
