"""A patch from bytes. What is wrong with them is said in the words of upstream's decoder, which clients look for."""

import json
from typing import Any

from podfit.apiserver.documents import parse_json
from podfit.core.errors import ApiError, bad_request

_KINDS = {list: "array", dict: "object", str: "string", bool: "bool", int: "number", float: "number"}
_EXPECTED = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Illegal trailing comma before end of array": "looking for beginning of value",
    "Expecting ':' delimiter": "after object key",
    "Extra data": "after top-level value",
}
_ENDLESS = ("Unterminated string", "Invalid control character")


def decoded(body: bytes, *, prefix: str) -> tuple[Any, list[str]]:
    """The patch, and its members that occur twice in one object. Raises 400, its text after `prefix`."""
    try:
        return parse_json(body)
    except ApiError as error:
        if (said := _syntax(body)) is None:
            raise
        raise bad_request(prefix + said) from error


def unmarshalled(value: Any, into: str) -> str:
    """That a document is not of the kind that a patch has to be."""
    return f"json: cannot unmarshal {_KINDS[type(value)]} into Go value of type {into}"


def _syntax(body: bytes) -> str | None:
    """None for a document that is JSON, refused for another reason."""
    try:
        json.loads(body.decode())
    except json.JSONDecodeError as error:
        text = error.doc
        if error.pos >= len(text.rstrip()) or error.msg.startswith(_ENDLESS):
            return "unexpected end of JSON input"
        found = _EXPECTED.get(error.msg) or _after(text[: error.pos])
        return f"invalid character '{text[error.pos]}' {found}"
    except (UnicodeDecodeError, RecursionError):
        return None
    return None


def _after(before: str) -> str:
    """What should have been followed by a comma or an end: the innermost that is open at the end of this text."""
    depth = 0
    for letter in reversed(before):
        depth += letter in "}]"
        depth -= letter in "{["
        if depth < 0:
            return "after object key:value pair" if letter == "{" else "after array element"
    return "after top-level value"
