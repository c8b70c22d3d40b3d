"""Names the right that a refusal of the API speaks of: `list pods in namespace shop`."""

import re
from collections.abc import Iterable

import msgspec

from podfit.core.errors import ApiError

FORBIDDEN = 403
_CANNOT = re.compile(
    r'cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)")?'
)


_MAY_NOT = re.compile(
    r"you may not (?P<verb>\w+) (?P<resource>[\w./-]+)(?P<group>)(?: in namespace (?P<namespace>[\w.-]+))?"
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
    return _right_in(error.message)


def by_rights(notes: Iterable[str]) -> tuple[str, ...]:
    """The notes; those that speak of missing rights as one: `...; needs: list nodes, get nodes/proxy`."""
    others, rights = list[str](), dict[str, None]()
    for note in notes:
        right = _right_in(note)
        if right is None:
            others.append(note)
        else:
            rights[str(right)] = None
    lacking = (f"not everything may be read; needs: {', '.join(rights)}",) if rights else ()
    return (*dict.fromkeys(others), *lacking)


def _right_in(text: str) -> Right | None:
    told = _CANNOT.search(text) or _MAY_NOT.search(text)
    if told is None:
        return None
    resource = told["resource"] + (f".{told['group']}" if told["group"] else "")
    return Right(told["verb"], resource, told["namespace"] or "")


def why_unread(error: ApiError) -> str:
    """`you may not list pods`, or the API's own text where it names no right."""
    right = missing_right(error)
    return f"you may not {right}" if right else error.message
