"""Roles and their bindings."""

from podfit.api.meta.v1.types import LabelSelector
from podfit.api.meta.validation import names
from podfit.api.meta.validation.metadata import validate_selector
from podfit.api.rbac.v1.types import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject
from podfit.core.fields import FieldError, invalid, required, unsupported

_GROUP = "rbac.authorization.k8s.io"


def validate_role(role: Role) -> list[FieldError]:
    return _rules(role.rules or (), namespaced=True)


def validate_cluster_role(role: ClusterRole) -> list[FieldError]:
    errors = _rules(role.rules or (), namespaced=False)
    if role.aggregation_rule is not None:
        path = "aggregationRule.clusterRoleSelectors"
        selectors: tuple[LabelSelector, ...] = role.aggregation_rule.cluster_role_selectors
        if not selectors:
            errors.append(required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
        for index, selector in enumerate(selectors):
            errors += validate_selector(selector, f"{path}[{index}]")
    return errors


def _rules(rules: tuple[PolicyRule, ...], *, namespaced: bool) -> list[FieldError]:
    errors = []
    for index, rule in enumerate(rules):
        errors += _rule(rule, f"rules[{index}]", namespaced=namespaced)
    return errors


def _rule(rule: PolicyRule, path: str, *, namespaced: bool) -> list[FieldError]:
    errors = [] if rule.verbs else [required(f"{path}.verbs", "verbs must contain at least one value")]
    if rule.non_resource_urls:
        urls, where = list(rule.non_resource_urls), f"{path}.nonResourceURLs"
        if namespaced:
            errors.append(invalid(where, urls, "namespaced rules cannot apply to non-resource URLs"))
        if rule.api_groups or rule.resources or rule.resource_names:
            errors.append(invalid(where, urls, "rules cannot apply to both regular resources and non-resource URLs"))
        return errors
    if not rule.api_groups:
        errors.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.resources:
        errors.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return errors


def validate_role_binding(binding: RoleBinding) -> list[FieldError]:
    return _binding(binding.role_ref, binding.subjects, ("Role", "ClusterRole"), namespaced=True)


def validate_cluster_role_binding(binding: ClusterRoleBinding) -> list[FieldError]:
    return _binding(binding.role_ref, binding.subjects, ("ClusterRole",), namespaced=False)


def _binding(
    ref: RoleRef, subjects: tuple[Subject, ...], kinds: tuple[str, ...], *, namespaced: bool
) -> list[FieldError]:
    errors = []
    if ref.api_group != _GROUP:
        errors.append(unsupported("roleRef.apiGroup", ref.api_group, (_GROUP,)))
    if ref.kind not in kinds:
        errors.append(unsupported("roleRef.kind", ref.kind, kinds))
    if not ref.name:
        errors.append(required("roleRef.name"))
    else:
        errors += [invalid("roleRef.name", ref.name, text) for text in names.path_segment(ref.name)]
    for index, subject in enumerate(subjects):
        errors += _subject(subject, f"subjects[{index}]", namespaced=namespaced)
    return errors


def _subject(subject: Subject, path: str, *, namespaced: bool) -> list[FieldError]:
    errors = [] if subject.name else [required(f"{path}.name")]
    if subject.kind == "ServiceAccount":
        if subject.name:
            errors += [invalid(f"{path}.name", subject.name, text) for text in names.dns_subdomain(subject.name)]
        if subject.api_group:
            errors.append(unsupported(f"{path}.apiGroup", subject.api_group, ("",)))
        if not namespaced and not subject.namespace:
            errors.append(required(f"{path}.namespace"))
    elif subject.kind in ("User", "Group"):
        if not subject.name:
            errors.append(invalid(f"{path}.name", "", f"{subject.kind.lower()} name cannot be empty"))
        if subject.api_group != _GROUP:
            errors.append(unsupported(f"{path}.apiGroup", subject.api_group, (_GROUP,)))
    else:
        errors.append(unsupported(f"{path}.kind", subject.kind, ("ServiceAccount", "User", "Group")))
    return errors


def validate_binding_update(
    new: RoleBinding | ClusterRoleBinding, old: RoleBinding | ClusterRoleBinding
) -> list[FieldError]:
    """A binding keeps to one role: changing it would hand out rights that nobody was asked about."""
    errors = validate_role_binding(new) if isinstance(new, RoleBinding) else validate_cluster_role_binding(new)
    if new.role_ref == old.role_ref:
        return errors
    ref = new.role_ref
    shown = {"APIGroup": ref.api_group, "Kind": ref.kind, "Name": ref.name}
    return [*errors, invalid("roleRef", shown, "cannot change roleRef")]
