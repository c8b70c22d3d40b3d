"""A patch put into a typed object: what it does not name stays the very same part, and only what it names is converted.

Merge patches, and strategic ones whose only directives are those that clients write of lists with keys (the order of
the items, and items that go), come to the same here as in the whole document, which `mergepatch` and `strategic` read
where a patch is anything else: `Unusual`, or what the codec raises, says so. Whoever comes after sees by identity what
a write is about.
"""

from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import replace

from podfit.api.meta import codec
from podfit.api.meta.alike import may_hold_amounts, written_otherwise
from podfit.api.meta.base import Document, Struct
from podfit.api.meta.defaulting import empties
from podfit.api.meta.member import Member
from podfit.api.meta.schema import all_known, all_known_inside, members
from podfit.apiserver.registry.patch import mergepatch, strategic
from podfit.apiserver.registry.patch.order import ordered
from podfit.apiserver.request.canonical import TIMES, canonical
from podfit.core import go_time
from podfit.core.bounded_cache import cached_where_short

S = TypeVar("S", bound=Struct)
_NESTED = (dict, list)
_PLAIN = frozenset((str, int, bool))
_OMITTED = (msgspec.NODEFAULT, list, dict)
"""What makes the values of fields that are left out of a document when they are empty."""
MOST_TIMES, LONGEST_TIME = 1024, 40
"""Those that were looked at last; letters."""


class Unusual(Exception):
    """The patch has to be put into the whole document."""


class _Field(NamedTuple):
    """`empty` is what it holds when a document does not have it; `always`: one written by this server does. `key` is
    the attribute by which the items of a list are merged. Of a value of the type `plain` that `fits` nothing has to be
    converted; `amounts`: there may be some in it."""

    attribute: str
    member: Member
    empty: Any
    always: bool
    key: str
    plain: type | None
    fits: Callable[[Any], bool] | None
    amounts: bool


def patched(old: S, patch: Document, *, merge_lists: bool) -> S:
    """The object after the patch; `merge_lists`: it is a strategic one. Raises Unusual, also for members that the kind
    does not have; what the codec raises for a value that does not fit."""
    kind = type(old)
    known = _fields(kind)
    changed: Document = {}
    for name, value in _values(old, patch, known, merge_lists=merge_lists).items():
        field = known[name]
        held = getattr(old, field.attribute)
        if held is not value and (held != value or (field.amounts and written_otherwise(held, value))):
            changed[field.attribute] = value
    return replace(old, **changed) if changed else old


def _values(old: Struct, patch: Document, known: dict[str, _Field], *, merge_lists: bool) -> Document:
    """What each member that the patch names comes to hold. Most are texts and numbers, which are taken as they are."""
    made: Document = {}
    rest: Document = {}
    for name, value in patch.items():
        field = known.get(name)
        if field is None:
            if not (merge_lists and _orders_items(name, old, patch, known)):
                raise Unusual
            continue
        kind = type(value)
        if kind is field.plain and (field.fits is None or field.fits(value)):
            made[name] = value
            continue
        held = getattr(old, field.attribute)
        if kind is list and merge_lists and field.key and held:
            made[name] = _items(field, held, value, patch.get(f"{strategic.ORDER_PREFIX}/{name}"))
            continue
        part = value if kind in _PLAIN else _part(name, field, held, value, made, merge_lists=merge_lists)
        if part is not None:
            rest[name] = part
    if rest:
        typed = _converted(rest, type(old))
        for name in rest:
            attribute, given = known[name].attribute, patch[name]
            value = getattr(typed, attribute)
            made[name] = _merged(getattr(old, attribute), value, given) if type(given) is dict else value
    return made


def _orders_items(name: str, old: Struct, patch: Document, known: dict[str, _Field]) -> bool:
    """Whether a member that the kind does not have says in which order the patch wants items that it merges."""
    directive, _, target = name.partition("/")
    field = known.get(target)
    if directive != strategic.ORDER_PREFIX or field is None or not isinstance(patch.get(target), list):
        return False
    return bool(field.key and getattr(old, field.attribute))


def _part(name: str, field: _Field, held: Any, value: Any, made: Document, *, merge_lists: bool) -> Any:
    """What of a value has to be converted; None where it is `made` already."""
    if value is None:
        made[name] = field.empty
        return None
    if isinstance(value, dict):
        if field.member.shape != "struct":
            return _entries(field, value, merge_lists=merge_lists)
        made[name] = _inside(field, held, value, merge_lists=merge_lists)
        return None
    if isinstance(value, list):
        return _replaced(field, held, value, merge_lists=merge_lists)
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
    if merge_lists and any(name.startswith("$") for name in value):
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


