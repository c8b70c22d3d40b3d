"""Where a pod may run: affinity, tolerations, spreading."""

from podfit.api.core.affinity import (
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
from podfit.api.validation import names
from podfit.api.validation.meta import validate_selector
from podfit.core.fields import FieldError, duplicate, forbidden, invalid, required, unsupported

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_SPREADING = ("DoNotSchedule", "ScheduleAnyway")


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
        errors += _node_term(preferred.preference, f"{where}.preference")
    return errors


def validate_node_selector(selector: NodeSelector, path: str) -> list[FieldError]:
    where = f"{path}.nodeSelectorTerms"
    errors = [] if selector.node_selector_terms else [required(where, "must have at least one node selector term")]
    for index, term in enumerate(selector.node_selector_terms):
        errors += _node_term(term, f"{where}[{index}]")
    return errors


def _weight(weight: int, path: str) -> list[FieldError]:
    return [] if 1 <= weight <= 100 else [invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _node_term(term: NodeSelectorTerm, path: str) -> list[FieldError]:
    errors = []
    for index, requirement in enumerate(term.match_expressions):
        errors += _node_requirement(requirement, f"{path}.matchExpressions[{index}]")
    for index, requirement in enumerate(term.match_fields):
        errors += _node_field(requirement, f"{path}.matchFields[{index}]")
    return errors


def _node_requirement(requirement: NodeSelectorRequirement, path: str) -> list[FieldError]:
    errors = []
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                errors.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        case "Exists" | "DoesNotExist":
            if requirement.values:
                text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(forbidden(f"{path}.values", text))
        case "Gt" | "Lt":
            if len(requirement.values) != 1:
                text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                errors.append(required(f"{path}.values", text))
        case other:
            errors.append(invalid(f"{path}.operator", other, "not a valid selector operator"))
    return errors + [invalid(f"{path}.key", requirement.key, text) for text in names.qualified(requirement.key)]


def _node_field(requirement: NodeSelectorRequirement, path: str) -> list[FieldError]:
    errors = []
    if requirement.operator not in ("In", "NotIn"):
        errors.append(invalid(f"{path}.operator", requirement.operator, "not a valid selector operator"))
    elif len(requirement.values) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(f"{path}.values", text))
    if requirement.key != "metadata.name":
        errors.append(invalid(f"{path}.key", requirement.key, "not a valid field selector key"))
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
    return errors + _topology_key(term.topology_key, path)


def _topology_key(key: str, path: str) -> list[FieldError]:
    errors = [] if key else [required(f"{path}.topologyKey", "can not be empty")]
    return errors + [invalid(f"{path}.topologyKey", key, text) for text in names.qualified(key)]


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
        if toleration.operator in ("", "Equal"):
            errors += [invalid(f"{where}.operator", toleration.value, t) for t in names.label_value(toleration.value)]
        elif toleration.operator == "Exists":
            if toleration.value:
                text = "value must be empty when `operator` is 'Exists'"
                errors.append(invalid(f"{where}.operator", toleration.value, text))
        else:
            errors.append(unsupported(f"{where}.operator", toleration.operator, ("Equal", "Exists")))
        if toleration.effect and toleration.effect not in EFFECTS:
            errors.append(unsupported(f"{where}.effect", toleration.effect, EFFECTS))
    return errors


def validate_spreading(constraints: tuple[TopologySpreadConstraint, ...], path: str) -> list[FieldError]:
    errors = []
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        where = f"{path}[{index}]"
        if constraint.max_skew <= 0:
            errors.append(invalid(f"{where}.maxSkew", constraint.max_skew, "must be greater than zero"))
        if not constraint.topology_key:
            errors.append(required(f"{where}.topologyKey", "can not be empty"))
        if constraint.match_label_keys and constraint.label_selector is None:
            text = "must not be specified when labelSelector is not set"
            errors.append(forbidden(f"{where}.matchLabelKeys", text))
        if constraint.when_unsatisfiable not in _SPREADING:
            errors.append(unsupported(f"{where}.whenUnsatisfiable", constraint.when_unsatisfiable, _SPREADING))
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in seen:
            shown = f"{{{pair[0]}, {pair[1]}}}"
            errors.append(duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", shown))
        seen.add(pair)
        if constraint.min_domains is not None and constraint.min_domains <= 0:
            errors.append(invalid(f"{where}.minDomains", constraint.min_domains, "must be greater than zero"))
        errors += validate_selector(constraint.label_selector, f"{where}.labelSelector")
    return errors
