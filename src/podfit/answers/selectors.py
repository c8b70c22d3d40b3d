"""Label selectors of objects, as queries."""

from typing import Any

from podfit.api.meta.selector_text import parse_labels
from podfit.core.errors import not_found


def query_of(selector: Any) -> str:
    """A label selector, or the plain map of a replication controller, as a query."""
    if not isinstance(selector, dict) or not selector:
        raise not_found("pods", "")
    labels = selector.get("matchLabels", {}) if selector.keys() & {"matchLabels", "matchExpressions"} else selector
    parts = [f"{name}={value}" for name, value in labels.items()]
    expressions = selector.get("matchExpressions", ()) if labels is not selector else ()
    parts += [
        _expression(expression["key"], expression["operator"], expression.get("values", []))
        for expression in expressions
    ]
    query = ",".join(parts)
    parse_labels(query)
    return query


def _expression(key: str, operator: str, values: list[str]) -> str:
    match operator:
        case "In" | "NotIn":
            return f"{key} {operator.lower()} ({','.join(values)})"
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return key
