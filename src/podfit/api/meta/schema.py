"""Schemas of Structs for patching and field validation, derived from their annotations.

`members(Pod)` maps each JSON name to what it holds and how it merges. Nothing here is written twice: the answer comes
from the annotations in `api`, or from the schema of a custom resource, and is kept for each type.
"""

from collections.abc import Iterable
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from podfit.api.meta import codec
from podfit.api.meta.base import Listing, MicroTime, Struct, Time
from podfit.api.meta.member import Kind, Member, Node, Shape
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.structural.custom import Custom, is_custom
from podfit.api.structural.pruning import prune
from podfit.api.structural.shapes import SchemaNode
from podfit.core.quantity import Quantity

_PLAIN = Listing()
_TIMES = (Time, MicroTime)
_SCALARS = {str: "string", bytes: "string", int: "numeric", float: "numeric", bool: "boolean"}
_ZEROS = {str: "", bytes: "", Quantity: "0"}


@lru_cache(maxsize=8192)  # more than all built-in kinds need; those of custom resources come and go
def members(kind: Kind) -> dict[str, Member]:
    if isinstance(kind, Node):
        return kind.members()
    if issubclass(kind, Custom):
        return SchemaNode(kind.declared.schema, root=True).members()
    hints = get_type_hints(kind, include_extras=True)
    return {field.encode_name: _member(field.name, hints[field.name]) for field in msgspec.structs.fields(kind)}


def _member(attribute: str, hint: Any) -> Member:
    listing = _PLAIN
    hint = _without_none(hint)
    scalar = _scalar(hint)
    if get_origin(hint) is Annotated:
        hint, *notes = get_args(hint)
        listing = next((note for note in notes if isinstance(note, Listing)), _PLAIN)
        hint = _without_none(hint)
    if _is_struct(hint):
        return Member(attribute, "struct", hint, listing)
    origin = get_origin(hint)
    if origin is tuple:
        item = _without_none(get_args(hint)[0])
        struct = item if _is_struct(item) else None
        return Member(attribute, "list", struct, listing, keys=_keys(struct, listing), scalar=_scalar(item))
    if origin is dict:
        value = _without_none(get_args(hint)[1])
        shape: Shape = "any" if value is Any else "map"
        item = value if _is_struct(value) else None
        return Member(attribute, shape, item, listing, _ZEROS.get(value), scalar=_scalar(value))
    return Member(attribute, "any" if hint is Any else "scalar", None, listing, scalar=scalar)


def _scalar(hint: Any) -> str:
    """The type that its schema gives a value; times, amounts and what may be a number or a text have none."""
    bare = get_args(hint)[0] if get_origin(hint) is Annotated and hint not in _TIMES else hint
    return _SCALARS.get(bare, "")


def _keys(item: type[Struct] | None, listing: Listing) -> tuple[tuple[str, Any], ...]:
    empty = codec.to_dict(item()) if item and listing.keys else {}
    defaults = empty | dict(listing.key_defaults)
    return tuple((name, defaults.get(name)) for name in sorted(listing.keys))


def _without_none(hint: Any) -> Any:
    if get_origin(hint) in (Union, UnionType):
        kept = [arg for arg in get_args(hint) if arg is not type(None)]
        structs = [arg for arg in kept if _is_struct(arg)]
        return kept[0] if len(kept) == 1 else structs[0] if len(structs) == 1 else hint
    return hint


def _is_struct(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Struct)


def unknown_fields(
    document: Any, kind: Kind, path: str = "", *, first: bool = False, directives: bool = False, in_order: bool = False
) -> list[str]:
    """The paths of members that the kind does not have, in the document's order; with `first` an object's own come
    before what is inside its members, and with `in_order` names are looked at in their order. `directives`: it is a
    strategic merge patch, where `$patch` and its like are known."""
    if not isinstance(document, dict):
        return []
    if is_custom(kind):
        return _undeclared(document, kind)
    if all_known(document, kind):
        return []
    found: list[str] = []
    inside: list[str] = []
    known = members(kind)
    for name, value in sorted(document.items(), key=lambda pair: pair[0]) if in_order else document.items():
        here = f"{path}.{name}" if path else name
        member = known.get(name)
        if member is None:
            if not (directives and name.startswith("$")):
                found.append(here)
        elif member.item is not None:
            inside += _unknown_inside(value, member, here, first=first, directives=directives, in_order=in_order)
            if not first:
                found, inside = found + inside, []
    return found + inside


def all_known(document: dict[str, Any], kind: Kind) -> bool:
    """Whether there is nothing to report, which costs less to say than what and where."""
    known, nested = _names(kind)
    if not known.issuperset(document):
        return False
    for name, value in document.items():  # noqa: SIM110  (on the way of every write, a generator costs as much again)
        if name in nested and not all_known_inside(value, nested[name]):
            return False
    return True


def all_known_inside(value: Any, member: Member) -> bool:
    """Whether the objects in the value of a member have only members that they declare."""
    item, shape = member.item, member.shape
    if item is None:
        return True
    inside: Iterable[Any] = ()
    if isinstance(value, dict):
        if shape == "struct":
            return all_known(value, item)
        inside = value.values() if shape == "map" else ()
    elif isinstance(value, list) and shape == "list":
        inside = value
    for inner in inside:  # noqa: SIM110  (likewise)
        if isinstance(inner, dict) and not all_known(inner, item):
            return False
    return True


@lru_cache(maxsize=8192)  # as of `members`
def _names(kind: Kind) -> tuple[frozenset[str], dict[str, Member]]:
    """All names of members, and those members in which there are others."""
    found = members(kind)
    return frozenset(found), {name: member for name, member in found.items() if member.item is not None}


def _undeclared(document: dict[str, Any], kind: type[Custom]) -> list[str]:
    found = unknown_fields(document.get("metadata"), ObjectMeta, "metadata")
    prune(document, kind.declared.schema, found)
    return sorted(found)


def _unknown_inside(
    value: Any, member: Member, path: str, *, first: bool, directives: bool, in_order: bool
) -> list[str]:
    assert member.item is not None
    if member.shape == "struct":
        return unknown_fields(value, member.item, path, first=first, directives=directives, in_order=in_order)
    if member.shape == "list" and isinstance(value, list):
        pairs = [(f"{path}[{index}]", element) for index, element in enumerate(value)]
    elif member.shape == "map" and isinstance(value, dict):
        pairs = [(f"{path}.{name}", element) for name, element in value.items()]
    else:
        return []
    return [
        field
        for here, element in pairs
        for field in unknown_fields(element, member.item, here, first=first, directives=directives, in_order=in_order)
    ]
