"""A patched object made of the stored one and of what the patch touched, so that only this is converted.

Patches copy along their path and share the rest: what is the very same in the document before and after is as the typed
object has it. Only the members that a patch names are read as a document at all.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from podfit.api.meta import codec
from podfit.api.meta.base import Document, Struct
from podfit.api.meta.defaulting import empties
from podfit.api.meta.member import Member
from podfit.api.meta.schema import members

S = TypeVar("S", bound=Struct)
_ABSENT = object()
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


def document_of(value: bytes, names: Iterable[str]) -> Document:
    """These members of an encoded object, as far as it has them."""
    given = _members.decode(value)
    return {name: msgspec.json.decode(given[name]) for name in names if name in given}


def retyped(after: Document, before: Document, old: S) -> S:
    """The object `old`, whose document is `before`, as `after` has it; members that neither names stay.

    Raises what the codec raises for what does not fit, KeyError for a member that the kind does not have.
    """
    known, given = members(type(old)), empties(type(old))
    made = {known[name].attribute: given[known[name].attribute] for name in before if name not in after}
    rest: Document = {}
    for name, value in after.items():
        earlier = before.get(name, _ABSENT)
        if value is earlier:
            continue
        member = known[name]
        held = getattr(old, member.attribute)
        if isinstance(value, dict) and isinstance(earlier, dict) and isinstance(held, Struct):
            made[member.attribute] = retyped(value, earlier, held)
        elif isinstance(value, list) and isinstance(earlier, list) and isinstance(member.item, type):
            made[member.attribute] = _items(value, earlier, held, member)
        else:
            rest[name] = value
    if rest:
        typed = codec.convert(rest, type(old))
        made |= {known[name].attribute: getattr(typed, known[name].attribute) for name in rest}
    return replace(old, **made) if made else old


def _items(after: list[Any], before: list[Any], held: tuple[Any, ...], member: Member) -> tuple[Any, ...]:
    """Items of a list by the key that a patch merges them by; what came is converted."""
    key = member.listing.merge_key or next(iter(member.listing.keys), "")
    pairs = {_key(item, key): (item, typed) for item, typed in zip(before, held, strict=True)} if key else {}
    return tuple([_item(item, *pairs.get(_key(item, key), (None, None)), member) for item in after])


def _item(value: Any, earlier: Any, held: Any, member: Member) -> Any:
    if value is earlier:
        return held
    if isinstance(value, dict) and earlier is not None:
        return retyped(value, earlier, held)
    return codec.convert(value, member.item)  # type: ignore[arg-type]  # a kind, as its caller knows


def _key(item: object, key: str) -> Any:
    """The value of the key; a null for what has none that tells it apart."""
    value = item.get(key) if isinstance(item, dict) else None
    return value if isinstance(value, str | int) else None
