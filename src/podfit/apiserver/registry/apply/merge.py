"""An applied document put into a live one, and what its manager let go of taken out."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from podfit.api.meta.base import Document
from podfit.api.meta.member import Member
from podfit.apiserver.registry.apply.owned_fields import (
    CONTAINERS,
    Parts,
    Several,
    Shape,
    divisible,
    joined,
    named,
    parts,
)
from podfit.apiserver.registry.apply.sets import Tree, is_member


def merged(live: object, applied: object, shape: Shape) -> Any:
    """The live value with everything that is applied. An empty or null container adds nothing to a live one."""
    inside = parts(applied, shape)
    if not inside:
        return live if live and divisible(shape) and not applied else applied
    known = parts(live, shape) or {}
    both = {
        name: value
        if (inner is None and not isinstance(value, CONTAINERS)) or name not in known or _doubled(known, name)
        else merged(known[name][0], value, inner)
        for name, (value, inner) in inside.items()
        if name in known or not _empty(value, inner)
    }
    order = _order(known, inside) if isinstance(applied, list) else known | both
    return joined(applied, {name: both[name] if name in both else known[name][0] for name in order})


def _empty(value: object, shape: Shape) -> bool:
    """A list or map with nothing in it is as good as none; a struct may be there just to be there."""
    return not value and isinstance(shape, Member) and shape.shape in ("list", "map") and divisible(shape)


def _doubled(known: Parts, name: str) -> bool:
    return isinstance(known[name][0], Several)


def _order(live: Iterable[str], applied: Parts) -> Iterator[str]:
    """Applied items keep their order; a live item stays ahead of the shared one that it stood before."""
    rest = deque(live)
    present = set(rest)
    shared = deque(name for name in applied if name in present)
    for name in applied:
        following = shared[0] if shared else None
        while rest and rest[0] != following:
            head = rest.popleft()
            if head not in applied:
                yield head
        yield name
        if name == following:
            shared.popleft()
            rest.popleft()
    yield from (name for name in rest if name not in applied)


def pruned(value: object, last: Tree, owned: Tree, shape: Shape) -> Any:
    """The value without what was in `last` and is in `owned` no more; None when nothing is left of it.

    `last` is what a manager applied the time before, `owned` is what anybody owns now, that manager's new fields
    included. A declared member counts as owned when something below it is.
    """
    inside = parts(value, shape)
    if not inside or not last:
        return value
    declared = named(shape)
    kept: Document = {}
    for name, (part, inner) in inside.items():
        before, now = last.get(name), owned.get(name)
        if before is None:
            kept[name] = part
            continue
        known = declared and inner is not None
        if (known or is_member(before)) and not (now is not None and (known or is_member(now))):
            continue
        left = pruned(part, before, now or {}, inner) if isinstance(part, CONTAINERS) else part
        if left is not None or part is None:
            kept[name] = left
    if kept:
        return joined(value, kept)
    return None if owned else joined(value, kept)
