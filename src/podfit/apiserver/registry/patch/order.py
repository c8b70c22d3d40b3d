"""The order of a list that a strategic merge patch changes: the client's first, then that of the live list."""

from collections import deque
from typing import Any

from podfit.core import go_print
from podfit.core.errors import bad_request

_NESTED = frozenset((dict, list))


def key_of(item: object, merge_key: str) -> Any:
    """What tells an item apart: its merge key's value, or a scalar itself. Raises 400 for an item without one."""
    if not merge_key and not isinstance(item, dict | list):
        return item
    if not isinstance(item, dict) or merge_key not in item:
        raise bad_request(f"map: {go_print.plain(item)} does not contain declared merge key: {merge_key}")
    value = item[merge_key]
    if isinstance(value, dict | list):
        raise bad_request(f"an item of a merged list has a merge key that is no plain value: {merge_key}")
    return value


def keys_of(items: list[Any], merge_key: str) -> list[Any]:
    """What `key_of` says of each of them; quick where every item has a plain one."""
    keys = [item.get(merge_key, items) if isinstance(item, dict) else items for item in items] if merge_key else items
    if not _NESTED.isdisjoint(map(type, keys)):
        return [key_of(item, merge_key) for item in items]
    return keys


def check_order(given: list[Any], order: list[Any], merge_key: str, directive: str) -> None:
    """Raises 400 where a patch has items that its own order does not name, or has them in another order."""
    if not given or not order:
        return
    wanted = iter(keys_of(order, merge_key))
    for item in given:
        if isinstance(item, dict) and directive in item:
            continue
        key = key_of(item, merge_key)
        if key not in wanted:  # which goes on behind the last one that was found
            text = f"the order in patch list:\n{go_print.plain(given)}\n doesn't match $setElementOrder list:\n"
            raise bad_request(text + go_print.plain(order))


def ordered(items: list[Any], order: list[Any], live: list[Any], merge_key: str) -> list[Any]:
    """The items that are named in their order; each other one before the first of those that came after it in the live
    list."""
    keys, named = keys_of(items, merge_key), keys_of(order, merge_key)
    if not named or keys == named or keys == list(dict.fromkeys(named)):
        return items
    known = dict(zip(keys, items, strict=True))
    if len(known) == len(keys) and known.keys() <= set(named):
        return [known[key] for key in dict.fromkeys(named) if key in known]
    wanted, before = places_of(named), places_of(keys_of(live, merge_key))
    placed = sorted(
        ((wanted[key], before.get(key, -1), item) for key, item in zip(keys, items, strict=True) if key in wanted),
        key=lambda ranked: ranked[0],
    )
    waiting = deque((place, item) for _, place, item in placed)
    result: list[Any] = []
    for key, item in zip(keys, items, strict=True):
        if key in wanted:
            continue
        place = before.get(key, -1)
        while waiting and not 0 <= place < waiting[0][0]:
            result.append(waiting.popleft()[1])
        result.append(item)
    return [*result, *(item for _, item in waiting)]


def places_of(keys: list[Any]) -> dict[Any, int]:
    """Where each key comes first."""
    return dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
