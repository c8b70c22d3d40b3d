"""Field errors: their words, causes and the 422 that they add up to."""

import pytest

from podfit.core import fields
from podfit.core.quantity import Quantity


@pytest.mark.parametrize(
    ("error", "text", "reason"),
    [
        (fields.required("a.b"), "a.b: Required value", "FieldValueRequired"),
        (fields.required("a.b", "why"), "a.b: Required value: why", "FieldValueRequired"),
        (fields.invalid("a", "x", "why"), 'a: Invalid value: "x": why', "FieldValueInvalid"),
        (fields.invalid("a", Quantity.parse("1.5"), "why"), 'a: Invalid value: "1500m": why', "FieldValueInvalid"),
        (fields.invalid("a", -1, "why"), "a: Invalid value: -1: why", "FieldValueInvalid"),
        (fields.invalid("a", True, "why"), "a: Invalid value: true: why", "FieldValueInvalid"),
        (fields.invalid("a", ["x"], "why"), 'a: Invalid value: ["x"]: why', "FieldValueInvalid"),
        (
            fields.unsupported("a", "x", ("b", "a")),
            'a: Unsupported value: "x": supported values: "b", "a"',
            "FieldValueNotSupported",
        ),
        (fields.duplicate("a", "x"), 'a: Duplicate value: "x"', "FieldValueDuplicate"),
        (fields.missing("a", "x"), 'a: Not found: "x"', "FieldValueNotFound"),
        (fields.forbidden("", "why"), ": Forbidden: why", "FieldValueForbidden"),
        (fields.too_long("a", 5), "a: Too long: may not be more than 5 bytes", "FieldValueTooLong"),
        (fields.too_many("a", 9, 5), "a: Too many: 9: must have at most 5 items", "FieldValueTooMany"),
    ],
)
def test_words(error: fields.FieldError, text: str, reason: str) -> None:
    assert str(error) == text
    cause = error.cause()
    assert (cause["reason"], cause["field"]) == (reason, error.field)
    assert f"{cause['field']}: {cause['message']}" == text


@pytest.mark.row("R-048", "R-049")
def test_the_text_names_each_error_once_and_the_causes_all_of_them() -> None:
    """R-048, R-049; the causes as recorded from a real server."""
    one, other = fields.required("a"), fields.forbidden("b", "no")
    status = fields.refusal("Pod", "web", [one, other, one]).status()
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["message"] == 'Pod "web" is invalid: [a: Required value, b: Forbidden: no]'
    assert [cause["field"] for cause in status["details"]["causes"]] == ["a", "b", "a"]


def test_the_group_belongs_to_the_kind() -> None:
    error = fields.refusal("Role", "r", [fields.required("a")], group="rbac.authorization.k8s.io")
    assert error.message == 'Role.rbac.authorization.k8s.io "r" is invalid: a: Required value'
    assert error.details["group"] == "rbac.authorization.k8s.io"
