"""Sets of fields, in the form that travels (FieldsV1): a tree of the names of parts.

An empty node is a field that is a member of the set; `.` says so of one that has members below it. At the top, where
the object itself stands, nothing is a member.
"""

import json
import re
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import TypeAlias

from podfit.api.meta.base import Document

Tree: TypeAlias = Document

SELF = "."
_KINDS = "fkv"  # of names, in the order in which a set shows them
_PLAIN = re.compile(r"[fkvi]:")


def is_member(tree: Tree) -> bool:
    return not tree or SELF in tree


def node(member: bool, inner: Tree) -> Tree | None:
    """A node of a tree; None when neither it nor anything below is a member."""
    if not inner:
        return {} if member else None
    return {SELF: {}, **inner} if member else inner


def below(tree: Tree) -> Iterable[tuple[str, Tree]]:
    return ((name, inner) for name, inner in tree.items() if name != SELF)


def union(one: Tree, other: Tree) -> Tree:
    merged = dict(one)
    for name, inner in other.items():
        mine = merged.get(name)
        if mine is None:
            merged[name] = inner
        elif inner or mine:
            both = union(mine, inner)
            both.pop(SELF, None)
            merged[name] = node(is_member(mine) or is_member(inner), both) or {}
    return merged


def union_of(trees: Iterable[Tree]) -> Tree:
    return reduce(union, trees, {})


def without(tree: Tree, taken: Tree) -> Tree:
    """The members of `tree` that are not members of `taken`."""
    kept: Tree = {}
    for name, inner in tree.items():
        if name == SELF:
            continue
        loss = taken.get(name)
        if loss is None:
            kept[name] = inner
        elif inner or loss:
            left = node(is_member(inner) and not is_member(loss), without(inner, loss))
            if left is not None:
                kept[name] = left
    return kept


def sorted_tree(tree: Tree) -> Tree:
    """The same set with its names in order, so that every client has the same bytes of it."""
    if len(tree) == 1:
        [(name, inner)] = tree.items()
        return {name: sorted_tree(inner)} if inner else tree
    return {name: sorted_tree(inner) if (inner := tree[name]) else inner for name in sorted(tree)}


def contains(tree: Tree, other: Tree) -> bool:
    """Whether every member of the other is one of the tree's."""
    for name, inner in other.items():
        if name == SELF:
            continue
        mine = tree.get(name)
        if mine is None:
            return False
        if not inner:
            if mine and SELF not in mine:
                return False
        elif (SELF in inner and not is_member(mine)) or not contains(mine, inner):
            return False
    return True


def meets(tree: Tree, other: Tree) -> bool:
    """Whether anything is a member of both."""
    for name, inner in other.items():
        mine = tree.get(name)
        if mine is None or name == SELF:
            continue
        if not inner or not mine:
            if is_member(inner) and is_member(mine):
                return True
        elif (SELF in inner and SELF in mine) or meets(mine, inner):
            return True
    return False


def common(one: Tree, other: Tree) -> Tree:
    """The members of both."""
    found: Tree = {}
    for name, inner in below(one):
        if name in other and not (inner or other[name]):
            found[name] = inner
        elif name in other:
            both = node(is_member(inner) and is_member(other[name]), common(inner, other[name]))
            if both is not None:
                found[name] = both
    return found


def count(tree: Tree) -> int:
    """How many members it has."""
    return sum(1 if not inner else is_member(inner) + count(inner) for _, inner in below(tree))


def paths(tree: Tree, start: str = "") -> Iterator[str]:
    """The members as people read them, such as `.spec.containers[name="c"].image`; the members of a level before what
    is below it."""
    ordered = sorted(below(tree), key=lambda branch: (_KINDS.find(branch[0][0]), branch[0]))
    for name, inner in ordered:
        if is_member(inner):
            yield start + step(name)
    for name, inner in ordered:
        yield from paths(inner, start + step(name))


def step(name: str) -> str:
    text = name[2:]
    match name[:2]:
        case "k:":
            keys = sorted(json.loads(text).items())
            return f"[{','.join(f'{key}={json.dumps(value)}' for key, value in keys)}]"
        case "v:":
            return f"[={text}]"
    return f".{text}"


def well_formed(value: object) -> bool:
    """Whether a decoded document is a set of fields."""
    if not isinstance(value, dict):
        return False
    return all(
        (name == SELF and inner == {}) or (_PLAIN.match(name) and _readable(name) and well_formed(inner))
        for name, inner in value.items()
    )


def _readable(name: str) -> bool:
    if name[:2] != "k:":
        return True
    try:
        return isinstance(json.loads(name[2:]), dict)
    except ValueError:
        return False
