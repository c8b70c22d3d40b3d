"""RFC 6902: a list of operations on JSON pointers, with the habits of the library that upstream uses.

Places in lists may count from the end (`-1` is the last), what stands before the first slash of a pointer does not
matter, and a value that is compared has to be written the same: 1 is not 1.0.

What an operation changes is copied once and changed in place from then on, so that ten thousand operations on a large
list do not copy it ten thousand times. What the document and the patch hold is never changed.
"""

import re
from typing import Any

import msgspec

from podfit.api.meta.base import Document
from podfit.apiserver.registry.patch.decoding import unmarshalled
from podfit.apiserver.request.documents import DEEPEST
from podfit.core.errors import ApiError, bad_request

OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")
_MEMBERS = ("op", "from", "path", "value")
MOST_OPERATIONS = 10_000
MOST_COPIED = 3 * 1024 * 1024
"""Bytes of JSON that all copies of a patch may add, as upstream."""
MOST_MOVED = 50_000_000
"""Items that insertions and removals may move on in their lists."""
_INDEX = re.compile(r"[+-]?[0-9]{1,9}")
_ABSENT = object()


def odd_members(patch: object) -> list[str]:
    """The members that no operation has, as a strict reader reports them. Raises 400 for a pointer that is no text."""
    found = []
    for index, operation in enumerate(patch if isinstance(patch, list) else ()):
        for name, value in operation.items() if isinstance(operation, dict) else ():
            if name not in _MEMBERS:
                found.append(f'unknown field "[{index}].{name}"')
            elif name != "value" and not isinstance(value, str | None):
                what = unmarshalled(value, "string").replace("Go value", f"Go struct field jsonPatchOp.{name}")
                raise bad_request(f"error decoding patch: {what}")
    return found


class _Failed(Exception):
    """An operation that the document does not allow; the text is for who asked too much."""


def apply(document: object, patch: object) -> Any:
    """The document after all operations. ApiError 400 when the patch is none, 422 when it does not fit the document."""
    if patch is None:
        return document
    if not isinstance(patch, list):
        raise bad_request(f"error decoding patch: {unmarshalled(patch, 'jsonpatch.Patch')}")
    for operation in patch:
        if not (operation is None or isinstance(operation, dict)):
            raise bad_request(f"error decoding patch: {unmarshalled(operation, 'jsonpatch.Operation')}")
    if len(patch) > MOST_OPERATIONS:
        limit = f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {len(patch)}"
        raise ApiError(413, "RequestEntityTooLarge", f"Request entity too large: {limit}")
    try:
        return _Patching(document).after(patch)
    except _Failed as failed:
        message = "the server rejected our request due to an error in our request"
        details = {"causes": [{"message": str(failed)}]} if failed.args else {}
        raise ApiError(422, "Invalid", message, details) from None


class _Patching:
    """A document on its way through a patch."""

    def __init__(self, document: object) -> None:
        self._document = document
        self._own: dict[int, Any] = {}
        """Copies that were made here, by identity; nobody else has them."""
        self._copied = self._moved = 0

    def after(self, patch: list[Any]) -> Any:
        for operation in patch:
            if not isinstance(operation, dict) or operation.get("op") not in OPERATIONS:
                raise _Failed
            if operation.get("path") == "" and operation["op"] in ("replace", "test"):
                self._operate_on_all(operation)
            else:
                self._operate(operation, _pointer(operation.get("path")))
        return self._document

    def _operate_on_all(self, operation: Document) -> None:
        """The empty path stands for the document, which only another object or list can replace."""
        value = operation.get("value", _ABSENT)
        if operation["op"] == "test" and not _same(self._document, value):
            raise _Failed
        if operation["op"] == "replace" and isinstance(value, dict | list):
            self._document = value

    def _operate(self, operation: Document, path: list[str]) -> None:
        match operation["op"]:
            case "add":
                self._add(path, operation.get("value"))
            case "remove":
                self._remove(path)
            case "replace":
                self._replace(path, operation.get("value"))
            case "test":
                if not _same(self._tested(path), operation.get("value", _ABSENT)):
                    raise _Failed
            case "copy":
                self._add(path, self._copy(self._tested(_pointer(operation.get("from")))))
            case "move":
                source = _pointer(operation.get("from"))
                value = self._get(source)
                self._remove(source)
                self._add(path, value)

    def _copy(self, value: object) -> Any:
        """A copy of its own, so that a change of one is none of the other."""
        text = msgspec.json.encode(value)
        self._copied += len(text)
        if self._copied > MOST_COPIED:
            raise _Failed(
                f"Unable to complete the copy, the accumulated size increase of copy is {self._copied}, "
                f"exceeding the limit {MOST_COPIED}"
            )
        return msgspec.json.decode(text)

    def _tested(self, path: list[str]) -> Any:
        """A member that an object does not have is null."""
        holder = self._get(path[:-1])
        return holder.get(path[-1]) if isinstance(holder, dict) else self._get(path)

    def _get(self, path: list[str]) -> Any:
        value = self._document
        for part in path:
            value = _inside(value, part)
        return value

    def _add(self, path: list[str], value: object) -> None:
        holder, part = self._holder(path), path[-1]
        if isinstance(holder, dict):
            holder[part] = value
        else:
            index = len(holder) if part == "-" else _index(part, len(holder) + 1)
            self._move(len(holder) - index)
            holder.insert(index, value)

    def _remove(self, path: list[str]) -> None:
        holder, part = self._holder(path), path[-1]
        if isinstance(holder, dict):
            if part not in holder:
                raise _Failed
            del holder[part]
        else:
            index = _index(part, len(holder))
            self._move(len(holder) - index)
            del holder[index]

    def _replace(self, path: list[str], value: object) -> None:
        """A member that an object does not have is added, as upstream does."""
        if isinstance(self._get(path[:-1]), list):
            holder = self._holder(path)
            holder[_index(path[-1], len(holder))] = value
        else:
            self._add(path, value)

    def _holder(self, path: list[str]) -> Any:
        """The object or list that the last part is in, to be changed."""
        self._document = holder = self._changeable(self._document)
        for part in path[:-1]:
            inner = self._changeable(_inside(holder, part))
            holder[part if isinstance(holder, dict) else _index(part, len(holder))] = inner
            holder = inner
        return holder

    def _changeable(self, value: object) -> Any:
        if not isinstance(value, dict | list):
            raise _Failed
        if id(value) in self._own:
            return value
        copy = value.copy()
        self._own[id(copy)] = copy
        return copy

    def _move(self, items: int) -> None:
        self._moved += items
        if self._moved > MOST_MOVED:
            raise _Failed(f"insertions and removals move more than {MOST_MOVED} items of their lists")


def _same(one: Any, other: Any) -> bool:
    """Whether two values are written the same, but for the order of members."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _pointer(text: object) -> list[str]:
    """The parts of a pointer, at least one."""
    if not isinstance(text, str) or not 0 < text.count("/") <= DEEPEST:
        raise _Failed
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _inside(value: object, part: str) -> Any:
    if isinstance(value, dict) and part in value:
        return value[part]
    if isinstance(value, list):
        return value[_index(part, len(value))]
    raise _Failed


def _index(part: str, length: int) -> int:
    """A place in a list of this length; below zero from its end."""
    place = int(part) if _INDEX.fullmatch(part) else length
    place += length if place < 0 else 0
    if not 0 <= place < length:
        raise _Failed
    return place
