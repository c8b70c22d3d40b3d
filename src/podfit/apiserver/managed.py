"""managedFields: which manager last wrote which field (R-011).

A write is compared with what was stored: its manager comes to own what it added or changed, others lose that, and what
is gone belongs to nobody. A set of fields is a tree in the form that travels (FieldsV1): `f:name` for a member, `k:{…}`
for an item of a list by its keys, `v:…` for an item of a set; an empty node is a field that is owned itself, `.` says
so of one that has owned fields below it.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from podfit.api import codec
from podfit.api.base import Struct
from podfit.api.core.pods import Pod
from podfit.api.meta import ManagedFieldsEntry
from podfit.api.registry import ResourceInfo
from podfit.api.schema import Member, members
from podfit.apiserver.bodies import options_kind
from podfit.core.fields import refusal, too_long
from podfit.net.wire import Request

Tree: TypeAlias = dict[str, Any]
Shape: TypeAlias = type[Struct] | Member | None
"""How a value is built: an object, a field, or a scalar and what is owned as a whole."""

LONGEST_NAME = 128
NO_MANAGERS = (ManagedFieldsEntry(),)
"""What a client sends to have everyone forgotten: `managedFields: [{}]`."""
_SELF = "."
_UNTRACKED = ("f:apiVersion", "f:kind")
_UNTRACKED_META = (
    "f:name", "f:namespace", "f:creationTimestamp", "f:selfLink", "f:uid", "f:generation", "f:managedFields",
    "f:resourceVersion",
)  # fmt: skip
_ABSENT = object()


def manager_of(request: Request) -> str:
    """The name under which a client's writes are recorded. Raises 422 for one that is too long."""
    given = request.param("fieldManager")
    if len(given.encode()) > LONGEST_NAME:
        raise refusal(options_kind(request), "", [too_long("fieldManager", LONGEST_NAME)], group="meta.k8s.io")
    name = given or request.headers.get("user-agent", "").partition("/")[0]
    return "".join(letter for letter in name if letter.isprintable())[:LONGEST_NAME] or "unknown"


def tracked(info: ResourceInfo, new: Any, old: Any, *, manager: str, subresource: str, now: str) -> Any:
    """The object with the managers of its fields; `old` is what was stored, None for a new object."""
    before = _blank(info) if old is None else codec.to_dict(old)
    after = codec.to_dict(new)
    written = _tracked_part(_changed(before, after, info.type) or {})
    if old is None and any(each.name == "status" for each in info.subresources):
        written.pop("f:status", None)  # not the client's to write
    entries = () if old is None else new.metadata.managed_fields
    if _lost(before, after, info.type):
        entries = tuple(replace(each, fields_v1=_existing(each.fields_v1 or {}, after, info.type)) for each in entries)
    writer = ManagedFieldsEntry(
        manager=manager, operation="Update", api_version=info.group_version, time=now, fields_type="FieldsV1",
        subresource=subresource,
    )  # fmt: skip
    fields = tuple(_settled(entries, written, writer))
    return replace(new, metadata=replace(new.metadata, managed_fields=fields))


@cache
def _blank(info: ResourceInfo) -> Any:
    """What a new object is compared with: members that upstream writes even when empty are there, so not owned."""
    document = codec.to_dict(info.type())
    if info.type is Pod:
        document["spec"]["containers"] = None
    return document


def _settled(
    entries: Iterable[ManagedFieldsEntry], written: Tree, writer: ManagedFieldsEntry
) -> Iterator[ManagedFieldsEntry]:
    """The entries after a write, the writer's among them; only those that changed get the writer's time."""
    found = False
    for entry in entries:
        owned = entry.fields_v1 or {}
        mine = not found and _same_manager(entry, writer)
        found = found or mine
        kept = _union(owned, written) if mine else _without(owned, written)
        if kept == owned and owned:
            yield entry
        elif kept:
            yield replace(entry, fields_v1=kept, time=writer.time)
    if not found and written:
        yield replace(writer, fields_v1=written)


