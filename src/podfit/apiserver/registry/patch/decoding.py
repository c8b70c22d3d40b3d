"""A patch from bytes. What is wrong with them is said in the words of upstream's decoder, which clients look for."""

from typing import Any

from podfit.apiserver.request.documents import parse_json
from podfit.core.errors import ApiError, bad_request
from podfit.core.go_json import syntax_error

_KINDS = {list: "array", dict: "object", str: "string", bool: "bool", int: "number", float: "number"}


def decoded(body: bytes, *, prefix: str) -> tuple[Any, list[str]]:
    """The patch, and its members that occur twice in one object. Raises 400, its text after `prefix`."""
    try:
        return parse_json(body)
    except ApiError as error:
        if error.code == 413 or (said := syntax_error(body)) is None:
            raise
        raise bad_request(prefix + said) from error


def unmarshalled(value: object, into: str) -> str:
    """That a document is not of the kind that a patch has to be."""
    return f"json: cannot unmarshal {_KINDS[type(value)]} into Go value of type {into}"
