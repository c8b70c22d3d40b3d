"""Compiled CEL rules of a schema, by node; nodes without rules at or below them are left out."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from podfit.api.apiextensions.v1.types import JSONSchemaProps, ValidationRule
from podfit.api.structural.cel.evaluate import Program
from podfit.api.structural.cel.rule import checked_message, checked_rule
from podfit.api.structural.cel.types import declared
from podfit.core.loop_slices import spend

if TYPE_CHECKING:
    from podfit.api.structural.cel.types import Declared

_MOST_SCHEMAS = 256


@dataclass(frozen=True, slots=True)
class Compiled:
    """A rule; `program` is a text where it cannot be read."""

    rule: ValidationRule
    program: "Program | str"
    message: "Program | None"
    changes: bool
    """Whether it is about what was there before."""


@dataclass(frozen=True, slots=True)
class RuleNode:
    schema: JSONSchemaProps
    declared: "Declared | None"
    rules: tuple[Compiled, ...]
    properties: "Mapping[str, RuleNode]" = field(default_factory=dict)
    items: "RuleNode | None" = None
    values: "RuleNode | None" = None


_KNOWN: OrderedDict[int, tuple[JSONSchemaProps, RuleNode | None]] = OrderedDict()


def rules_of(schema: JSONSchemaProps) -> RuleNode | None:
    """Of a whole object; None without rules."""
    known = _KNOWN.get(id(schema))
    if known is None or known[0] is not schema:
        known = _KNOWN[id(schema)] = schema, _node(schema, root=True)
        while len(_KNOWN) > _MOST_SCHEMAS:
            _KNOWN.popitem(last=False)
    return known[1]


def _node(schema: JSONSchemaProps, *, root: bool = False) -> RuleNode | None:
    spend(1)
    properties = {name: _node(inner) for name, inner in schema.properties.items()}
    below = {name: node for name, node in properties.items() if node is not None}
    items = _node(schema.items) if schema.items is not None else None
    values = schema.additional_properties
    inner = _node(values) if isinstance(values, JSONSchemaProps) else None
    if not (schema.validations or below or items or inner):
        return None
    if not schema.validations:
        return RuleNode(schema, None, (), below, items, inner)
    # What evaluates rules is loaded with the first of them.

    known = declared(schema, root=root)
    return RuleNode(schema, known, tuple(_compiled(rule, known) for rule in schema.validations), below, items, inner)


def _compiled(rule: ValidationRule, known: "Declared | None") -> Compiled:
    spend(10 * (len(rule.rule) + len(rule.message_expression)))
    if known is None:
        return Compiled(rule, "the schema declares no type", None, False)
    checked = checked_rule(rule, known)
    message = checked_message(rule, known)
    if isinstance(checked, str):
        return Compiled(rule, checked, None, False)
    program = None if message is None or isinstance(message, str) else Program(message)
    return Compiled(rule, Program(checked), program, "oldSelf" in checked.tree.names)
