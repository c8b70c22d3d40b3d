"""What a write changes, from two versions of an object; only what differs in them becomes documents.

A write changes a few fields of an object with a hundred. Structs say quicker than documents what is equal: the same
value is the same object, and equal values of most kinds are told in C. Quantities are compared as they are written:
`1Gi` and `1073741824` are one amount, but two texts.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import compress
from operator import attrgetter, is_not
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec.structs import astuple

from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.meta import codec
from podfit.api.meta.alike import may_hold_amounts, written_otherwise
from podfit.api.meta.base import Document, Struct
from podfit.api.meta.member import Member
from podfit.api.meta.schema import members
from podfit.api.structural.custom import is_custom
from podfit.apiserver.registry.apply.compare import Gone, added, gone, part_compared
from podfit.apiserver.registry.apply.owned_fields import CONTAINERS, Shape, divisible, item_name, name_by_key, struct_of
from podfit.apiserver.registry.apply.sets import Tree

S = TypeVar("S", bound=Struct)
Items: TypeAlias = tuple[Any, ...]


WRITTEN = ((PodSpec, "containers"),)
"""Upstream writes the containers of a pod, or of a template, even when there are none."""


class _Part(NamedTuple):
    """A member: which of its items' attributes tell them apart, if any do, and what these are of an item, whether
    amounts are inside, and what it holds, or what makes it, where it is not written. A custom resource has no schema of
    its members here. `leaf`: it is owned as a whole, whatever it holds; `plain_map`: a map of which each value is."""

    attribute: str
    keys: tuple[str, ...]
    amounts: bool
    keys_of: Callable[[Any], Any]
    name: str
    schema: Member | None
    unwritten: Any
    factory: Any
    leaf: bool
    plain_map: bool

    def writes(self, value: object) -> bool:
        """What the encoder writes: what is the default itself is left out, and an empty dict where one is made."""
        if self.factory is dict:
            return bool(value)
        return value is not self.unwritten


def changes(old: S, new: S) -> tuple[Tree, Gone]:
    """The changes as `changed` and `gone` say them of their documents: what `new` has that `old` has not or has
    otherwise, and what is gone. Not for custom resources, whose contents are documents."""
    tree, went = _changes(old, new)
    return tree or {}, went


def _others(old: Struct, new: Struct) -> Iterator[tuple[_Part, Any, Any]]:
    """The members that are not the very same in both, told in C: of a hundred there are few."""
    left, right = astuple(old), astuple(new)
    kind: Any = type(old)
    return compress(zip(_parts(kind), left, right, strict=True), map(is_not, left, right))


def _changes(old: Struct, new: Struct) -> tuple[Tree | None, Gone]:
    tree: Tree = {}
    went: Gone = {}
    for part, before, after in _others(old, new):
        if before == after and not (part.amounts and written_otherwise(before, after)):
            continue
        name = f"f:{part.name}"
        if after is part.unwritten or not part.writes(after):
            if part.writes(before):
                went[name] = None
            continue
        if part.leaf:
            changed: Tree | None = {}
        elif part.writes(before):
            changed, inside = _member_changes(part, before, after)
            if inside:
                went[name] = inside
        else:
            changed = _added(after, part.schema)
        if changed is not None:
            tree[name] = changed
    return tree or None, went


def _added(value: Any, shape: Shape) -> Tree:
    document = codec.document_of(value)
    return added(document, shape) if isinstance(document, CONTAINERS) else {}


def _member_changes(part: _Part, before: Any, after: Any) -> tuple[Tree | None, Gone]:
    if isinstance(before, Struct) and isinstance(after, Struct) and struct_of(part.schema) is not None:
        return _changes(before, after)
    if part.keys and before is not None and after is not None:
        known, there, name_of = _told_apart(part, before, after)
        if len(known) == len(before) and len(there) == len(after):
            return _item_changes(part, known, there, name_of)
    if part.plain_map:
        return _entry_changes(before, after)
    one, other = codec.document_of(before), codec.document_of(after)
    if isinstance(one, CONTAINERS) or isinstance(other, CONTAINERS):
        tree, lost = part_compared(one, other, part.schema)
        return tree, gone(one, other, part.schema) if lost else {}
    return ({} if one != other else None), {}


def _entry_changes(before: Document, after: Document) -> tuple[Tree | None, Gone]:
    """The changes of maps whose values are owned as a whole."""
    tree: Tree = {
        f"f:{name}": {}
        for name, value in after.items()
        if name not in before or before[name] != value or written_otherwise(before[name], value)
    }
    return tree or None, {f"f:{name}": None for name in before if name not in after}


def _told_apart(part: _Part, before: Items, after: Items) -> tuple[Document, Document, Callable[[str], str]]:
    """The items by what tells them apart, fewer than there are where some are not told apart; and the name of one. A
    text that is the only key does it by itself: of the names only those are made that are asked for."""
    if len(part.keys) == 1:
        one, other = list(map(part.keys_of, before)), list(map(part.keys_of, after))
        if all(one) and all(other) and {*map(type, one), *map(type, other)} <= {str}:
            assert part.schema is not None
            [key] = part.schema.listing.keys
            known, there = dict(zip(one, before, strict=True)), dict(zip(other, after, strict=True))
            return known, there, lambda text: name_by_key(text, key)
    return {_item_name(part, item): item for item in before}, {_item_name(part, item): item for item in after}, str


def _item_changes(
    part: _Part, before: Document, after: Document, name_of: Callable[[str], str]
) -> tuple[Tree | None, Gone]:
    """The changes of lists whose items are told apart by their keys."""
    tree: Tree = {}
    went: Gone = {name_of(key): None for key in before if key not in after}
    assert part.schema is not None
    whole = struct_of(part.schema.item) is None
    for key, other in after.items():
        mine = before.get(key)
        if mine is other or (mine == other and not (part.amounts and written_otherwise(mine, other))):
            continue
        name = name_of(key)
        if mine is None:
            changed: Tree | None = _added(other, part.schema.item)
        elif whole:
            changed = {}
        else:
            changed, inside = _changes(mine, other)
            if inside:
                went[name] = inside
        if changed is not None:
            tree[name] = changed
    return tree or None, went


def _item_name(part: _Part, item: Any) -> str:
    assert part.schema is not None
    named = zip(part.schema.listing.keys, part.keys, strict=True)
    keys = {name: value for name, key in named if (value := getattr(item, key))}  # an empty one is not written
    return item_name(keys, part.schema)


def differing(old: S, new: S) -> tuple[S, S]:
    """Both with what is equal left empty, in the objects inside of them too."""
    left: Document = {}
    right: Document = {}
    for part, before, after in _others(old, new):
        if before == after and not (part.amounts and written_otherwise(before, after)):
            continue
        if isinstance(before, Struct) and isinstance(after, Struct):
            before, after = differing(before, after)
        left[part.attribute], right[part.attribute] = before, after
    kind = type(old)
    return kind(**left), kind(**right)


@lru_cache(maxsize=1024)  # declared kinds come and go
def _parts(kind: type[Struct]) -> tuple[_Part, ...]:
    """The parts; of a custom resource only the whole members."""
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    known = {} if is_custom(kind) else {member.attribute: (name, member) for name, member in members(kind).items()}
    hints = {name: hint for base in kind.__mro__ for name, hint in vars(base).get("__annotations__", {}).items()}
    parts = []
    for attribute in kind.__struct_fields__:
        name, member = known.get(attribute, (attribute, None))
        field = fields[attribute]
        keys = _keys(member) if member is not None else ()
        amounts = bool(known) and may_hold_amounts(hints[attribute])
        unwritten = None if (kind, attribute) in WRITTEN else field.default
        leaf = member is not None and member.shape != "any" and not divisible(member)
        plain_map = member is not None and member.shape == "map" and member.item is None and divisible(member)
        keys_of = attrgetter(*(keys or (attribute,)))
        parts.append(
            _Part(
                attribute=attribute,
                keys=keys,
                amounts=amounts,
                keys_of=keys_of,
                name=name,
                schema=member,
                unwritten=unwritten,
                factory=field.default_factory,
                leaf=leaf,
                plain_map=plain_map,
            )
        )
    return tuple(parts)


def _keys(member: Member) -> tuple[str, ...]:
    """The attributes that tell items apart where each is owned by itself."""
    if member.listing.atomic or not member.listing.keys or not isinstance(member.item, type):
        return ()
    inside = members(member.item)
    return tuple(inside[name].attribute for name in member.listing.keys)
