"""Field sets: how a document divides into fields that can be owned by themselves.

The Structs say it: a struct into its members, a map into its keys, a list into its items when they have keys or are a
set. What is atomic, or a list of neither kind, is owned as a whole. The names of parts are those that travel in
managedFields: `f:name` for a member, `k:{…}` for an item by its keys, `v:…` for an item of a set.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from podfit.api.meta.base import Document
from podfit.api.meta.member import Kind, Member
from podfit.api.meta.schema import members
from podfit.core.bounded_cache import cached_where_short

Shape: TypeAlias = Kind | Member | None
"""How a value is built: an object, a field, or a scalar, what is owned as a whole, or what nobody declared."""
Parts: TypeAlias = dict[str, tuple[Any, Shape]]


CONTAINERS = (dict, list)
"""What can fall apart at all: of tens of thousands of keys with texts, each is looked at no closer."""


class Several(tuple[Any, ...]):
    """Items of a list that claim the same keys: they can only be told from others together."""


def parts(value: object, shape: Shape) -> Parts | None:
    """What can be owned below a value, by its name; None when it is owned as a whole."""
    granular = False
    if isinstance(shape, Member):
        granular = shape.listing.granular
        if shape.listing.atomic:
            return None
        if isinstance(value, list):
            return _items(value, shape)
        if shape.shape == "map" and isinstance(value, dict):
            return {f"f:{name}": (inner, shape.item) for name, inner in value.items()}
        shape = shape.item if shape.shape == "struct" else None
    if not isinstance(value, dict) or (shape and shape.whole and not granular):
        return None
    known = members(shape) if shape else {}
    return {f"f:{name}": (inner, known.get(name)) for name, inner in value.items()}


def struct_of(shape: Shape) -> Kind | None:
    """The kind whose members such a value falls into, if it does."""
    if not isinstance(shape, Member):
        return None if shape is None or shape.whole else shape
    listing, kind = shape.listing, shape.item
    if kind is None or shape.shape != "struct" or listing.atomic or (kind.whole and not listing.granular):
        return None
    return kind


def divisible(shape: Shape) -> bool:
    """Whether values of this shape fall apart, empty ones too."""
    if isinstance(shape, Member):
        if shape.listing.atomic or shape.listing.granular:
            return shape.listing.granular
        if shape.shape == "list":
            return shape.listing.set_ or bool(shape.listing.keys)
        if shape.shape == "map":
            return True
        shape = shape.item if shape.shape == "struct" else None
    return shape is not None and not shape.whole


def named(shape: Shape) -> bool:
    """Whether the parts of such a value are members that a Struct declares, which are there for their contents."""
    return shape is not None and (not isinstance(shape, Member) or shape.shape == "struct")


def joined(like: object, parts: Mapping[str, Any]) -> Any:
    """A list or a map, as `like` is, of parts by name."""
    if not isinstance(like, list):
        return {name[2:]: value for name, value in parts.items()}
    return [owned for value in parts.values() for owned in (value if isinstance(value, Several) else (value,))]


def item_name(item: Any, member: Member) -> str:
    """The name of an item of a list that has keys or is a set. What should have keys and has none, because it is no
    object, is refused later on; until then it goes by its value."""
    if member.listing.set_ or not isinstance(item, dict):
        return f"v:{_text(item)}"
    if len(member.keys) == 1 and isinstance(key := item.get(member.keys[0][0]), str):
        return name_by_key(key, member.keys[0][0])
    keys: Document = {}
    for name, default in member.keys:
        value = item.get(name)
        if value is None:
            value = default
        if value is not None:
            keys[name] = value
    return f"k:{_text(keys)}"


@cached_where_short(1024, longest=64)
def name_by_key(value: str, name: str) -> str:
    """The name of an item that one key tells apart."""
    return f"k:{_text({name: value})}"


def _items(value: Iterable[Any], member: Member) -> Parts | None:
    if not member.listing.set_ and not member.listing.keys:
        return None
    found: Parts = {}
    for item in value:
        name = item_name(item, member)
        if name in found:
            before = found[name][0]
            found[name] = Several((*(before if isinstance(before, Several) else (before,)), item)), None
        else:
            found[name] = item, member.item
    return found


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()
