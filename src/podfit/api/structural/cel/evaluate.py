"""Rules asked about values."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import celpy
import re2
from celpy import celtypes
from celpy.adapter import json_to_cel
from celpy.evaluation import CELEvalError, CELSyntaxError, CELUnsupportedError

from podfit.api.apiextensions import JSONSchemaProps, ValidationRule
from podfit.api.structural.cel.check import environment, parsed
from podfit.api.structural.cel.functions import FUNCTIONS, NAMESPACES, Namespace, Optional
from podfit.api.structural.cel.values import typed

LONGEST_MESSAGE = 5 * 1024
_MISHAPS = (
    ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RuntimeError, AssertionError, re2.error,
    CELSyntaxError, CELUnsupportedError,
)  # fmt: skip
"""What the library and the functions raise on values that do not go together, as there is no check of types before."""


class RuleError(Exception):
    """The rule came to no verdict about this value."""


@lru_cache(maxsize=1024)
def _program(text: str) -> celpy.Runner:
    return environment.program(parsed(text), functions=FUNCTIONS)


def evaluate(
    text: str, value: Any, old: tuple[Any] | None, schema: JSONSchemaProps, *, root: bool, optional: bool = False
) -> bool:
    """The verdict; `old` holds the old value, when there is one. Raises RuleError."""
    return _verdict(_result(text, value, old, schema, root=root, optional=optional))


def holds(text: str, values: Mapping[str, Any]) -> bool:
    """The verdict of an expression about these values, each as JSON has it. Raises RuleError."""
    return _verdict(_run(text, {name: json_to_cel(value) for name, value in values.items()}))


def _verdict(found: Any) -> bool:
    if not isinstance(found, bool | celtypes.BoolType):
        raise RuleError(f"unexpected result of type {type(found).__name__.removesuffix('Type').lower()}")
    return bool(found)


def message_of(
    rule: ValidationRule, value: Any, old: tuple[Any] | None, schema: JSONSchemaProps, *, root: bool
) -> str:
    """What the rule's own expression says; empty when it fails, is too long or no single line of text."""
    try:
        found = _result(
            rule.message_expression, value, old, schema, root=root, optional=bool(rule.optional_old_self)
        )
    except RuleError:
        return ""
    text = str(found).strip() if isinstance(found, str) else ""
    return text if "\n" not in text and len(text) <= LONGEST_MESSAGE else ""


def _result(
    text: str, value: Any, old: tuple[Any] | None, schema: JSONSchemaProps, *, root: bool, optional: bool
) -> Any:
    before = typed(old[0], schema, root=root) if old is not None else None
    return _run(text, {
        "self": typed(value, schema, root=root),
        "oldSelf": Optional(before, given=old is not None) if optional else before,
    })


def _run(text: str, names: dict[str, Any]) -> Any:
    try:
        found = _program(text).evaluate({name: Namespace(name) for name in NAMESPACES} | names)
    except CELEvalError as error:
        raise RuleError(_said(error)) from None
    except _MISHAPS as error:
        raise RuleError(str(error)) from None
    if isinstance(found, CELEvalError):
        raise RuleError(_said(found))
    return found


def _said(error: CELEvalError) -> str:
    first = str(error.args[0]) if error.args else str(error)
    return first.replace("no such member in mapping: ", "no such key: ").replace("'", "")
