"""Canonical forms of times and binary values, as the API writes them.

Times come back in UTC, in whole seconds or with six digits; base64 without line ends. Where a kind has such members
follows from its annotations.
"""

from functools import lru_cache
from operator import is_not
from types import UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec

from podfit.api.meta.base import MicroTime, Struct, Time
from podfit.api.structural.custom import is_custom
from podfit.core import go_time
from podfit.core.go_base64 import without_line_ends

TIMES = {Time: go_time.SECONDS, MicroTime: go_time.MICROS}
_KEPT = "managedFields"
"""Entries that the server wrote, or that it will write anew; there are many."""


class _Times(msgspec.Struct, frozen=True):
    layout: str

    def written(self, value: Any) -> Any:
        if not isinstance(value, str) or go_time.is_in_utc(value, self.layout):
            return value
        return go_time.in_utc(value, self.layout)


class _Bytes(msgspec.Struct, frozen=True):
    def written(self, value: Any) -> Any:
        return without_line_ends(value) if isinstance(value, str) else value


class _Each(msgspec.Struct, frozen=True):
    """Items of a list, or values of a map."""

    item: "_Plan"

    def written(self, value: Any) -> Any:
        item = self.item.written
        if isinstance(value, list):
            items = [item(inner) for inner in value]
            return items if any(map(is_not, items, value)) else value
        if isinstance(value, dict):
            members = {name: item(inner) for name, inner in value.items()}
            return members if any(members[name] is not inner for name, inner in value.items()) else value
        return value


class _Members(msgspec.Struct, frozen=True):
    """The members of an object: only those in which there is something to do."""

    known: "dict[str, _Plan]"

    def written(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        changed = {}
        for name, plan in self.known.items():
            if name in value and (made := plan.written(value[name])) is not value[name]:
                changed[name] = made
        return {**value, **changed} if changed else value


_Plan: TypeAlias = _Times | _Bytes | _Each | _Members
"""What there is to do: `written` is the value after it, itself where nothing changes."""


def canonical(document: object, kind: type[Struct]) -> Any:
    """The document; itself where nothing changes. ValueError for a time that is none, in Go's words."""
    plan = None if is_custom(kind) else _plan(kind)
    return plan.written(document) if plan else document


@lru_cache(maxsize=512)
def _plan(kind: type[msgspec.Struct]) -> _Members | None:
    hints = get_type_hints(kind, include_extras=True)
    known = {}
    for member in msgspec.structs.fields(kind):
        plan = _plan_of(hints[member.name], kind) if member.encode_name != _KEPT else None
        if plan is not None:
            known[member.encode_name] = plan
    return _Members(known) if known else None


def _plan_of(hint: Any, owner: type[msgspec.Struct]) -> _Plan | None:
    if layout := TIMES.get(hint):
        return _Times(layout)
    if hint is bytes:
        return _Bytes()
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType, Annotated):
        inner = parts[:1] if origin is Annotated else parts
        found = [plan for part in inner if (plan := _plan_of(part, owner)) is not None]
        return found[0] if found else None
    if origin in (tuple, dict):
        plan = _plan_of(parts[-1] if origin is dict else parts[0], owner)
        return _Each(plan) if plan is not None else None
    is_object = isinstance(hint, type) and issubclass(hint, msgspec.Struct) and hint is not owner
    return _plan(hint) if is_object else None
