"""Patches as their definitions say, just enough for replaying recorded requests against pure functions."""

import copy
from typing import Any

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
_KEYS = {"containers": "name", "initContainers": "name", "volumes": "name", "env": "name", "tolerations": ""}


class NotApplicable(Exception):
    """The patch does not fit the document; answering that is the server's part."""


def patched(document: Any, patch: Any, content_type: str) -> Any:
    if content_type == JSON:
        return _json(copy.deepcopy(document), patch)
    if not isinstance(patch, dict):
        raise NotApplicable("not an object")
    return _merge(document, patch, strategic=content_type == STRATEGIC)


def _merge(target: Any, patch: dict[str, Any], *, strategic: bool) -> dict[str, Any]:
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            base = {} if value.get("$patch") == "replace" else result.get(key)
            result[key] = _merge(base, value, strategic=strategic)
        elif strategic and isinstance(value, list) and _KEYS.get(key):
            result[key] = _merge_list(result.get(key) or [], value, _KEYS[key])
        else:
            result[key] = value
    return result


def _merge_list(target: list[Any], patch: list[Any], key: str) -> list[Any]:
    """Items by key; new ones come first, as the API server orders them."""
    if {"$patch": "replace"} in patch:
        return [item for item in patch if "$patch" not in item]
    items = list(target)
    added = []
    for item in patch:
        place = next((index for index, old in enumerate(items) if old.get(key) == item.get(key)), None)
        if item.get("$patch") == "delete":
            items = [old for old in items if old.get(key) != item.get(key)]
        elif place is None:
            added.append(_merge({}, item, strategic=True))
        else:
            items[place] = _merge(items[place], item, strategic=True)
    return added + items


def _json(document: Any, operations: Any) -> Any:
    if not isinstance(operations, list):
        raise NotApplicable("not a list")
    for operation in operations:
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        try:
            holder = document
            for part in parents:
                holder = holder[int(part)] if isinstance(holder, list) else holder[part]
            _apply(holder, last, operation)
        except (KeyError, IndexError, ValueError) as error:
            raise NotApplicable(str(error)) from error
    return document


def _apply(holder: Any, last: str, operation: dict[str, Any]) -> None:
    if isinstance(holder, list):
        index = len(holder) if last == "-" else int(last)
        if operation["op"] == "add":
            holder.insert(index, operation["value"])
        elif operation["op"] == "remove":
            del holder[index]
        else:
            holder[index] = _checked(holder[index], operation)
    elif operation["op"] == "remove":
        del holder[last]
    elif operation["op"] == "add":
        holder[last] = operation["value"]
    else:
        holder[last] = _checked(holder[last], operation)


def _checked(old: Any, operation: dict[str, Any]) -> Any:
    if operation["op"] != "test":
        return operation["value"]
    if old != operation["value"]:
        raise NotApplicable("test failed")
    return old
