"""A pod as a whole: what makes a new one acceptable."""

from collections.abc import Collection

from podfit.api.core.pods import Pod, PodDNSConfig, PodResourceClaim, PodSpec
from podfit.api.validation import names
from podfit.api.validation.containers import (
    validate_containers,
    validate_ephemeral_containers,
    validate_init_containers,
)
from podfit.api.validation.meta import validate_labels, validate_meta
from podfit.api.validation.resources import validate_overhead, validate_pod_resources
from podfit.api.validation.scheduling import validate_affinity, validate_spreading, validate_tolerations
from podfit.api.validation.security import validate_pod_security
from podfit.api.validation.volumes import validate_volumes
from podfit.core.features import FeatureGates
from podfit.core.fields import FieldError, duplicate, forbidden, invalid, required, unsupported

MIRROR = "kubernetes.io/config.mirror"
WHOLE = "[]"  # what the API prints as the field of an error about the pod as such
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_PREEMPTION = ("Never", "PreemptLowerPriority")


def validate_pod_create(pod: Pod, gates: FeatureGates) -> list[FieldError]:
    errors = validate_pod(pod, gates)
    if pod.spec.ephemeral_containers:
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if pod.spec.node_name and pod.spec.scheduling_gates:
        errors.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors


def validate_pod(pod: Pod, gates: FeatureGates, *, tolerated: Collection[str] = ()) -> list[FieldError]:
    """Metadata and spec by the rules of creation; `tolerated` as in `validate_init_containers`."""
    errors = validate_meta(pod.metadata, namespaced=True, name_rule=names.dns_subdomain)
    mirror = pod.metadata.annotations.get(MIRROR)
    if mirror is not None and not pod.spec.node_name:
        text = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid(f"metadata.annotations[{MIRROR}]", mirror, text))
    return errors + validate_pod_spec(pod.spec, "spec", gates, tolerated=tolerated)


def validate_pod_spec(
    spec: PodSpec, path: str, gates: FeatureGates, *, tolerated: Collection[str] = ()
) -> list[FieldError]:
    errors = validate_volumes(spec.volumes, f"{path}.volumes")
    errors += _claims(spec.resource_claims, f"{path}.resourceClaims")
    errors += validate_containers(spec, f"{path}.containers")
    errors += validate_init_containers(spec, f"{path}.initContainers", tolerated=tolerated)
    errors += validate_ephemeral_containers(spec, f"{path}.ephemeralContainers")
    if gates["PodLevelResources"]:
        claims = {claim.name for claim in spec.resource_claims}
        errors += validate_pod_resources(spec, claims, f"{path}.resources")
    errors += _choice(spec.restart_policy, _RESTART_POLICIES, f"{path}.restartPolicy")
    errors += _choice(spec.dns_policy, _DNS_POLICIES, f"{path}.dnsPolicy")
    errors += validate_labels(spec.node_selector, f"{path}.nodeSelector")
    errors += validate_pod_security(spec.security_context, spec, f"{path}.securityContext")
    for index, secret in enumerate(spec.image_pull_secrets):
        errors += [] if secret.name else [required(f"{path}.imagePullSecrets[{index}].name")]
    errors += validate_affinity(spec.affinity, f"{path}.affinity")
    errors += _dns(spec.dns_config, spec.dns_policy, f"{path}.dnsConfig")
    errors += _gates(spec, path)
    errors += validate_spreading(spec.topology_spread_constraints, f"{path}.topologySpreadConstraints")
    errors += _names(spec, path)
    errors += validate_tolerations(spec.tolerations, f"{path}.tolerations")
    return errors + _rest(spec, path)


def _choice(value: str, supported: tuple[str, ...], path: str) -> list[FieldError]:
    if not value:
        return [required(path)]
    return [] if value in supported else [unsupported(path, value, supported)]


def _claims(claims: tuple[PodResourceClaim, ...], path: str) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        where = f"{path}[{index}]"
        if not claim.name:
            errors.append(required(f"{where}.name"))
        elif claim.name in seen:
            errors.append(duplicate(f"{where}.name", claim.name))
        else:
            errors += [invalid(f"{where}.name", claim.name, text) for text in names.dns_label(claim.name)]
        seen.add(claim.name)
        sources = bool(claim.resource_claim_name) + bool(claim.resource_claim_template_name)
        if sources != 1:
            text = "must specify exactly one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(invalid(where, {"name": claim.name}, text))
    return errors


def _dns(config: PodDNSConfig | None, policy: str, path: str) -> list[FieldError]:
    if policy == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.nameservers:
            return [
                required(f"{path}.nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None")
            ]
    errors = []
    if config is not None and len(config.nameservers) > 3:
        shown = list(config.nameservers)
        errors.append(invalid(f"{path}.nameservers", shown, "must not have more than 3 nameservers"))
    for index, option in enumerate(config.options if config else ()):
        errors += [] if option.name else [required(f"{path}.options[{index}]")]
    return errors


def _gates(spec: PodSpec, path: str) -> list[FieldError]:
    errors = []
    for index, readiness in enumerate(spec.readiness_gates):
        where = f"{path}.readinessGates[{index}].conditionType"
        errors += [invalid(where, readiness.condition_type, text) for text in names.qualified(readiness.condition_type)]
    seen: set[str] = set()
    for index, gate in enumerate(spec.scheduling_gates):
        where = f"{path}.schedulingGates[{index}]"
        errors += [invalid(where, gate.name, text) for text in names.qualified(gate.name)]
        if gate.name in seen:
            errors.append(duplicate(where, gate.name))
        seen.add(gate.name)
    return errors


def _names(spec: PodSpec, path: str) -> list[FieldError]:
    errors = []
    for value, rule, field in (
        (spec.service_account_name, names.dns_subdomain, "serviceAccountName"),
        (spec.node_name, names.dns_subdomain, "nodeName"),
    ):
        errors += [invalid(f"{path}.{field}", value, text) for text in (rule(value) if value else ())]
    deadline = spec.active_deadline_seconds
    if deadline is not None and not 1 <= deadline <= 2**31 - 1:
        text = "must be between 1 and 2147483647, inclusive"
        errors.append(invalid(f"{path}.activeDeadlineSeconds", deadline, text))
    for value, field in ((spec.hostname, "hostname"), (spec.subdomain, "subdomain")):
        errors += [invalid(f"{path}.{field}", value, text) for text in (names.dns_label(value) if value else ())]
    return errors


def _rest(spec: PodSpec, path: str) -> list[FieldError]:
    errors = []
    for index, alias in enumerate(spec.host_aliases):
        for hostname in alias.hostnames:
            where = f"{path}.hostAliases[{index}].hostnames"
            errors += [invalid(where, hostname, text) for text in names.dns_subdomain(hostname)]
    for value, field in (
        (spec.priority_class_name, "priorityClassName"),
        (spec.runtime_class_name, "runtimeClassName"),
    ):
        errors += [invalid(f"{path}.{field}", value, text) for text in (names.dns_subdomain(value) if value else ())]
    if spec.preemption_policy and spec.preemption_policy not in _PREEMPTION:
        errors.append(unsupported(f"{path}.preemptionPolicy", spec.preemption_policy, _PREEMPTION))
    errors += validate_overhead(spec.overhead, f"{path}.overhead")
    if spec.os is not None:
        errors += [required(f"{path}.os.name")] if not spec.os.name else []
        if spec.os.name and spec.os.name not in ("linux", "windows"):
            errors.append(unsupported(f"{path}.os", spec.os.name, ("linux", "windows")))
    return errors
