"""Runs the CEL rules of a schema (`x-kubernetes-validations`) on an object, within one cost budget."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from podfit.api.apiextensions.v1.types import JSONSchemaProps, ValidationRule
from podfit.api.structural.cel.values import Maybe, typed_value
from podfit.api.structural.compiled import Compiled, RuleNode, rules_of
from podfit.core.fields import FieldError, duplicate, forbidden, invalid, required
from podfit.core.loop_slices import TooLong, left, spend

if TYPE_CHECKING:
    from podfit.api.structural.cel.evaluate import Outcome, Program

NOWHERE = "<nil>"
"""How upstream prints the place of an error that has none."""
REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
CALL_LIMIT = 1_000_000
"""Of one evaluation, in upstream's units."""
OBJECT_BUDGET = 10_000_000
"""Of all evaluations for one object."""
LONGEST_MESSAGE = 5 * 1024
_ABSENT: Any = object()
_SPENT = "validation failed due to running out of cost budget, no further validation rules will be run"


class _Ended(Exception):
    """No further rule is asked."""


@dataclass(slots=True)
class _Budget:
    left: int = OBJECT_BUDGET


def has_rules(schema: JSONSchemaProps) -> bool:
    """Whether a rule stands anywhere in the schema of an object."""
    return rules_of(schema) is not None


def rule_errors(document: Any, before: Any, schema: JSONSchemaProps) -> list[FieldError]:
    """Of a whole object, which is of the right form; `before` is None for a new one. Raises TooLong."""
    node, errors = rules_of(schema), list[FieldError]()
    if node is None:
        return errors
    try:
        for error in _Asked(_Budget()).errors(node, document, _ABSENT if before is None else before, ""):
            errors.append(error)
    except _Ended as ended:
        errors += ended.args
    return errors


