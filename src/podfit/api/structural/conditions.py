"""CEL conditions of a webhook (`matchConditions`): what is wrong with one, and whether it holds for a request.

What evaluates them is a large library, so nothing of `cel` is loaded before a condition is met.
"""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from podfit.api.apiextensions import JSONSchemaProps

if TYPE_CHECKING:
    from podfit.api.structural.cel.check import Variables


def condition_problem(expression: str) -> str:
    """Why the expression cannot be taken, empty when it can."""
    from podfit.api.structural.cel.check import problem

    return problem(expression, _variables())


def condition_holds(expression: str, values: Mapping[str, Any]) -> bool | str:
    """The verdict about `object`, `oldObject` and `request`, as JSON has them; a text where there is none."""
    from podfit.api.structural.cel.evaluate import RuleError, holds

    try:
        return holds(expression, values)
    except RuleError as error:
        return f"expression '{expression}' resulted in error: {error}"


def _object(**members: JSONSchemaProps) -> JSONSchemaProps:
    return JSONSchemaProps(type="object", properties=members)


@cache
def _variables() -> "Variables":
    """Objects may be of any kind; a request is always of one form. `authorizer` is not there."""
    from podfit.api.structural.cel.check import Variables

    text, unknown = JSONSchemaProps(type="string"), JSONSchemaProps(preserve_unknown_fields=True)
    texts = JSONSchemaProps(type="array", items=text)
    kind, resource = _object(group=text, version=text, kind=text), _object(group=text, version=text, resource=text)
    user = _object(
        username=text, uid=text, groups=texts, extra=JSONSchemaProps(type="object", additional_properties=texts))
    request = _object(
        kind=kind, resource=resource, subResource=text, requestKind=kind, requestResource=resource,
        requestSubResource=text, name=text, namespace=text, operation=text, userInfo=user,
        dryRun=JSONSchemaProps(type="boolean"), options=unknown)
    return Variables({"object": None, "oldObject": None, "request": (request, False)}, escaping=False)
