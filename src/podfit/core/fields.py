"""`FieldError`: validation errors of fields, in the API's words.

A validator returns a list of `FieldError`; an empty one means valid. `refusal()` turns a list into the 422 that a
client sees, duplicates removed and one cause per error (R-048, R-049).
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from podfit.core.errors import ApiError
from podfit.core.quantity import Quantity

_REASONS = {
    "Invalid value": "FieldValueInvalid",
    "Required value": "FieldValueRequired",
    "Forbidden": "FieldValueForbidden",
    "Unsupported value": "FieldValueNotSupported",
    "Duplicate value": "FieldValueDuplicate",
    "Not found": "FieldValueNotFound",
    "Too long": "FieldValueTooLong",
    "Too many": "FieldValueTooMany",
}


class FieldError(msgspec.Struct, frozen=True):
    field: str
    kind: str  # a key of _REASONS
    detail: str = ""
    value: str | None = None  # already in its printed form
    reason: str = ""  # of the cause, where the kind does not say it

    @property
    def body(self) -> str:
        """`Invalid value: "x": why`, the text without its field."""
        return ": ".join(part for part in (self.kind, self.value, self.detail) if part)

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"

    def cause(self) -> dict[str, str]:
        return {"reason": self.reason or _REASONS[self.kind], "message": self.body, "field": self.field}


_CONTROL = re.compile(r"(?<!\\)((?:\\\\)*)\\u00([0-9a-f]{2})")


def _go_escape(match: re.Match[str]) -> str:
    return match[1] + {"07": r"\a", "0b": r"\v"}.get(match[2], rf"\x{match[2]}")


@lru_cache(maxsize=1)  # a long text is often wrong in several ways
def _quoted(text: str) -> str:
    quoted = msgspec.json.encode(text).decode()
    return _CONTROL.sub(_go_escape, quoted) if r"\u00" in quoted else quoted


def go_value(value: Any) -> str:
    """A value as Go prints it in an error: strings and quantities quoted, numbers bare, the rest as JSON."""
    if isinstance(value, (str, Quantity)):
        return _quoted(str(value))
    if value is None:
        return "null"
    if isinstance(value, (bool, int, float)):
        return str(value).lower()
    return msgspec.json.encode(value, enc_hook=str).decode()


def invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError(field, "Invalid value", detail, go_value(value))


def type_invalid(field: str, value: Any, detail: str) -> FieldError:
    """What `invalid` says, for a reader that tells types from values by the reason."""
    return FieldError(field, "Invalid value", detail, go_value(value), reason="FieldValueTypeInvalid")


def required(field: str, detail: str = "") -> FieldError:
    return FieldError(field, "Required value", detail)


def forbidden(field: str, detail: str) -> FieldError:
    return FieldError(field, "Forbidden", detail)


def unsupported(field: str, value: Any, supported: Sequence[str]) -> FieldError:
    """`supported` is printed in the order given, each quoted."""
    listed = ", ".join(go_value(item) for item in supported)
    return FieldError(field, "Unsupported value", f"supported values: {listed}" if supported else "", go_value(value))


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError(field, "Duplicate value", value=go_value(value))


def missing(field: str, value: Any, detail: str = "") -> FieldError:
    """A reference to something that is not there."""
    return FieldError(field, "Not found", detail, go_value(value))


def too_long(field: str, limit: int) -> FieldError:
    return FieldError(field, "Too long", f"may not be more than {limit} bytes")


def too_many(field: str, actual: int, limit: int) -> FieldError:
    return FieldError(field, "Too many", f"must have at most {limit} items", str(actual))


def refusal(kind: str, name: str, errors: Iterable[FieldError], *, group: str = "") -> ApiError:
    """The 422 `Pod "web" is invalid: …` for these errors; the text names each once, the causes all of them."""
    errors = list(errors)
    texts = list(dict.fromkeys(str(error) for error in errors))
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind}.{group}" if group else kind
    details: dict[str, Any] = {"name": name, "group": group, "kind": kind}
    details = {key: value for key, value in details.items() if value}
    details["causes"] = [error.cause() for error in errors]
    return ApiError(422, "Invalid", f'{qualified} "{name}" is invalid: {listed}', details)
