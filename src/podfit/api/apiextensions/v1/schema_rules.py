"""Validation of a CRD's CEL rules: each must parse, fit the types of its schema, and stay within the cost limits.

A rule counts as often as its schema can occur in one object: as often as the lists and maps around it allow.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from podfit.api.apiextensions.v1.types import JSONSchemaProps, ValidationRule
from podfit.api.structural.cel.estimate import estimate
from podfit.api.structural.cel.rule import checked_message, checked_rule
from podfit.api.structural.cel.types import declared, most_in_request
from podfit.api.structural.rules import REASONS
from podfit.core.fields import FieldError, forbidden, invalid, required, unsupported
from podfit.core.loop_slices import spend

if TYPE_CHECKING:
    from podfit.api.structural.cel.types import Declared

RULE_LIMIT = 10_000_000
"""Of one rule, for all its occurrences in an object; in upstream's units."""
SCHEMA_LIMIT = 100_000_000
"""Of all rules of a schema."""
_MOST_NAMED = 4
_OVERFLOW = 2**64 - 1
_TRY = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)


@dataclass(slots=True)
class Totals:
    """What all rules cost, and those that cost most."""

    cost: int = 0
    largest: list[tuple[int, str]] = field(default_factory=list)

    def add(self, path: str, cost: int) -> None:
        self.cost = min(_OVERFLOW, self.cost + cost)
        if cost >= SCHEMA_LIMIT // 100:
            self.largest = sorted([*self.largest, (cost, path)], key=lambda known: -known[0])[:_MOST_NAMED]

    def errors(self, path: str) -> Iterator[FieldError]:
        if self.cost <= SCHEMA_LIMIT:
            return
        for _, place in self.largest:
            text = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            yield forbidden(place, text)
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield forbidden(path, _over(what, self.cost, SCHEMA_LIMIT))


@dataclass(frozen=True, slots=True)
class SchemaPosition:
    """Where a schema stands. `times` it can occur is None without a bound; what objects had at a place below
    `uncorrelated` cannot be told."""

    path: str
    root: bool = False
    times: int | None = 1
    uncorrelated: str = ""


def form_errors(schema: JSONSchemaProps, rule: ValidationRule, place: str) -> Iterator[FieldError]:
    """What is wrong with a rule besides its expressions."""
    message = rule.message.strip()
    if not rule.rule.strip():
        yield required(f"{place}.rule", "rule is not specified")
    if rule.message and not message:
        yield invalid(f"{place}.message", rule.message, "must be non-empty if specified")
    elif "\n" in message:
        yield invalid(f"{place}.message", rule.message, "must not contain line breaks")
    elif "\n" in rule.rule.strip() and not message:
        yield required(f"{place}.message", "message must be specified if rule contains line breaks")
    if rule.message_expression and not rule.message_expression.strip():
        yield required(f"{place}.messageExpression", "messageExpression must be non-empty if specified")
    if rule.reason is not None and rule.reason not in REASONS:
        yield unsupported(f"{place}.reason", rule.reason, REASONS)
    if rule.field_path and not _leads_somewhere(schema, rule.field_path):
        yield invalid(f"{place}.fieldPath", rule.field_path, "must be a valid path")


def _leads_somewhere(schema: JSONSchemaProps, path: str) -> bool:
    """Whether a path such as `.a['b'].c` names declared members."""
    step = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\['([^']+)'\]")
    node: JSONSchemaProps | bool | None = schema
    place = 0
    while place < len(path):
        found = step.match(path, place)
        if found is None or not isinstance(node, JSONSchemaProps):
            return False
        node, place = node.properties.get(found[1] or found[2]) or node.additional_properties, found.end()
    return isinstance(node, JSONSchemaProps) and bool(path)


def expression_errors(schema: JSONSchemaProps, place: SchemaPosition, totals: Totals) -> Iterator[FieldError]:
    """Of the rules of one node."""
    if not schema.validations:
        return
    # What checks rules is loaded with the first of them.

    known = declared(schema, root=place.root)
    here = f"{place.path}.x-kubernetes-validations"
    if known is None:
        text = "internal error: failed to construct type information for x-kubernetes-validations rules"
        yield forbidden(here, text)
        return
    for index, rule in enumerate(schema.validations):
        if rule.rule.strip():
            yield from _Rule(rule, known, place, f"{here}[{index}]", totals).errors()


class _Rule:
    def __init__(
        self, rule: ValidationRule, known: "Declared", place: SchemaPosition, path: str, totals: Totals
    ) -> None:
        self._rule, self._known, self._place, self._path, self._totals = rule, known, place, path, totals

    def errors(self) -> Iterator[FieldError]:
        rule, known = self._rule, self._known
        spend(10 * (len(rule.rule) + len(rule.message_expression)))
        checked, names = checked_rule(rule, known), frozenset[str]()
        if isinstance(checked, str):
            yield FieldError(f"{self._path}.rule", "Invalid value", checked, _whole(rule))
        else:
            names = checked.tree.names
            yield from self._cost("rule", estimate(checked, known), "estimated rule cost", times=self._times())
        message = checked_message(rule, known)
        if isinstance(message, str):
            yield FieldError(f"{self._path}.messageExpression", "Invalid value", message, _whole(rule))
        elif message is not None:
            what = "estimated messageExpression cost"
            yield from self._cost("messageExpression", estimate(message, known), what, times=1)
        if "oldSelf" in names and self._place.uncorrelated:
            text = "oldSelf cannot be used on the uncorrelatable portion of the schema within "
            yield invalid(f"{self._path}.rule", rule.rule, text + self._place.uncorrelated)
        elif "oldSelf" not in names and rule.optional_old_self is not None:
            text = "may not be set if oldSelf is not used in rule"
            yield invalid(f"{self._path}.optionalOldSelf", rule.optional_old_self, text)

    def _times(self) -> int:
        return most_in_request(self._known) if self._place.times is None else self._place.times

    def _cost(self, name: str, cost: int, what: str, *, times: int) -> Iterator[FieldError]:
        cost = min(_OVERFLOW, cost * times)
        if cost > RULE_LIMIT:
            yield forbidden(f"{self._path}.{name}", _over(what, cost, RULE_LIMIT))
        self._totals.add(f"{self._path}.{name}", cost)


def _over(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    text = "more than 100x" if factor > 100 else f"{factor:.6f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {text} {_TRY}"


def _whole(rule: ValidationRule) -> str:
    """As upstream prints a rule: the fields of its own type, escaped for HTML."""
    text = msgspec.json.encode(
        {
            "Rule": rule.rule,
            "Message": rule.message,
            "MessageExpression": rule.message_expression,
            "Reason": rule.reason,
            "FieldPath": rule.field_path,
            "OptionalOldSelf": rule.optional_old_self,
        }
    ).decode()
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")
