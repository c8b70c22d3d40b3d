"""Checks a schema's CEL rules and message expressions: what they may name, and the type of their result."""

from podfit.api.apiextensions.v1.types import ValidationRule
from podfit.api.structural.cel.check import Checked, check
from podfit.api.structural.cel.types import BOOL, STRING, Declared, Type, loose, optional_of

SELF, OLD = "self", "oldSelf"


def variables(rule: ValidationRule, known: Declared) -> dict[str, Type]:
    return {SELF: known.kind, OLD: optional_of(known.kind) if rule.optional_old_self else known.kind}


def checked_rule(rule: ValidationRule, known: Declared) -> Checked | str:
    """Or what is wrong."""
    found = check(rule.rule, variables(rule, known))
    if isinstance(found, str):
        return f"compilation failed: {found}"
    return found if found.kind == BOOL else "cel expression must evaluate to a bool"


def checked_message(rule: ValidationRule, known: Declared) -> Checked | str | None:
    """Or what is wrong; None where there is none. It sees the old value as it is, also where the rule may lack it."""
    if not rule.message_expression.strip():
        return None
    found = check(rule.message_expression, {SELF: known.kind, OLD: known.kind})
    if isinstance(found, str):
        return f"messageExpression compilation failed: {found}"
    return found if found.kind == STRING and not loose(found.kind) else "messageExpression must evaluate to a string"
