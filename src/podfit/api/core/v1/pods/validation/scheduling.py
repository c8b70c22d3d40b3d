"""Validation of affinity, tolerations and topology spread constraints."""

from collections import Counter

from podfit.api.core.v1.pods.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    Toleration,
    TopologySpreadConstraint,
)
from podfit.api.meta.v1.types import LabelSelector
from podfit.api.meta.validation import names
from podfit.api.meta.validation.metadata import operator_errors, validate_selector
from podfit.api.meta.verdict_cache import passed
from podfit.core.fields import FieldError, duplicate, forbidden, invalid, required, unsupported

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_SPREADING = ("DoNotSchedule", "ScheduleAnyway")
_NODE_POLICIES = ("Honor", "Ignore")
_OPERATORS = ("Equal", "Exists")
_POSITIVE = "must be greater than zero"


def validate_affinity(affinity: Affinity | None, path: str) -> list[FieldError]:
    if affinity is None:
        return []
    errors = []
    if affinity.node_affinity is not None:
        errors += _node_affinity(affinity.node_affinity, f"{path}.nodeAffinity")
    if affinity.pod_affinity is not None:
        errors += _pod_affinity(affinity.pod_affinity, f"{path}.podAffinity")
    if affinity.pod_anti_affinity is not None:
        errors += _pod_affinity(affinity.pod_anti_affinity, f"{path}.podAntiAffinity")
    return errors


def _node_affinity(affinity: NodeAffinity, path: str) -> list[FieldError]:
    errors = []
    selector = affinity.required_during_scheduling_ignored_during_execution
    if selector is not None:
        errors += validate_node_selector(selector, f"{path}.{_REQUIRED}")
    for index, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        where = f"{path}.{_PREFERRED}[{index}]"
        errors += _weight(preferred.weight, where)
        errors += _node_term(preferred.preference, f"{where}.preference", values=False)
    return errors


def validate_node_selector(selector: NodeSelector, path: str) -> list[FieldError]:
    where = f"{path}.nodeSelectorTerms"
    errors = [] if selector.node_selector_terms else [required(where, "must have at least one node selector term")]
    for index, term in enumerate(selector.node_selector_terms):
        errors += _node_term(term, f"{where}[{index}]", values=True)
    return errors


def _weight(weight: int, path: str) -> list[FieldError]:
    return [] if 1 <= weight <= 100 else [invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _node_term(term: NodeSelectorTerm, path: str, *, values: bool) -> list[FieldError]:
    """`values`: whether they have to be values of labels. A mere preference for what cannot be does no harm."""
    errors = []
    for index, requirement in enumerate(term.match_expressions):
        where = f"{path}.matchExpressions[{index}]"
        errors += _node_requirement(requirement, where)
        for position, value in enumerate(requirement.values if values else ()):
            problems = names.label_value(value)
            errors += [invalid(f"{where}.values[{position}]", value, text) for text in problems]
    for index, requirement in enumerate(term.match_fields):
        errors += _node_field(requirement, f"{path}.matchFields[{index}]")
    return errors


def _node_requirement(requirement: NodeSelectorRequirement, path: str) -> list[FieldError]:
    operator, values = requirement.operator, requirement.values
    if operator in ("Gt", "Lt"):
        text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        errors = [] if len(values) == 1 else [required(f"{path}.values", text)]
    else:
        errors = operator_errors(operator, values, path)
    return errors + [invalid(f"{path}.key", requirement.key, text) for text in names.qualified(requirement.key)]


def _node_field(requirement: NodeSelectorRequirement, path: str) -> list[FieldError]:
    errors = []
    if requirement.operator not in ("In", "NotIn"):
        errors.append(invalid(f"{path}.operator", requirement.operator, "not a valid selector operator"))
    elif len(requirement.values) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(f"{path}.values", text))
    if requirement.key != "metadata.name":
        return [*errors, invalid(f"{path}.key", requirement.key, "not a valid field selector key")]
    for index, value in enumerate(requirement.values):
        errors += [invalid(f"{path}.values[{index}]", value, text) for text in names.dns_subdomain(value)]
    return errors


def _pod_affinity(affinity: PodAffinity | PodAntiAffinity, path: str) -> list[FieldError]:
    errors = []
    for index, term in enumerate(affinity.required_during_scheduling_ignored_during_execution):
        errors += _pod_term(term, f"{path}.{_REQUIRED}[{index}]")
    for index, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        where = f"{path}.{_PREFERRED}[{index}]"
        errors += _weight(preferred.weight, where)
        errors += _pod_term(preferred.pod_affinity_term, f"{where}.podAffinityTerm")
    return errors


def _pod_term(term: PodAffinityTerm, path: str) -> list[FieldError]:
    errors = validate_selector(term.label_selector, f"{path}.labelSelector")
    errors += validate_selector(term.namespace_selector, f"{path}.namespaceSelector")
    for namespace in term.namespaces:
        errors += [invalid(f"{path}.namespace", namespace, text) for text in names.dns_label(namespace)]
    errors += _label_keys(term.match_label_keys, term.mismatch_label_keys, term.label_selector, path)
    return errors + _topology_key(term.topology_key, path)


