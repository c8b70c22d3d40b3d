"""Sets of fields that documents have, gain and lose."""

from typing import Any, TypeAlias

from podfit.api.meta.base import Document
from podfit.api.meta.member import Kind
from podfit.api.meta.schema import members
from podfit.apiserver.registry.apply.owned_fields import CONTAINERS, Shape, divisible, named, parts, struct_of
from podfit.apiserver.registry.apply.sets import SELF, Tree, below, is_member, node

Gone: TypeAlias = "dict[str, Gone | None]"
"""By the names of parts, what went from inside of each; None: the part with all that was in it."""


def fields_of(value: object, shape: Shape) -> Tree:
    """What someone who applies this document owns: every leaf, items and keys of maps, and members left empty."""
    found: Tree = {}
    declared = named(shape)
    for name, (inner, inside) in (parts(value, shape) or {}).items():
        if inside is None and not isinstance(inner, CONTAINERS):
            found[name] = {}
            continue
        owned = not (declared and inside) or not divisible(inside) or inner is None or inner == {}
        if (left := node(owned, fields_of(inner, inside))) is not None:
            found[name] = left
    return found


def changed(before: Any, after: Any, shape: Shape) -> Tree:
    """What `after` has that `before` has not or has otherwise."""
    return compared(before, after, shape)[0]


def compared(before: Any, after: Any, shape: Shape) -> tuple[Tree, bool]:
    """What `after` has that `before` has not or has otherwise, and whether anything that was there is gone."""
    tree, gone = part_compared(before, after, shape)
    return tree or {}, gone


def part_compared(before: Any, after: Any, shape: Shape) -> tuple[Tree | None, bool]:
    """What `compared` says, of a part: None where nothing came or changed, as an empty set is the part itself."""
    if before == after:
        return None, False
    kind = struct_of(shape) if isinstance(before, dict) and isinstance(after, dict) else None
    if kind is not None:
        return _members_compared(before, after, kind)
    inside = parts(after, shape)
    known = parts(before, shape) or {}
    if inside is None:
        return {}, bool(known)
    tree: Tree = {}
    gone = any(name not in inside for name in known)
    for name, (value, inner) in inside.items():
        if name in known:
            found, without = part_compared(known[name][0], value, inner)
            gone = gone or without
        else:
            found = added(value, inner) if isinstance(value, CONTAINERS) else {}
        if found is not None:
            tree[name] = found
    return tree or None, gone


def _members_compared(before: Document, after: Document, kind: Kind) -> tuple[Tree | None, bool]:
    """What most of an object falls into: the same as of its parts, without naming those that are alike."""
    tree: Tree = {}
    known = members(kind)
    gone = not before.keys() <= after.keys()
    for name, value in after.items():
        divided = isinstance(value, CONTAINERS)
        if name in before:
            known_value = before[name]
            if divided or isinstance(known_value, CONTAINERS):
                found, without = part_compared(known_value, value, known.get(name))
                gone = gone or without
            else:
                found = {} if value != known_value else None
        else:
            found = added(value, known.get(name)) if divided else {}
        if found is not None:
            tree[f"f:{name}"] = found
    return tree or None, gone


def added(value: Any, shape: Shape) -> Tree:
    """What is new with a value that was not there before."""
    if not value:
        return {}
    tree: Tree = {SELF: {}}
    kind = struct_of(shape) if isinstance(value, dict) else None
    if kind is not None:
        known = members(kind)
        for member, part in value.items():
            tree[f"f:{member}"] = added(part, known.get(member)) if isinstance(part, CONTAINERS) else {}
        return tree
    inside = parts(value, shape)
    if not inside:
        return {}
    for name, (part, inner) in inside.items():
        tree[name] = added(part, inner) if isinstance(part, CONTAINERS) else {}
    return tree


def gone(before: object, after: object, shape: Shape) -> Gone:
    """What was there and is not any more."""
    if before == after:
        return {}
    left = parts(after, shape) or {}
    found: Gone = {}
    for name, (value, inner) in (parts(before, shape) or {}).items():
        if name not in left:
            found[name] = None
        elif within := gone(value, left[name][0], inner):
            found[name] = within
    return found


def existing(tree: Tree, document: object, shape: Shape) -> Tree:
    """The part of the set that the document still has."""
    inside = parts(document, shape) or {}
    kept: Tree = {}
    for name, inner in below(tree):
        if name in inside:
            left = node(is_member(inner), existing(inner, *inside[name]))
            if left is not None:
                kept[name] = left
    return kept


def surviving(tree: Tree, went: Gone) -> Tree:
    """The part of the set that did not go."""
    kept: Tree = {}
    for name, inner in tree.items():
        if name == SELF:
            continue
        if name not in went:
            kept[name] = inner
        elif (within := went[name]) is not None:
            left = node(is_member(inner), surviving(inner, within))
            if left is not None:
                kept[name] = left
    return kept
