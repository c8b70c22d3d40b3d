"""CEL rules of a schema (`x-kubernetes-validations`): whether there are any, what is wrong with them, what they refuse.

What evaluates them is a large library, so nothing of `cel` is loaded before a rule is met.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from podfit.api.apiextensions import JSONSchemaProps, ValidationRule
from podfit.core.fields import FieldError, duplicate, forbidden, invalid, required

NOWHERE = "<nil>"
"""How upstream prints the place of an error that has none."""
REASONS = ("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")
_ABSENT: Any = object()


def has_rules(schema: JSONSchemaProps) -> bool:
    """Whether a rule stands anywhere in the schema."""
    return bool(schema.validations) or any(has_rules(each) for each in _below(schema))


def _below(schema: JSONSchemaProps) -> Iterator[JSONSchemaProps]:
    yield from schema.properties.values()
    if schema.items is not None:
        yield schema.items
    if isinstance(schema.additional_properties, JSONSchemaProps):
        yield schema.additional_properties


def rule_problems(schema: JSONSchemaProps, rule: ValidationRule, *, root: bool, told_apart: bool) -> Iterator[
    tuple[str, str, str]
]:  # fmt: skip
    """Why a rule cannot be taken: the member, its value, and a text. `told_apart`: the old value of what it is about
    can be found."""
    from podfit.api.structural.cel.check import of_self, problem

    variables = of_self(schema, root=root, optional=bool(rule.optional_old_self))

    for name, text in (("rule", rule.rule), ("messageExpression", rule.message_expression)):
        if text.strip() and (why := problem(text, variables)):
            yield name, text, f"compilation failed: {why}"
        elif text.strip() and not told_apart and _names_old(text):
            why = "oldSelf cannot be used on the uncorrelatable portion of the schema"
            yield name, text, why


@lru_cache(maxsize=1024)
def _names_old(text: str) -> bool:
    from podfit.api.structural.cel.check import names_old

    return names_old(text)


def rule_errors(document: Any, before: Any, schema: JSONSchemaProps) -> Iterator[FieldError]:
    """What rules refuse of a whole object, which is of the right form; `before` is None for a new one."""
    yield from _errors(document, _ABSENT if before is None else before, schema, "", root=True)


def _errors(value: Any, old: Any, schema: JSONSchemaProps, path: str, *, root: bool = False) -> Iterator[FieldError]:
    if value is None or not has_rules(schema):
        return
    for rule in schema.validations:
        yield from _refused(rule, value, old, schema, path, root=root)
    if isinstance(value, dict):
        known = old if isinstance(old, dict) else {}
        for name in sorted(value):
            inner, here = schema.properties.get(name), f"{path}.{name}" if path else name
            if inner is None and isinstance(schema.additional_properties, JSONSchemaProps):
                inner, here = schema.additional_properties, f"{path}[{name}]"
            if inner is not None:
                yield from _errors(value[name], known.get(name, _ABSENT), inner, here)
    elif isinstance(value, list) and schema.items is not None:
        for index, (item, was) in enumerate(_paired(value, old, schema)):
            yield from _errors(item, was, schema.items, f"{path}[{index}]")


def _paired(items: list[Any], old: Any, schema: JSONSchemaProps) -> Iterator[tuple[Any, Any]]:
    """Each item with what it was before, where keys tell."""
    if schema.list_type != "map" or not isinstance(old, list):
        yield from ((item, _ABSENT) for item in items)
        return
    known = {_key(each, schema): each for each in old}
    yield from ((item, known.get(_key(item, schema), _ABSENT)) for item in items)


def _key(item: Any, schema: JSONSchemaProps) -> bytes:
    return msgspec.json.encode([item.get(name) for name in schema.list_map_keys])


def _refused(
    rule: ValidationRule, value: Any, old: Any, schema: JSONSchemaProps, path: str, *, root: bool
) -> Iterator[FieldError]:
    from podfit.api.structural.cel.evaluate import RuleError, evaluate, message_of

    changes = _names_old(rule.rule)
    if changes and old is _ABSENT and not rule.optional_old_self:
        return
    if not changes and old is not _ABSENT and old == value:
        return  # ratcheting: what is as it was may stay so
    was = None if old is _ABSENT else (old,)
    said = rule.message.strip() or f"failed rule: {rule.rule.strip()}"
    try:
        holds = evaluate(rule.rule, value, was, schema, root=root, optional=bool(rule.optional_old_self))
    except RuleError as error:
        yield invalid(path or NOWHERE, value, f"{error} evaluating rule: {said}")
        return
    if holds is True:
        return
    if rule.message_expression:
        said = message_of(rule, value, was, schema, root=root) or said
    yield _error(rule, (path + rule.field_path).lstrip(".") or NOWHERE, value, said)


def _error(rule: ValidationRule, path: str, value: Any, text: str) -> FieldError:
    match rule.reason:
        case "FieldValueForbidden":
            return forbidden(path, text)
        case "FieldValueRequired":
            return required(path, text)
        case "FieldValueDuplicate":
            return duplicate(path, value)
    return invalid(path, value, text)
