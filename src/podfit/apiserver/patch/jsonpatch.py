"""RFC 6902: a list of operations on JSON pointers."""

import re
from typing import Any

from podfit.apiserver.patch.decoding import unmarshalled
from podfit.core.errors import ApiError, bad_request

OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")
MOST_OPERATIONS = 10_000
_INDEX = re.compile("0|[1-9][0-9]{0,8}")


class _Failed(Exception):
    """An operation that the document does not allow."""


def apply(document: Any, patch: Any) -> Any:
    """The document after all operations. ApiError 400 when the patch is none, 422 when it does not fit the document."""
    if patch is None:
        return document
    if not isinstance(patch, list):
        raise bad_request(f"error decoding patch: {unmarshalled(patch, 'jsonpatch.Patch')}")
    if len(patch) > MOST_OPERATIONS:
        limit = f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {len(patch)}"
        raise ApiError(413, "RequestEntityTooLarge", f"Request entity too large: {limit}")
    try:
        for operation in patch:
            document = _operate(document, operation)
    except _Failed:
        message = "the server rejected our request due to an error in our request"
        raise ApiError(422, "Invalid", message, {}) from None
    return document


def _operate(document: Any, operation: Any) -> Any:
    if not isinstance(operation, dict) or operation.get("op") not in OPERATIONS:
        raise _Failed
    path = _pointer(operation.get("path"))
    match operation["op"]:
        case "add":
            return _add(document, path, operation.get("value"))
        case "remove":
            return _remove(document, path)
        case "replace":
            return _replace(document, path, operation.get("value"))
        case "test":
            if _tested(document, path) != operation.get("value"):
                raise _Failed
            return document
    source = _pointer(operation.get("from"))
    value = _get(document, source)
    if operation["op"] == "move":
        if path[: len(source)] == source and path != source:
            raise _Failed
        document = _remove(document, source)
    return _add(document, path, value)


def _replace(document: Any, path: list[str], value: Any) -> Any:
    """A member that an object does not have is added, as upstream does."""
    holder = _get(document, path[:-1])
    if isinstance(holder, list):
        _index(path[-1], len(holder) - 1)
        document = _remove(document, path)
    return _add(document, path, value) if path else value


def _tested(document: Any, path: list[str]) -> Any:
    """A member that an object does not have is null."""
    holder = _get(document, path[:-1])
    return holder.get(path[-1]) if path and isinstance(holder, dict) else _get(document, path)


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise _Failed
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _get(document: Any, path: list[str]) -> Any:
    for part in path:
        if isinstance(document, dict) and part in document:
            document = document[part]
        elif isinstance(document, list):
            document = document[_index(part, len(document) - 1)]
        else:
            raise _Failed
    return document


def _index(part: str, highest: int) -> int:
    if not _INDEX.fullmatch(part) or int(part) > highest:
        raise _Failed
    return int(part)


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    part, *rest = path
    if isinstance(document, dict):
        if rest and part not in document:
            raise _Failed
        return {**document, part: _add(document.get(part), rest, value)}
    if isinstance(document, list):
        if rest:
            index = _index(part, len(document) - 1)
            return [*document[:index], _add(document[index], rest, value), *document[index + 1 :]]
        index = len(document) if part == "-" else _index(part, len(document))
        return [*document[:index], value, *document[index:]]
    raise _Failed


def _remove(document: Any, path: list[str]) -> Any:
    if not path:
        raise _Failed
    part, *rest = path
    if isinstance(document, dict) and part in document:
        if rest:
            return {**document, part: _remove(document[part], rest)}
        return {name: value for name, value in document.items() if name != part}
    if isinstance(document, list):
        index = _index(part, len(document) - 1)
        middle = [_remove(document[index], rest)] if rest else []
        return [*document[:index], *middle, *document[index + 1 :]]
    raise _Failed
