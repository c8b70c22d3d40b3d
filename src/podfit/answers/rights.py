"""Names the right that a refusal of the API speaks of: `list pods in namespace shop`."""

import re

import msgspec

from podfit.core.errors import ApiError

FORBIDDEN = 403
_CANNOT = re.compile(
    r'cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)")?'
)


class Right(msgspec.Struct, frozen=True):
    """`resource` has its group behind a dot, as `kubectl auth can-i` takes it; `namespace` is empty for all of them."""

    verb: str
    resource: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}" + (f" in namespace {self.namespace}" if self.namespace else "")


def missing_right(error: ApiError) -> Right | None:
    """The right that was missing; None when the message names none, as of a webhook or of another kind of error."""
    told = _CANNOT.search(error.message)
    if told is None:
        return None
    resource = told["resource"] + (f".{told['group']}" if told["group"] else "")
    return Right(told["verb"], resource, told["namespace"] or "")


def why_unread(error: ApiError) -> str:
    """`you may not list pods`, or the API's own text where it names no right."""
    right = missing_right(error)
    return f"you may not {right}" if right else error.message
