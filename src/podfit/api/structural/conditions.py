"""CEL conditions of a webhook (`matchConditions`): what is wrong with one, and whether all hold for a request.

What evaluates them is a large library, so nothing of `cel` is loaded before a condition is met.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from podfit.api.structural.cel.check import check
from podfit.api.structural.cel.evaluate import Program
from podfit.api.structural.cel.types import BOOL, DYN, STRING, Type, list_of, map_of
from podfit.core.bounded_cache import cached_within
from podfit.core.loop_slices import TooLong, left, spend

CALL_LIMIT = 1_000_000
"""Of one condition, in upstream's units."""
WEBHOOK_BUDGET = 2_500_000
"""Of all conditions of one webhook for one request."""
_SPENT = "validation failed due to running out of cost budget, no further validation rules will be run"
_OVER = "operation cancelled: actual cost limit exceeded"


def condition_problem(expression: str) -> str:
    """Why the expression cannot be taken, empty when it can."""
    found = _checked(expression)
    return found if isinstance(found, str) else ""


def verdicts(expressions: Iterable[str], values: Mapping[str, Any]) -> list[bool | str] | str:
    """About `object`, `oldObject` and `request`, as JSON has them: of each condition its verdict, or a text where it
    comes to none; a text alone when all together cost too much. Raises TooLong.
    """
    budget, found = WEBHOOK_BUDGET, list[bool | str]()
    for expression in expressions:
        program = _checked(expression)
        if isinstance(program, str):
            found.append(f"expression '{expression}' resulted in error: {program}")
            continue
        turn = left()
        limit = CALL_LIMIT if turn is None else max(0, min(CALL_LIMIT, turn))
        outcome = program.run({"namespaceObject": None, **values}, limit)
        if outcome.over and limit < CALL_LIMIT:
            raise TooLong
        spend(outcome.cost + 1)
        if outcome.cost > budget:
            return _SPENT
        budget -= outcome.cost
        error = _OVER if outcome.over else outcome.error
        if not error and isinstance(outcome.value, bool):
            found.append(outcome.value)
        else:
            found.append(f"expression '{expression}' resulted in error: {error or 'no such overload'}")
    return found


@cached_within(128 * 1024)
def _checked(expression: str) -> "Program | str":
    spend(10 * len(expression))
    checked = check(expression, _variables())
    if isinstance(checked, str):
        return f"compilation failed: {checked}"
    if checked.kind.name != "bool":
        return f"must evaluate to bool but got {checked.kind}"
    if "authorizer" in checked.tree.names:
        return "this server has no authorizer for conditions"
    return Program(checked)


@lru_cache(maxsize=1)
def _variables() -> "Mapping[str, Type]":
    """Objects may be of any kind; a request is always of one form."""

    def made(kind: str, /, **members: Type) -> Type:
        return Type(f"kubernetes.{kind}", (), members)

    kind = made("GroupVersionKind", group=STRING, version=STRING, kind=STRING)
    resource = made("GroupVersionResource", group=STRING, version=STRING, resource=STRING)
    user = made("UserInfo", username=STRING, uid=STRING, groups=list_of(STRING), extra=map_of(STRING, list_of(STRING)))
    request = made(
        "AdmissionRequest",
        kind=kind,
        resource=resource,
        subResource=STRING,
        requestKind=kind,
        requestResource=resource,
        requestSubResource=STRING,
        name=STRING,
        namespace=STRING,
        operation=STRING,
        userInfo=user,
        dryRun=BOOL,
        options=DYN,
    )
    return {
        "object": DYN,
        "oldObject": DYN,
        "request": request,
        "namespaceObject": DYN,
        "authorizer": Type("kubernetes.authorization.Authorizer"),
    }
