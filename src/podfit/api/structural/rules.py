"""CEL rules of a schema (`x-kubernetes-validations`)."""

from collections.abc import Iterator
from typing import Any

from podfit.api.apiextensions import JSONSchemaProps
from podfit.core.fields import FieldError


def has_rules(schema: JSONSchemaProps) -> bool:
    """Whether a rule stands anywhere in the schema."""
    inner = [*schema.properties.values()]
    if schema.items is not None:
        inner.append(schema.items)
    if isinstance(schema.additional_properties, JSONSchemaProps):
        inner.append(schema.additional_properties)
    return bool(schema.validations) or any(has_rules(each) for each in inner)


def rule_errors(document: Any, before: Any, schema: JSONSchemaProps) -> Iterator[FieldError]:
    yield from ()
