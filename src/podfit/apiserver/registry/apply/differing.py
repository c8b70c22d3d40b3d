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
from msgspec.structs import astuple, replace

from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.meta import codec
from podfit.api.meta.alike import may_hold_amounts, written_otherwise
from podfit.api.meta.base import Document, Struct
from podfit.api.meta.member import Member
from podfit.api.meta.schema import members
from podfit.api.structural.custom import is_custom
from podfit.apiserver.registry.apply.compare import added, part_compared
from podfit.apiserver.registry.apply.owned_fields import CONTAINERS, divisible, item_name, name_by_key, struct_of
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
        """As the encoder decides it: what is the default itself is left out, and an empty dict where one is made."""
        if self.factory is dict:
            return bool(value)
        return value is not self.unwritten


def changes(old: S, new: S) -> tuple[Tree, bool]:
    """As `compared` says it of their documents: what `new` has that `old` has not or has otherwise, and whether
    anything that was there is gone. Not for custom resources, whose contents are documents."""
    tree, gone = _changes(old, new)
    return tree or {}, gone


def _others(old: Struct, new: Struct) -> Iterator[tuple[_Part, Any, Any]]:
    """The members that are not the very same in both, told in C: of a hundred there are few."""
    left, right = astuple(old), astuple(new)
    kind: Any = type(old)
    return compress(zip(_parts(kind), left, right, strict=True), map(is_not, left, right))


def _changes(old: Struct, new: Struct) -> tuple[Tree | None, bool]:
    tree: Tree = {}
    gone = False
    for part, before, after in _others(old, new):
        if before == after and not (part.amounts and written_otherwise(before, after)):
            continue
        if not part.writes(after):
            gone = gone or part.writes(before)
            continue
        if part.leaf:
            changed: Tree | None = {}
        elif part.writes(before):
            changed, lost = _member_changes(part, before, after)
            gone = gone or lost
        else:
            document = codec.document_of(after)
            changed = added(document, part.schema) if isinstance(document, CONTAINERS) else {}
        if changed is not None:
            tree[f"f:{part.name}"] = changed
    return tree or None, gone


def _member_changes(part: _Part, before: Any, after: Any) -> tuple[Tree | None, bool]:
    if isinstance(before, Struct) and isinstance(after, Struct) and struct_of(part.schema) is not None:
        return _changes(before, after)
    if part.keys and _alike(before, after, part.keys_of):
        return _item_changes(part, before, after)
    if part.plain_map:
        return _entry_changes(before, after)
    one, other = codec.document_of(before), codec.document_of(after)
    if isinstance(one, CONTAINERS) or isinstance(other, CONTAINERS):
        return part_compared(one, other, part.schema)
    return ({} if one != other else None), False


def _entry_changes(before: Document, after: Document) -> tuple[Tree | None, bool]:
    """Of maps whose values are owned as a whole."""
    tree: Tree = {
        f"f:{name}": {}
        for name, value in after.items()
        if name not in before or before[name] != value or written_otherwise(before[name], value)
    }
    return tree or None, not before.keys() <= after.keys()


def _item_changes(part: _Part, before: Items, after: Items) -> tuple[Tree | None, bool]:
    """Of lists whose items are the same ones."""
    tree: Tree = {}
    gone = False
    assert part.schema is not None
    whole = struct_of(part.schema.item) is None
    for mine, other in zip(before, after, strict=True):
        if mine is other or (mine == other and not (part.amounts and written_otherwise(mine, other))):
            continue
        if whole:
            changed: Tree | None = {}
        else:
            changed, lost = _changes(mine, other)
            gone = gone or lost
        if changed is not None:
            tree[_item_name(part, mine)] = changed
    return tree or None, gone


def _item_name(part: _Part, item: Any) -> str:
    assert part.schema is not None
    names = part.schema.listing.keys
    if len(names) == 1 and type(key := part.keys_of(item)) is str and key:
        return name_by_key(key, names[0])
    named = zip(names, part.keys, strict=True)
    keys = {name: value for name, key in named if (value := getattr(item, key))}  # an empty one is not written
    return item_name(keys, part.schema)


def differing(old: S, new: S) -> tuple[S, S]:
    """Both with what is equal left empty, at every depth; the keys of items stay."""
    left: Document = {}
    right: Document = {}
    for part, before, after in _others(old, new):
        name, keys, amounts = part.attribute, part.keys, part.amounts
        if before == after and not (amounts and written_otherwise(before, after)):
            continue
        if isinstance(before, Struct) and isinstance(after, Struct):
            before, after = differing(before, after)
        elif keys and _alike(before, after, part.keys_of):
            before, after = _items(before, after, keys)
        left[name], right[name] = before, after
    kind = type(old)
    return kind(**left), kind(**right)


def _items(before: Items, after: Items, keys: tuple[str, ...]) -> tuple[Items, Items]:
    """Those that differ, of lists that are alike."""
    left: list[Any] = []
    right: list[Any] = []
    for mine, other in zip(before, after, strict=True):
        if mine is other or (mine == other and not written_otherwise(mine, other)):
            continue
        named = {key: getattr(mine, key) for key in keys}
        one, two = differing(mine, other)
        left.append(replace(one, **named))
        right.append(replace(two, **named))
    return tuple(left), tuple(right)


def _alike(before: Items | None, after: Items | None, keys_of: Callable[[Any], Any]) -> bool:
    """Whether both are the same items in the same order, each with keys of its own."""
    if before is None or after is None or len(before) != len(after):
        return False
    names = [*map(keys_of, before)]
    return names == [*map(keys_of, after)] and len(set(names)) == len(names)


@lru_cache(maxsize=1024)  # declared kinds come and go
def _parts(kind: type[Struct]) -> tuple[_Part, ...]:
    """Of a custom resource only the whole members."""
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