def _same_manager(one: ManagedFieldsEntry, other: ManagedFieldsEntry) -> bool:
    return (one.manager, one.operation, one.subresource) == (other.manager, other.operation, other.subresource)


def _tracked_part(tree: Tree) -> Tree:
    found = {name: inner for name, inner in tree.items() if name not in _UNTRACKED}
    meta = {name: inner for name, inner in found.pop("f:metadata", {}).items() if name not in _UNTRACKED_META}
    return found | ({"f:metadata": meta} if meta else {})


def _changed(before: Any, after: Any, kind: Shape) -> Tree | None:
    """What `after` has that `before` has not or has otherwise; None when there is nothing."""
    if before == after:
        return None
    parts = _parts(after, kind)
    if parts is None:
        return {}
    tree: Tree = {} if before is not _ABSENT else {_SELF: {}}
    known = _parts(before, kind) or {}
    for name, (value, inner) in parts.items():
        found = _changed(known[name][0] if name in known else _ABSENT, value, inner)
        if found is not None:
            tree[name] = found
    if not tree:
        return None
    return {} if tree.keys() == {_SELF} else tree


def _parts(value: Any, kind: Shape) -> dict[str, tuple[Any, Shape]] | None:
    """What can be owned below a value, by its name in a tree; None when it is owned as a whole."""
    if isinstance(kind, Member):
        if kind.listing.atomic:
            return None
        if isinstance(value, list):
            return _items(value, kind)
        if kind.shape == "map" and isinstance(value, dict):
            return {f"f:{name}": (inner, kind.item) for name, inner in value.items()}
        kind = kind.item if kind.shape == "struct" else None
    if not isinstance(value, dict):
        return None
    known = members(kind) if kind else {}
    return {f"f:{name}": (inner, known.get(name)) for name, inner in value.items()}


def _items(value: list[Any], member: Member) -> dict[str, tuple[Any, Shape]] | None:
    if member.listing.set_:
        return {f"v:{_text(item)}": (item, None) for item in value}
    if not member.listing.keys:
        return None
    names = sorted(member.listing.keys)
    return {f"k:{_text({name: item[name] for name in names if name in item})}": (item, member.item) for item in value}


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _owned(tree: Tree) -> bool:
    return not tree or _SELF in tree


def _node(owned: bool, inner: Tree) -> Tree | None:
    """A node of a tree; None when nothing of it is owned."""
    if not inner:
        return {} if owned else None
    return {_SELF: {}, **inner} if owned else inner


def _below(tree: Tree) -> Iterable[tuple[str, Tree]]:
    return ((name, inner) for name, inner in tree.items() if name != _SELF)


def _union(one: Tree, other: Tree) -> Tree:
    """At the top, where no node is owned itself."""
    merged = dict(one)
    for name, inner in other.items():
        if name not in merged:
            merged[name] = inner
        else:
            mine = merged[name]
            both = _union(dict(_below(mine)), dict(_below(inner)))
            merged[name] = _node(_owned(mine) or _owned(inner), both) or {}
    return merged


def _without(tree: Tree, taken: Tree) -> Tree:
    kept: Tree = {}
    for name, inner in _below(tree):
        loss = taken.get(name)
        left = inner if loss is None else _node(_owned(inner) and not _owned(loss), _without(inner, loss))
        if left is not None:
            kept[name] = left
    return kept


def _lost(before: Any, after: Any, kind: Shape) -> bool:
    """Whether anything that was there is gone."""
    if before == after:
        return False
    left = _parts(after, kind) or {}
    parts = _parts(before, kind) or {}
    return any(name not in left or _lost(value, left[name][0], inner) for name, (value, inner) in parts.items())


def _existing(tree: Tree, document: Any, kind: Shape) -> Tree:
    """The part of the tree that the document still has."""
    parts = _parts(document, kind) or {}
    kept: Tree = {}
    for name, inner in _below(tree):
        if name in parts:
            left = _node(_owned(inner), _existing(inner, *parts[name]))
            if left is not None:
                kept[name] = left
    return kept
