"""Duplicate members in JSON documents, found as a typed reader would find them, one by one.

The second of two maps is merged into the first, of other values the last one counts. A strict reader reports each
repetition and each member that is not known where it meets it.
"""

import json
from collections.abc import Iterator
from typing import Any

from podfit.api.meta.base import Document
from podfit.api.meta.member import Kind, Member
from podfit.api.meta.schema import members


class _Pairs(list[tuple[str, Any]]):
    """The members of an object as they were written."""


def merged_repetitions(body: bytes) -> Any:
    """The document as a typed reader has it in the end."""
    return json.loads(body, object_pairs_hook=_merged)


def _merged(pairs: list[tuple[str, Any]]) -> Document:
    made: Document = {}
    for name, value in pairs:
        made[name] = _together(made.get(name), value)
    return made


def _together(earlier: object, later: object) -> Any:
    if not (isinstance(earlier, dict) and isinstance(later, dict)):
        return later
    return earlier | {name: _together(earlier.get(name), value) for name, value in later.items()}


def problems_in_order(body: bytes, kind: Kind) -> list[str]:
    """What a strict reader says of members that the kind does not have, and of those that occur twice."""
    return list(_problems(json.loads(body, object_pairs_hook=_Pairs), kind, ""))


def _problems(value: object, kind: Kind | None, path: str) -> Iterator[str]:
    """`kind` is None for a map, whose members all are known."""
    if not isinstance(value, _Pairs):
        return
    known = members(kind) if kind is not None else None
    seen: set[str] = set()
    for name, inner in value:
        here = f"{path}.{name}" if path else name
        if known is not None and name not in known:
            yield f'unknown field "{here}"'
            continue
        if name in seen:
            yield f'duplicate field "{here}"'
        seen.add(name)
        if known is not None:
            yield from _inside(inner, known[name], here)


def _inside(value: object, member: Member, path: str) -> Iterator[str]:
    if member.shape == "list" and isinstance(value, list) and not isinstance(value, _Pairs):
        for index, item in enumerate(value):
            if member.item is not None:
                yield from _problems(item, member.item, f"{path}[{index}]")
    elif member.shape == "struct":
        yield from _problems(value, member.item, path)
    elif member.shape in ("map", "any"):
        yield from _problems(value, None, path)
        if member.item is not None and isinstance(value, _Pairs):
            for name, inner in value:
                yield from _problems(inner, member.item, f"{path}.{name}")
