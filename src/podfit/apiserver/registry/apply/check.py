"""Checks whether a document can be applied: every member must be a field, and list items must be distinguishable."""

from collections.abc import Iterator
from typing import Any

from podfit.api.meta.base import Document
from podfit.api.meta.member import Kind, Member, Node
from podfit.api.meta.schema import members
from podfit.api.structural.custom import Custom
from podfit.api.structural.shapes import SchemaNode
from podfit.apiserver.registry.apply.owned_fields import item_name
from podfit.apiserver.registry.apply.sets import step
from podfit.core import go_print

UNKNOWN = "field not declared in schema"


_SCALARS: Document = {"string": str, "numeric": (int, float), "boolean": bool}


def objections(document: Any, kind: Kind, path: str = "") -> Iterator[str]:
    """What is wrong with an applied object, each with its path."""
    known = members(kind)
    free = _is_open(kind)
    for name, value in document.items():
        member = known.get(name)
        if member is None:
            if not free:
                yield f"{path}.{name}: {UNKNOWN}"
        elif value is not None:
            yield from _inside(value, member, f"{path}.{name}")


def _is_open(kind: Kind) -> bool:
    """Whether it takes members that nothing declares."""
    if isinstance(kind, Node):
        return kind.open
    return issubclass(kind, Custom) and SchemaNode(kind.declared.schema, root=True).open


def _inside(value: Any, member: Member, path: str) -> Iterator[str]:
    if member.shape == "list":
        yield from _list(value, member, path)
    elif member.shape == "scalar":
        yield from _scalar(value, member, path)
    elif member.shape in ("struct", "map") and not isinstance(value, dict):
        yield f"{path}: {_not_a('map', value)}"
    elif member.item is not None and member.shape == "struct":
        yield from objections(value, member.item, path)
    elif member.shape == "map":
        for name, element in value.items():
            yield from _item(element, member, f"{path}.{name}")


def _scalar(value: object, member: Member, path: str) -> Iterator[str]:
    """What is wrong with a value that a schema wants to be of one type; true is no number."""
    wanted = _SCALARS.get(member.scalar)
    if value is None or wanted is None:
        return
    if not isinstance(value, wanted) or (isinstance(value, bool) and member.scalar == "numeric"):
        yield f"{path}: {_wrong_scalar(value, member.scalar)}"


def _list(value: object, member: Member, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path}: {_not_a('list', value)}"
        return
    seen: set[str] = set()
    for index, element in enumerate(value):
        here = f"{path}[{index}]"
        if wrong := _without_name(element, member):
            yield f"{path}: element {index}: {wrong}"
            return  # as upstream, which cannot say where the others are
        if element is None:
            yield f"{here}: an item of a list may not be null"
            continue
        if member.listing.keys or member.listing.set_:
            name = item_name(element, member)
            here = path + step(name)
            if name in seen:
                yield f"{path}: duplicate entries for key {step(name)}"
            seen.add(name)
        yield from _item(element, member, here)


def _item(value: object, member: Member, path: str) -> Iterator[str]:
    if member.item is None:
        yield from _scalar(value, member, path)
    elif not isinstance(value, dict):
        yield f"{path}: {_not_a('map', value)}"
    else:
        yield from objections(value, member.item, path)


def _wrong_scalar(value: object, wanted: str) -> str:
    """In the words of structured-merge-diff, which prints Go's form of what it was given."""
    if wanted == "numeric":
        return f"expected numeric (int or float), got {go_print.type_name(value)}"
    return f"expected {wanted}, got &value.valueUnstructured{{Value:{go_print.syntax(value)}}}"


def _not_a(wanted: str, value: object) -> str:
    return f"expected {wanted}, got &{{{go_print.plain(value)}}}"


def _without_name(item: object, member: Member) -> str:
    """Why an item of a list cannot be told from the others."""
    if member.listing.keys:
        if item is None:
            return "associative list with keys may not have a null element"
        return "" if isinstance(item, dict) else "associative list with keys may not have non-map elements"
    if not member.listing.set_:
        return ""
    if isinstance(item, dict):
        return "associative list without keys has an element that's a map type"
    if isinstance(item, list):
        return "not supported: associative list with lists as elements"
    return "associative list without keys has an element that's an explicit null" if item is None else ""
