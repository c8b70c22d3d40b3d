"""Canonical forms of times and binary values, as the API writes them.

Times come back in UTC, in whole seconds or with six digits; base64 without line ends. Where a kind has such members
follows from its annotations.
"""

from functools import lru_cache
from operator import is_not
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from podfit.api.meta.base import Document, MicroTime, Struct, Time
from podfit.api.structural.custom import is_custom
from podfit.core import go_time
from podfit.core.go_base64 import without_line_ends

TIMES = {Time: go_time.SECONDS, MicroTime: go_time.MICROS}
_KEPT = "managedFields"
"""Entries that the server wrote, or that it will write anew; there are many."""


class _Times(msgspec.Struct, frozen=True):
    layout: str


class _Bytes(msgspec.Struct, frozen=True):
    pass


class _Each(msgspec.Struct, frozen=True):
    """Items of a list, or values of a map."""

    item: Any


class _Members(msgspec.Struct, frozen=True):
    """Of an object: only those in which there is something to do."""

    known: Document


def canonical(document: object, kind: type[Struct]) -> Any:
    """The document; itself where nothing changes. ValueError for a time that is none, in Go's words."""
    plan = None if is_custom(kind) else _plan(kind)
    return _written(document, plan) if plan else document


def _written(value: Any, plan: Any) -> Any:
    if isinstance(plan, _Members):
        return _object(value, plan) if isinstance(value, dict) else value
    if isinstance(plan, _Each):
        return _each(value, plan)
    if not isinstance(value, str):
        return value
    if isinstance(plan, _Bytes):
        return without_line_ends(value)
    return value if go_time.is_in_utc(value, plan.layout) else go_time.in_utc(value, plan.layout)


def _object(value: Document, plan: _Members) -> Document:
    changed = {}
    for name, inner in plan.known.items():
        if name in value and (made := _written(value[name], inner)) is not value[name]:
            changed[name] = made
    return {**value, **changed} if changed else value


def _each(value: object, plan: _Each) -> Any:
    if isinstance(value, list):
        items = [_written(item, plan.item) for item in value]
        return items if any(map(is_not, items, value)) else value
    if isinstance(value, dict):
        members = {name: _written(item, plan.item) for name, item in value.items()}
        return members if any(members[name] is not item for name, item in value.items()) else value
    return value


@lru_cache(maxsize=512)
def _plan(kind: type[msgspec.Struct]) -> _Members | None:
    hints = get_type_hints(kind, include_extras=True)
    known = {}
    for member in msgspec.structs.fields(kind):
        plan = _plan_of(hints[member.name], kind) if member.encode_name != _KEPT else None
        if plan is not None:
            known[member.encode_name] = plan
    return _Members(known) if known else None


def _plan_of(hint: Any, owner: type[msgspec.Struct]) -> Any:
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