def _items(field: _Field, held: tuple[Any, ...], given: list[Any], order: Any) -> tuple[Any, ...]:
    """A list whose items the patch names by their keys, each of which is there once; `order` is the one that it wants,
    None when it has no wish."""
    kind, merge_key = field.member.item, field.member.listing.merge_key
    if not isinstance(kind, type) or field.member.listing.replaced:
        raise Unusual
    before = [getattr(item, field.key) for item in held]
    merged: dict[str | int, Any] = dict(zip(before, held, strict=True))
    if not all(before) or len(merged) < len(before):
        raise Unusual
    changed = _without_deleted(given, merged, merge_key)
    live = [*merged]
    named = [_key(item, merge_key) for item in changed]
    if len(set(named)) < len(named) and named != live:
        raise Unusual
    for item, key in zip(changed, named, strict=True):
        mine = merged.get(key)
        merged[key] = patched(mine, item, merge_lists=True) if mine is not None else _new(item, kind)
    keys = [*merged] if named == live else ordered([*merged], named, live, "")
    if order is not None:
        keys = ordered(keys, _wanted(order, named, merge_key), before, "")
    return tuple([merged[key] for key in keys])


def _without_deleted(given: list[Any], merged: dict[str | int, Any], merge_key: str) -> list[Any]:
    """The items that are not about deletion; what the others name goes."""
    changed = []
    for item in given:
        if not isinstance(item, dict) or strategic.DIRECTIVE not in item:
            changed.append(item)
        elif item[strategic.DIRECTIVE] == strategic.DELETE:
            merged.pop(_key(item, merge_key), None)
        else:
            raise Unusual
    return changed


def _wanted(order: Any, named: list[str | int], merge_key: str) -> list[str | int]:
    """The keys in the order that the patch wants, which has to have those of its items in their order."""
    if not isinstance(order, list) or not order:
        raise Unusual
    wanted = [_key(item, merge_key) for item in order]
    rest = iter(wanted)
    if len(set(wanted)) < len(wanted) or not all(key in rest for key in named):
        raise Unusual
    return wanted


def _key(item: object, merge_key: str) -> str | int:
    key = item.get(merge_key) if isinstance(item, dict) else None
    if type(key) is str or type(key) is int:
        return key
    raise Unusual


def _new(item: Document, kind: type[Struct]) -> Struct:
    _check_known(all_known(item, kind))
    return _converted(strategic.new_item(item), kind)


def _converted(document: Document, kind: type[S]) -> S:
    return codec.convert(canonical(document, kind), kind)


@lru_cache(maxsize=1024)
def _fields(kind: type[Struct]) -> dict[str, _Field]:
    given, hints = empties(kind), get_type_hints(kind, include_extras=True)
    always = {field.name for field in msgspec.structs.fields(kind) if field.default_factory not in _OMITTED}
    fields = {}
    for name, member in members(kind).items():
        attribute = member.attribute
        plain, fits = _plain(hints[attribute])
        fields[name] = _Field(
            attribute=attribute,
            member=member,
            empty=given[attribute],
            always=attribute in always,
            key=_key_of(member),
            plain=plain,
            fits=fits,
            amounts=may_hold_amounts(hints[attribute]),
        )
    return fields


def _plain(hint: Any) -> tuple[type | None, Callable[[Any], bool] | None]:
    """The type of which a value needs no conversion, and which of that type do not, as the annotation says it."""
    hints = [part for part in get_args(hint) if part is not NoneType] if _is_union(hint) else [hint]
    if len(hints) > 1:
        return None, None
    whole, *notes = get_args(hints[0]) if get_origin(hints[0]) is Annotated else hints
    if hints[0] in TIMES:
        return str, _as_written(hints[0])
    if whole not in _PLAIN:
        return None, None
    match [note for note in notes if isinstance(note, msgspec.Meta)]:
        case []:
            return whole, None
        case [msgspec.Meta(ge=int(least), le=int(most), gt=None, lt=None, multiple_of=None)] if whole is int:
            return int, range(least, most + 1).__contains__
    return None, None


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType)


@cache
def _as_written(time: Any) -> Callable[[str], bool]:
    """Whether a text is a time as the API writes it: those of one write are mostly one time."""

    def is_written(text: str) -> bool:
        try:
            return go_time.is_in_utc(text, TIMES[time]) and msgspec.convert(text, time) == text
        except msgspec.ValidationError:
            return False

    return cached_where_short(MOST_TIMES, longest=LONGEST_TIME)(is_written)


def _key_of(member: Member) -> str:
    if member.shape != "list" or not member.listing.merge_key or not isinstance(member.item, type):
        return ""
    return members(member.item)[member.listing.merge_key].attribute


def is_plain(patch: object, own: Iterable[str] = ("kind", "apiVersion")) -> bool:
    """Whether a patch is about members of an object, and not about what it is."""
    return isinstance(patch, dict) and patch.keys().isdisjoint(own)
