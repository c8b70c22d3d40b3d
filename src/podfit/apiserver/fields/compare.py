"""Sets of fields that documents have, gain and lose."""

from typing import Any

from podfit.apiserver.fields.parts import Shape, divisible, named, parts
from podfit.apiserver.fields.sets import SELF, Tree, below, is_member, node

_ABSENT = object()


def fields_of(value: Any, shape: Shape) -> Tree:
    """What someone who applies this document owns: every leaf, items and keys of maps, and members left empty."""
    found: Tree = {}
    declared = named(shape)
    for name, (inner, inside) in (parts(value, shape) or {}).items():
        owned = not (declared and inside) or not divisible(inside) or inner is None or inner == {}
        if (left := node(owned, fields_of(inner, inside))) is not None:
            found[name] = left
    return found


def changed(before: Any, after: Any, shape: Shape) -> Tree:
    """What `after` has that `before` has not or has otherwise."""
    return _changed(before, after, shape) or {}


def _changed(before: Any, after: Any, shape: Shape) -> Tree | None:
    if before == after:
        return None
    inside = parts(after, shape)
    if inside is None:
        return {}
    tree: Tree = {} if before is not _ABSENT else {SELF: {}}
    known = parts(before, shape) or {}
    for name, (value, inner) in inside.items():
        found = _changed(known[name][0] if name in known else _ABSENT, value, inner)
        if found is not None:
            tree[name] = found
    if not tree:
        return None
    return {} if tree.keys() == {SELF} else tree


def lost(before: Any, after: Any, shape: Shape) -> bool:
    """Whether anything that was there is gone."""
    if before == after:
        return False
    left = parts(after, shape) or {}
    inside = parts(before, shape) or {}
    return any(name not in left or lost(value, left[name][0], inner) for name, (value, inner) in inside.items())


def existing(tree: Tree, document: Any, shape: Shape) -> Tree:
    """The part of the set that the document still has."""
    inside = parts(document, shape) or {}
    kept: Tree = {}
    for name, inner in below(tree):
        if name in inside:
            left = node(is_member(inner), existing(inner, *inside[name]))
            if left is not None:
                kept[name] = left
    return kept