def _label_keys(
    match: tuple[str, ...], mismatch: tuple[str, ...], selector: LabelSelector | None, path: str
) -> list[FieldError]:
    """Keys whose values are taken from the pod: with a selector, and each said once."""
    errors = []
    for keys, name in ((match, "matchLabelKeys"), (mismatch, "mismatchLabelKeys")):
        if keys and selector is None:
            errors.append(forbidden(f"{path}.{name}", "must not be specified when labelSelector is not set"))
            continue
        for index, key in enumerate(keys):
            errors += [invalid(f"{path}.{name}[{index}]", key, text) for text in names.qualified(key)]
    places = {key: index for index, key in enumerate(match)}
    said = set(selector.match_labels) if selector else set()
    for requirement in selector.match_expressions if selector else ():
        if requirement.key in places and requirement.key in said:
            text = "exists in both matchLabelKeys and labelSelector"
            errors.append(invalid(f"{path}[{places[requirement.key]}]", requirement.key, text))
        said.add(requirement.key)
    others = set(mismatch)
    text = "exists in both matchLabelKeys and mismatchLabelKeys"
    return errors + [
        invalid(f"{path}.matchLabelKeys[{index}]", key, text) for index, key in enumerate(match) if key in others
    ]


def _topology_key(key: str, path: str) -> list[FieldError]:
    errors = [] if key else [required(f"{path}.topologyKey", "can not be empty")]
    return errors + [invalid(f"{path}.topologyKey", key, text) for text in names.qualified(key)]


@passed
def validate_tolerations(tolerations: tuple[Toleration, ...], path: str) -> list[FieldError]:
    errors = []
    for index, toleration in enumerate(tolerations):
        where = f"{path}[{index}]"
        if toleration.key:
            errors += [invalid(f"{where}.key", toleration.key, text) for text in names.qualified(toleration.key)]
        elif toleration.operator != "Exists":
            text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(invalid(f"{where}.operator", toleration.operator, text))
        if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
            text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(invalid(f"{where}.effect", toleration.effect, text))
        errors += _toleration_value(toleration, where)
        if toleration.effect and toleration.effect not in EFFECTS:
            errors.append(unsupported(f"{where}.effect", toleration.effect, EFFECTS))
    return errors


def _toleration_value(toleration: Toleration, path: str) -> list[FieldError]:
    """Upstream says of the value that it goes not with the operator. Comparing numbers is an alpha feature."""
    where, value = f"{path}.operator", toleration.value
    match toleration.operator:
        case "" | "Equal":
            problems = names.label_value(value)
            return [invalid(where, value, ";".join(problems))] if problems else []
        case "Exists":
            return [invalid(where, value, "value must be empty when `operator` is 'Exists'")] if value else []
        case "Lt" | "Gt":
            return [unsupported(where, toleration.operator, (*_OPERATORS, "Lt", "Gt"))]
        case _:
            return [unsupported(where, toleration.operator, _OPERATORS)]


def validate_spreading(constraints: tuple[TopologySpreadConstraint, ...], path: str) -> list[FieldError]:
    if not constraints:
        return []
    errors = []
    later = Counter((constraint.topology_key, constraint.when_unsatisfiable) for constraint in constraints)
    for index, constraint in enumerate(constraints):
        where = f"{path}[{index}]"
        if constraint.max_skew <= 0:
            errors.append(invalid(f"{where}.maxSkew", constraint.max_skew, _POSITIVE))
        if not constraint.topology_key:
            errors.append(required(f"{where}.topologyKey", "can not be empty"))
        if constraint.when_unsatisfiable not in _SPREADING:
            errors.append(unsupported(f"{where}.whenUnsatisfiable", constraint.when_unsatisfiable, _SPREADING))
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        later[pair] -= 1
        if later[pair]:
            shown = f"{{{pair[0]}, {pair[1]}}}"
            errors.append(duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", shown))
        errors += _min_domains(constraint, f"{where}.minDomains")
        for policy, name in (
            (constraint.node_affinity_policy, "nodeAffinityPolicy"),
            (constraint.node_taints_policy, "nodeTaintsPolicy"),
        ):
            if policy and policy not in _NODE_POLICIES:
                errors.append(unsupported(f"{where}.{name}", policy, _NODE_POLICIES))
        errors += _label_keys(constraint.match_label_keys, (), constraint.label_selector, where)
        errors += validate_selector(constraint.label_selector, f"{where}.labelSelector")
    return errors


def _min_domains(constraint: TopologySpreadConstraint, path: str) -> list[FieldError]:
    number, action = constraint.min_domains, constraint.when_unsatisfiable
    if number is None:
        return []
    errors = [] if number > 0 else [invalid(path, number, _POSITIVE)]
    if action != "DoNotSchedule":
        text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        errors.append(invalid(path, number, text))
    return errors
