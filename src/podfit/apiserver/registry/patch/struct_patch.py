"""A patch put into a typed object: what it does not name stays the very same part, and only what it names is converted.

Strategic merge patches and merge patches without directives come to the same here as in the whole document, which
`strategic` and `mergepatch` read where a patch is anything else: `Unusual`, or what the codec raises, says so. Whoever
comes after sees by identity what a write is about.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from podfit.api.meta import codec
from podfit.api.meta.alike import written_otherwise
from podfit.api.meta.base import Document, Struct
from podfit.api.meta.defaulting import empties
from podfit.api.meta.member import Member
from podfit.api.meta.schema import all_known, all_known_inside, members
from podfit.apiserver.registry.patch import mergepatch, strategic
from podfit.apiserver.registry.patch.order import ordered

S = TypeVar("S", bound=Struct)
_NESTED = (dict, list)
_PLAIN = frozenset((str, int, bool))
_OMITTED = (msgspec.NODEFAULT, list, dict)
"""What makes the values of fields that are left out of a document when they are empty."""


class Unusual(Exception):
    """The patch has to be put into the whole document."""


class _Field(NamedTuple):
    """`empty` is what it holds when a document does not have it; `always`: one written by this server does. `key` is
    the attribute by which the items of a list are merged."""

    name: str
    attribute: str
    member: Member
    empty: Any
    always: bool
    key: str


def patched(old: S, patch: Document, *, merge_lists: bool) -> S:
    """The object after the patch; `merge_lists`: it is a strategic one. Raises Unusual, also for members that the kind
    does not have; what the codec raises for a value that does not fit."""
    kind = type(old)
    known = _fields(kind)
    if not patch.keys() <= known.keys():
        raise Unusual
    made: Document = {}
    rest = patch
    if nested := [name for name, value in patch.items() if type(value) not in _PLAIN]:
        rest = {name: value for name, value in patch.items() if type(value) in _PLAIN}
        for name in nested:
            field = known[name]
            part = _part(field, getattr(old, field.attribute), patch[name], made, merge_lists=merge_lists)
            if part is not None:
                rest[name] = part
    if rest:
        typed = codec.convert(rest, kind)
        for name in rest:
            attribute = known[name].attribute
            value = getattr(typed, attribute)
            given = patch[name]
            made[attribute] = _merged(getattr(old, attribute), value, given) if type(given) is dict else value
    changed: Document = {}
    for attribute, value in made.items():
        held = getattr(old, attribute)
        if held is not value and (held != value or written_otherwise(held, value)):
            changed[attribute] = value
    return replace(old, **changed) if changed else old


def _part(field: _Field, held: Any, value: Any, made: Document, *, merge_lists: bool) -> Any:
    """What of a value has to be converted; None where it is `made` already."""
    if value is None:
        made[field.attribute] = field.empty
        return None
    if isinstance(value, dict):
        if field.member.shape != "struct":
            return _entries(field, value, merge_lists=merge_lists)
        made[field.attribute] = _inside(field, held, value, merge_lists=merge_lists)
        return None
    if isinstance(value, list):
        if not (merge_lists and field.key and held):
            return _replaced(field, held, value, merge_lists=merge_lists)
        made[field.attribute] = _items(field, held, value)
        return None
    return strategic.scalar(value) if merge_lists else value


def _inside(field: _Field, held: Any, value: Document, *, merge_lists: bool) -> Any:
    kind = field.member.item
    if not isinstance(kind, type) or (merge_lists and field.member.listing.replaced):
        raise Unusual
    return patched(kind() if held is None else held, value, merge_lists=merge_lists)


def _entries(field: _Field, value: Document, *, merge_lists: bool) -> Document:
    """What a patch puts into a map of plain values."""
    if field.member.shape != "map" or field.member.listing.replaced:
        raise Unusual
    if any(isinstance(inner, _NESTED) for inner in value.values()):
        raise Unusual
    given = {name: inner for name, inner in value.items() if inner is not None}
    return {name: strategic.scalar(inner) for name, inner in given.items()} if merge_lists else given


def _merged(held: Document, given: Document, patch: Document) -> Document:
    merged = {**held, **given}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
    return merged


def _replaced(field: _Field, held: Any, value: list[Any], *, merge_lists: bool) -> Any:
    """A list that is not merged item by item, or with which there is nothing to merge."""
    _check_known(all_known_inside(value, field.member))
    if not merge_lists:
        return mergepatch.pruned(value)
    listing = field.member.listing
    if (listing.set_ and listing.patched) or (field.always and not held):
        raise Unusual
    return value if held else strategic.taken(value)


def _check_known(known: bool) -> None:
    if not known:
        raise Unusual


def _items(field: _Field, held: tuple[Any, ...], given: list[Any]) -> tuple[Any, ...]:
    """A list whose items the patch names by their keys, each of which is there once."""
    kind, merge_key = field.member.item, field.member.listing.merge_key
    if not isinstance(kind, type) or field.member.listing.replaced:
        raise Unusual
    live = [getattr(item, field.key) for item in held]
    named = [_key(item, merge_key) for item in given]
    merged = dict(zip(live, held, strict=True))
    if not all(live) or len(merged) < len(live):
        raise Unusual
    if named == live:
        return tuple([patched(mine, item, merge_lists=True) for mine, item in zip(held, given, strict=True)])
    if len(set(named)) < len(named):
        raise Unusual
    for item, key in zip(given, named, strict=True):
        mine = merged.get(key)
        merged[key] = patched(mine, item, merge_lists=True) if mine is not None else _new(item, kind)
    return tuple([merged[key] for key in ordered([*merged], named, live, "")])


def _key(item: object, merge_key: str) -> str | int:
    key = item.get(merge_key) if isinstance(item, dict) else None
    if type(key) is str or type(key) is int:
        return key
    raise Unusual


def _new(item: Document, kind: type[Struct]) -> Struct:
    _check_known(all_known(item, kind))
    return codec.convert(strategic.new_item(item), kind)


@lru_cache(maxsize=1024)
def _fields(kind: type[Struct]) -> dict[str, _Field]:
    given = empties(kind)
    always = {field.name for field in msgspec.structs.fields(kind) if field.default_factory not in _OMITTED}
    return {
        name: _Field(
            name, member.attribute, member, given[member.attribute], member.attribute in always, _key_of(member)
        )
        for name, member in members(kind).items()
    }


def _key_of(member: Member) -> str:
    if member.shape != "list" or not member.listing.merge_key or not isinstance(member.item, type):
        return ""
    return members(member.item)[member.listing.merge_key].attribute


def is_plain(patch: object, body: bytes, own: Iterable[str] = ("kind", "apiVersion")) -> bool:
    """Whether a patch is about members of an object, and not about what it is or how its parts are put together: no
    name in it begins with `$`, not even one that is written by its number."""
    return isinstance(patch, dict) and patch.keys().isdisjoint(own) and b'"$' not in body and b"\\u" not in body
