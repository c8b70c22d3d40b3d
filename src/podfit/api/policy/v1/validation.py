"""Disruption budgets."""

import re

from podfit.api.core.v1.pods.validation.templates import at_most_all, int_or_percent
from podfit.api.meta.base import Object
from podfit.api.meta.v1.types import Condition
from podfit.api.meta.validation import names
from podfit.api.meta.validation.metadata import validate_selector
from podfit.api.meta.validation.rules import Rules
from podfit.api.meta.validation.statuses import counts
from podfit.api.policy.v1.types import PodDisruptionBudget, PodDisruptionBudgetSpec
from podfit.core.fields import FieldError, duplicate, invalid, required, unsupported

_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_STATUSES = ("False", "True", "Unknown")
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"


def validate_budget(budget: PodDisruptionBudget) -> list[FieldError]:
    spec = budget.spec
    errors = []
    if spec.min_available is not None and spec.max_unavailable is not None:
        text = "minAvailable and maxUnavailable cannot be both set"
        errors.append(invalid("spec", _shown(spec), text))
    for name, bound in (("minAvailable", spec.min_available), ("maxUnavailable", spec.max_unavailable)):
        errors += int_or_percent(bound, f"spec.{name}") + at_most_all(bound, f"spec.{name}")
    errors += validate_selector(spec.selector, "spec.selector")
    policy = spec.unhealthy_pod_eviction_policy
    if policy is not None and policy not in _POLICIES:
        errors.append(unsupported("spec.unhealthyPodEvictionPolicy", policy, _POLICIES))
    return errors


def _shown(spec: PodDisruptionBudgetSpec) -> dict[str, object]:
    """As upstream prints it: every field, by its inner name."""
    return {
        "MinAvailable": spec.min_available,
        "Selector": spec.selector,
        "MaxUnavailable": spec.max_unavailable,
        "UnhealthyPodEvictionPolicy": spec.unhealthy_pod_eviction_policy,
    }


def validate_budget_status(new: PodDisruptionBudget, _old: PodDisruptionBudget) -> list[FieldError]:
    return _conditions(new.status.conditions, "status.conditions") + counts(
        new.status, "disruptions_allowed", "current_healthy", "desired_healthy", "expected_pods"
    )


def _conditions(conditions: tuple[Condition, ...], path: str) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        where = f"{path}[{index}]"
        if condition.type in seen:
            errors.append(duplicate(f"{where}.type", condition.type))
        elif not condition.type:
            errors.append(required(f"{where}.type"))
        else:
            errors += [invalid(f"{where}.type", condition.type, text) for text in names.qualified(condition.type)]
        seen.add(condition.type)
        if condition.status not in _STATUSES:
            errors.append(unsupported(f"{where}.status", condition.status, _STATUSES))
        if condition.observed_generation < 0:
            text = "must be greater than or equal to zero"
            errors.append(invalid(f"{where}.observedGeneration", condition.observed_generation, text))
        if condition.last_transition_time is None:
            errors.append(required(f"{where}.lastTransitionTime", "must be set"))
        if not condition.reason:
            errors.append(required(f"{where}.reason", "must be set"))
        elif not re.fullmatch(_REASON, condition.reason):
            text = f"a condition reason must start with alphabetic character (regex: {_REASON})"
            errors.append(invalid(f"{where}.reason", condition.reason, text))
    return errors


RULES: dict[type[Object], Rules] = {
    PodDisruptionBudget: Rules(names.path_segment, validate_budget, status=validate_budget_status, metadata="any")
}
