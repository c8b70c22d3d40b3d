"""Label selectors of objects (`matchLabels`, `matchExpressions`): as requirements to match with, and as text."""

from collections.abc import Mapping

from podfit.api.meta.v1.types import LabelSelector, LabelSelectorRequirement
from podfit.api.meta.validation.names import label_value, qualified
from podfit.core.selectors import Requirement

_WORDS = {"In": "{} in ({})", "NotIn": "{} notin ({})", "Exists": "{}", "DoesNotExist": "!{}"}
_LISTS = ("In", "NotIn")


def requirements(selector: LabelSelector | None) -> tuple[Requirement, ...] | None:
    """None for a selector that selects nothing; an empty one selects everything."""
    if selector is None:
        return None
    exact = tuple(Requirement(key, "In", (value,)) for key, value in selector.match_labels.items())
    return exact + tuple(
        Requirement(expression.key, expression.operator, expression.values) for expression in selector.match_expressions
    )


def holds(wanted: tuple[Requirement, ...] | None, labels: Mapping[str, str]) -> bool:
    return wanted is not None and all(requirement.matches(labels) for requirement in wanted)


def is_empty(selector: LabelSelector) -> bool:
    return not (selector.match_labels or selector.match_expressions)


def is_usable(selector: LabelSelector | None) -> bool:
    """Whether it can be matched at all: an operator that does not exist selects neither something nor nothing."""
    if selector is None:
        return True
    exact = all(not qualified(key) and not label_value(value) for key, value in selector.match_labels.items())
    return exact and all(map(_is_usable, selector.match_expressions))


def _is_usable(requirement: LabelSelectorRequirement) -> bool:
    fits = requirement.operator in _WORDS and bool(requirement.values) is (requirement.operator in _LISTS)
    return fits and not qualified(requirement.key) and not any(map(label_value, requirement.values))


def text(selector: LabelSelector | None) -> str:
    """`app=web,tier in (a,b)`, by key; nothing for a selector without terms, or for none."""
    if selector is None:
        return ""
    exact = [(key, f"{key}={value}") for key, value in selector.match_labels.items()]
    others = [
        (
            expression.key,
            _WORDS.get(expression.operator, "{}").format(expression.key, ",".join(sorted(expression.values))),
        )
        for expression in selector.match_expressions
    ]
    return ",".join(term for _, term in sorted([*exact, *others], key=lambda pair: pair[0]))


def go_text(selector: LabelSelector | None) -> str:
    """As Go prints one with `%v`, which some of upstream's events do."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted(selector.match_labels.items()))
    expressions = "".join(map(_go_requirement, selector.match_expressions))
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def _go_requirement(expression: LabelSelectorRequirement) -> str:
    values = " ".join(expression.values)
    return f"LabelSelectorRequirement{{Key:{expression.key},Operator:{expression.operator},Values:[{values}],}},"
