"""Whether a document can be applied: whatever is in it has to be a field, and items of lists have to be told apart."""

from collections.abc import Iterator
from typing import Any

from podfit.api.meta.member import Kind, Member, Node
from podfit.api.meta.schema import members
from podfit.api.structural.custom import Custom
from podfit.api.structural.shapes import SchemaNode
from podfit.apiserver.registry.apply.parts import item_name
from podfit.apiserver.registry.apply.sets import step

UNKNOWN = "field not declared in schema"


_GO_TYPES = {str: "string", int: "int", float: "float", bool: "boolean", dict: "map"}
_SCALARS: dict[str, tuple[Any, str]] = {
    "string": (str, "string"),
    "numeric": ((int, float), "numeric (int or float)"),
    "boolean": (bool, "boolean"),
}


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
    elif member.scalar and _misfits(value, member):
        yield f"{path}: expected {_SCALARS[member.scalar][1]}, got {_GO_TYPES.get(type(value), type(value).__name__)}"
    elif member.shape in ("struct", "map") and not isinstance(value, dict):
        yield f"{path}: expected map, got {type(value).__name__}"
    elif member.item is not None and member.shape == "struct":
        yield from objections(value, member.item, path)
    elif member.item is not None:
        for name, each in value.items():
            yield from _item(each, member.item, f"{path}.{name}")


def _misfits(value: Any, member: Member) -> bool:
    """Whether it is not the scalar that a schema wants; true is no number."""
    wanted, _ = _SCALARS[member.scalar]
    return not isinstance(value, wanted) or (isinstance(value, bool) and member.scalar == "numeric")


def _list(value: Any, member: Member, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path}: expected list, got {type(value).__name__}"
        return
    seen: set[str] = set()
    for index, each in enumerate(value):
        here = f"{path}[{index}]"
        if each is None:
            yield f"{here}: an item of a list may not be null"
            continue
        if member.listing.keys and not isinstance(each, dict):
            yield f"{here}: expected map, got {type(each).__name__}"
            continue
        if member.listing.keys or member.listing.set_:
            name = item_name(each, member)
            here = path + step(name)
            if name in seen:
                yield f"{path}: duplicate entries for key {step(name)}"
            seen.add(name)
        if member.item is not None:
            yield from _item(each, member.item, here)


def _item(value: Any, kind: Kind, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: expected map, got {type(value).__name__}"
    else:
        yield from objections(value, kind, path)