class _Asked:
    def __init__(self, budget: _Budget) -> None:
        self._budget = budget

    def errors(self, node: RuleNode, value: Any, old: Any, path: str, *, same: bool = False) -> Iterator[FieldError]:
        """`same`: what is around is as it was, so what it breaks it may go on breaking."""
        if value is None:
            return
        spend(1)
        same = same or (old is not _ABSENT and old == value)
        if node.rules:
            yield from self._rules(node, value, old, path, same=same)
        if isinstance(value, dict):
            yield from self._members(node, value, old if isinstance(old, dict) else {}, path, same=same)
        elif isinstance(value, list) and node.items is not None:
            for index, (item, was) in enumerate(_paired(value, old, node.schema)):
                yield from self.errors(node.items, item, was, f"{path}[{index}]", same=same)

    def _members(
        self, node: RuleNode, value: dict[str, Any], known: dict[str, Any], path: str, *, same: bool
    ) -> Iterator[FieldError]:
        if node.values is not None:
            for name in sorted(value):
                here = f"{path}[{name}]"
                yield from self.errors(node.values, value[name], known.get(name, _ABSENT), here, same=same)
        for name in sorted(node.properties.keys() & value.keys()):
            here = f"{path}.{name}" if path else name
            yield from self.errors(node.properties[name], value[name], known.get(name, _ABSENT), here, same=same)

    def _rules(self, node: RuleNode, value: Any, old: Any, path: str, *, same: bool) -> Iterator[FieldError]:
        if self._budget.left <= 0:
            raise _Ended(invalid(path or NOWHERE, node.schema.type, _SPENT))

        known = node.declared
        now = typed_value(value, known) if known is not None else value
        was = None if old is _ABSENT or known is None else typed_value(old, known)
        for compiled in node.rules:
            if (compiled.changes and old is _ABSENT and not compiled.rule.optional_old_self) or (
                not compiled.changes and same
            ):
                continue
            maybe = Maybe(old is not _ABSENT, was) if compiled.rule.optional_old_self else was
            yield from self._refused(node, compiled, {"self": now, "oldSelf": maybe}, was, value, path)

    def _run(self, program: "Program", variables: dict[str, Any]) -> "Outcome":
        """Raises TooLong where it costs more than this turn of the loop has left."""
        turn = left()
        if turn is None or turn >= CALL_LIMIT:
            outcome = program.run(variables, CALL_LIMIT)
        else:
            outcome = program.run(variables, max(turn, 0))
            if outcome.over:
                raise TooLong
        spend(outcome.cost + 1)
        return outcome

    def _refused(
        self, node: RuleNode, compiled: Compiled, variables: dict[str, Any], was: Any, value: Any, path: str
    ) -> Iterator[FieldError]:
        rule, kind, here = compiled.rule, node.schema.type, path or NOWHERE
        if isinstance(compiled.program, str):
            yield invalid(here, kind, f"rule compile error: {compiled.program}")
            return
        outcome = self._run(compiled.program, variables)
        if outcome.cost > self._budget.left:
            raise _Ended(invalid(here, kind, _SPENT))
        self._budget.left -= outcome.cost
        if outcome.over:
            text = (
                "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to "
                f"call cost exceeds limit for rule: {_said(rule)}"
            )
            raise _Ended(invalid(here, kind, text))
        if outcome.error.startswith("no such overload"):
            yield invalid(
                here,
                kind,
                (
                    f"'{outcome.error}': call arguments did not match a supported operator, function or macro "
                    f"signature for rule: {_said(rule)}"
                ),
            )
            return
        if outcome.error:
            yield invalid(here, kind, f"{outcome.error} evaluating rule: {_said(rule)}")
            return
        if outcome.value is True:
            return
        place = (path + rule.field_path).lstrip(".") or NOWHERE
        text = self._message(compiled, variables | {"oldSelf": was}, kind, place)
        yield _error(rule, place, value, text)

    def _message(self, compiled: Compiled, variables: dict[str, Any], kind: str, place: str) -> str:
        rule = compiled.rule
        own = rule.message.strip() or f"failed rule: {rule.rule.strip()}"
        if compiled.message is None:
            return own
        outcome = self._run(compiled.message, variables)
        if outcome.cost > self._budget.left:
            text = "messageExpression evaluation failed due to running out of cost budget, no further validation rules "
            raise _Ended(invalid(place, kind, f"{text}will be run"))
        if outcome.over:
            text = "no further validation rules will be run due to call cost exceeds limit for messageExpression: "
            raise _Ended(invalid(place, kind, f'{text}"{rule.message_expression}"'))
        self._budget.left -= outcome.cost
        found = outcome.value.strip() if isinstance(outcome.value, str) and not outcome.error else ""
        return own if not found or "\n" in found or len(found.encode()) > LONGEST_MESSAGE else found


def _paired(items: list[Any], old: Any, schema: JSONSchemaProps) -> Iterator[tuple[Any, Any]]:
    """Each item with what it was before, where keys tell."""
    if schema.list_type != "map" or not isinstance(old, list):
        yield from ((item, _ABSENT) for item in items)
        return
    known = {_key(item, schema): item for item in old}
    yield from ((item, known.get(_key(item, schema), _ABSENT)) for item in items)


def _key(item: Any, schema: JSONSchemaProps) -> bytes:
    return msgspec.json.encode([item.get(name) for name in schema.list_map_keys])


def _said(rule: ValidationRule) -> str:
    return rule.message.strip() if rule.message else rule.rule.strip()


def _error(rule: ValidationRule, path: str, value: Any, text: str) -> FieldError:
    """Values with parts are not printed."""
    match rule.reason:
        case "FieldValueForbidden":
            return forbidden(path, text)
        case "FieldValueRequired":
            return required(path, text)
        case "FieldValueDuplicate":
            return FieldError(path, "Duplicate value") if isinstance(value, dict | list) else duplicate(path, value)
    if isinstance(value, dict | list):
        return FieldError(path, "Invalid value", text)
    return invalid(path, value, text)
