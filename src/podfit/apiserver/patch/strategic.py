"""Strategic merge patch: a merge patch that knows which lists are maps.

Lists whose field declares a merge key are joined item by item; lists of unique scalars are united; all others are
replaced. Directives steer it:

    $patch: replace | delete | merge     of a map, or as an item of a list
    $retainKeys: [names]                 members of a union that stay
    $deleteFromPrimitiveList/NAME: [..]  scalars to take out
    $setElementOrder/NAME: [..]          the order that the client wants
"""

from collections.abc import Sequence
from typing import Any

from podfit.api.member import Kind, Member
from podfit.api.schema import members
from podfit.apiserver.patch.decoding import unmarshalled
from podfit.core.errors import bad_request

DIRECTIVE, RETAIN = "$patch", "$retainKeys"
DELETE_PREFIX, ORDER_PREFIX = "$deleteFromPrimitiveList/", "$setElementOrder/"


def apply(document: Any, patch: Any, kind: Kind) -> Any:
    """The merged document. ApiError 400 for a patch that makes no sense; null is one that changes nothing."""
    if patch is None:
        return document
    if not isinstance(patch, dict):
        raise bad_request(unmarshalled(patch, "map[string]interface {}"))
    return _merge_map(document, patch, kind)


def _merge_map(document: Any, patch: dict[str, Any], kind: Kind | None) -> dict[str, Any]:
    directive = patch.get(DIRECTIVE)
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != DIRECTIVE}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f"Unknown patch type found: {directive}")
    merged = _retained(document if isinstance(document, dict) else {}, patch)
    known = members(kind) if kind else {}
    directives = [name for name in patch if name[:1] == "$"]
    for name, value in patch.items():
        if name[:1] == "$":
            continue
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict | list):
            order = patch.get(ORDER_PREFIX + name) if directives else None
            merged[name] = _merge_value(merged.get(name), value, known.get(name), order)
        else:
            merged[name] = value
    for name in directives:
        value = patch[name]
        if name.startswith(DELETE_PREFIX):
            _take_out(merged, name.removeprefix(DELETE_PREFIX), _listed(value, name))
        elif name.startswith(ORDER_PREFIX) and name.removeprefix(ORDER_PREFIX) not in patch:
            _reorder(merged, name.removeprefix(ORDER_PREFIX), known, _listed(value, name))
    return merged


def _retained(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    if RETAIN not in patch:
        return dict(document)
    kept = _listed(patch[RETAIN], RETAIN)
    return {name: value for name, value in document.items() if name in kept}


def _listed(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise bad_request(f"{name} must be a list")
    return value


def _merge_value(current: Any, value: Any, member: Member | None, order: Any) -> Any:
    item = member.item if member else None
    if member and member.listing.replaced:
        return value
    if isinstance(value, dict):
        return _merge_map(current, value, item if member and member.shape == "struct" else None)
    if not isinstance(value, list):
        return value
    current = current if isinstance(current, list) else []
    if member and member.listing.merge_key:
        return _merge_list(current, value, member.listing.merge_key, item, order)
    if member and member.listing.set_ and member.listing.patched:
        united = [*current, *(each for each in value if each not in current)]
        return _ordered(united, value if order is None else _listed(order, ORDER_PREFIX), current, None)
    return value


def _merge_list(
    current: list[Any], patch: list[Any], merge_key: str, item: Kind | None, order: Any
) -> list[Any]:
    if any(isinstance(each, dict) and each.get(DIRECTIVE) == "replace" and merge_key not in each for each in patch):
        kept = [each for each in patch if not (isinstance(each, dict) and DIRECTIVE in each)]
        return _without_directives(kept)
    merged = list(current)
    for each in patch:
        if not isinstance(each, dict) or merge_key not in each:
            raise bad_request(f"an item of a merged list does not contain its merge key: {merge_key}")
        if isinstance(each[merge_key], dict | list):
            raise bad_request(f"an item of a merged list has a merge key that is no plain value: {merge_key}")
        place = _find(merged, each[merge_key], merge_key)
        if each.get(DIRECTIVE) == "delete":
            merged = [other for other in merged if not _has(other, merge_key, each[merge_key])]
        elif place is None:
            merged.append(_merge_map({}, each, item))
        else:
            merged[place] = _merge_map(merged[place], each, item)
    wanted = _listed(order, ORDER_PREFIX) if order is not None else [each for each in patch if DIRECTIVE not in each]
    return _ordered(merged, [_value(each, merge_key) for each in wanted], current, merge_key)


def _without_directives(value: list[Any]) -> list[Any]:
    return [_merge_map({}, each, None) if isinstance(each, dict) else each for each in value]


def _find(items: Sequence[Any], value: Any, merge_key: str) -> int | None:
    return next((index for index, each in enumerate(items) if _has(each, merge_key, value)), None)


def _has(item: Any, merge_key: str, value: Any) -> bool:
    return isinstance(item, dict) and item.get(merge_key) == value


def _value(item: Any, merge_key: str | None) -> Any:
    """What tells an item apart: its merge key's value, or a scalar itself."""
    return item.get(merge_key) if merge_key is not None and isinstance(item, dict) else item


def _ordered(items: list[Any], wanted: list[Any], live: list[Any], merge_key: str | None) -> list[Any]:
    """The wanted items in their order; each other one before the first wanted item that came after it in the live
    list."""
    if [_value(each, merge_key) for each in items] == wanted:
        return items
    before = [_value(each, merge_key) for each in live]
    result = sorted(
        (each for each in items if _value(each, merge_key) in wanted),
        key=lambda each: wanted.index(_value(each, merge_key)),
    )
    start = 0
    for each in items:
        value = _value(each, merge_key)
        if value in wanted:
            continue
        place = before.index(value)
        start = next(
            (
                index
                for index in range(start, len(result))
                if _value(result[index], merge_key) in before and before.index(_value(result[index], merge_key)) > place
            ),
            len(result),
        )
        result.insert(start, each)
        start += 1
    return result


def _reorder(merged: dict[str, Any], name: str, known: dict[str, Member], order: list[Any]) -> None:
    current, member = merged.get(name), known.get(name)
    if isinstance(current, list) and member is not None and (
        member.listing.merge_key or (member.listing.set_ and member.listing.patched)
    ):
        merge_key = member.listing.merge_key or None
        merged[name] = _ordered(current, [_value(each, merge_key) for each in order], current, merge_key)


def _take_out(merged: dict[str, Any], name: str, values: list[Any]) -> None:
    if isinstance(merged.get(name), list):
        merged[name] = [each for each in merged[name] if each not in values]
