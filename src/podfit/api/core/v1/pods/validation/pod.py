"""A pod as a whole: what makes a new one acceptable."""

from collections.abc import Collection

from podfit.api.core.v1.pods.aggregate import regular_first
from podfit.api.core.v1.pods.sizes import differ_by_size
from podfit.api.core.v1.pods.types import MIRROR, Pod, PodDNSConfig, PodResourceClaim, PodSpec
from podfit.api.core.v1.pods.validation.alike import by_text, generic, outline, texts
from podfit.api.core.v1.pods.validation.annotations import profiles_match, validate_pod_annotations
from podfit.api.core.v1.pods.validation.containers import (
    choice,
    surroundings,
    validate_containers,
    validate_ephemeral_containers,
    validate_host_network_ports,
    validate_images,
    validate_init_containers,
)
from podfit.api.core.v1.pods.validation.mounts import validate_devices, validate_mounts
from podfit.api.core.v1.pods.validation.resources import (
    validate_container_resources,
    validate_overhead,
    validate_pod_resources,
)
from podfit.api.core.v1.pods.validation.scheduling import validate_affinity, validate_spreading, validate_tolerations
from podfit.api.core.v1.pods.validation.security import validate_pod_security
from podfit.api.core.v1.pods.validation.volumes import validate_volumes
from podfit.api.core.v1.pods.validation.windows import containers_of, validate_host_processes, validate_os_fields
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.meta.validation import names
from podfit.api.meta.validation.addresses import address
from podfit.api.meta.validation.metadata import validate_labels, validate_meta
from podfit.api.meta.verdict_cache import PassedObjects, PassedValues
from podfit.core.features import FeatureGates
from podfit.core.fields import FieldError, duplicate, forbidden, invalid, missing, required, too_long, unsupported

_NAMESERVERS, _SEARCHES, _LETTERS = 3, 32, 2048


def validate_dns(config: PodDNSConfig | None, policy: str, path: str) -> list[FieldError]:
    if policy == "None" and config is None:
        return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
    if config is None:
        return []
    where = f"{path}.nameservers"
    if policy == "None" and not config.nameservers:
        return [required(where, "must provide at least one DNS nameserver when `dnsPolicy` is None")]
    errors = []
    if len(config.nameservers) > _NAMESERVERS:
        text = f"must not have more than {_NAMESERVERS} nameservers"
        errors.append(invalid(where, list(config.nameservers), text))
    for index, nameserver in enumerate(config.nameservers):
        errors += address(nameserver, f"{where}[{index}]")
    errors += _searches(config.searches, f"{path}.searches")
    for index, option in enumerate(config.options):
        errors += [] if option.name else [required(f"{path}.options[{index}]", "must not be empty")]
    return errors


def _searches(searches: tuple[str, ...], path: str) -> list[FieldError]:
    errors = []
    if len(searches) > _SEARCHES:
        errors.append(invalid(path, list(searches), f"must not have more than {_SEARCHES} search paths"))
    if len(" ".join(searches).encode()) > _LETTERS:
        text = f"must not have more than {_LETTERS} characters (including spaces) in the search list"
        errors.append(invalid(path, list(searches), text))
    for index, search in enumerate(searches):
        domain = search.removesuffix(".")
        problems = [] if search == "." else names.dns_subdomain_with_underscores(domain)
        errors += [invalid(f"{path}[{index}]", domain, text) for text in problems]
    return errors


WHOLE = "[]"  # what the API prints as the field of an error about the pod as such
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION = ("PreemptLowerPriority", "Never")
_LONGEST_HOSTNAME = 64


def validate_pod_create(pod: Pod, gates: FeatureGates) -> list[FieldError]:
    errors = validate_pod(pod, gates)
    if pod.spec.ephemeral_containers:
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if pod.spec.node_name and pod.spec.scheduling_gates:
        errors.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors + profiles_match(pod.metadata.annotations, pod.spec, "spec")


def validate_pod(
    pod: Pod, gates: FeatureGates, *, tolerated: Collection[str] = (), before: PodSpec | None = None
) -> list[FieldError]:
    """Metadata and spec by the rules of creation; `tolerated` as in `validate_init_containers`, `before` as in
    `validate_pod_spec`."""
    errors = validate_meta(pod.metadata, namespaced=True, name_rule=names.dns_subdomain)
    errors += validate_pod_annotations(pod.metadata.annotations, pod.spec, "metadata.annotations")
    errors += validate_pod_spec(pod.spec, "spec", gates, tolerated=tolerated, meta=pod.metadata, before=before)
    if not pod.spec.service_account_name:
        errors += _tokens(pod.spec)
    errors += validate_images(pod.spec.containers, "spec.containers")
    return errors + validate_images(pod.spec.init_containers, "spec.initContainers")


def _tokens(spec: PodSpec) -> list[FieldError]:
    """A pod of no account has no tokens."""
    text = "must not be specified when serviceAccountName is not set"
    return [
        forbidden(f"spec.volumes[{index}].projected.sources[{position}].serviceAccountToken", text)
        for index, volume in enumerate(spec.volumes)
        for position, source in enumerate(volume.projected.sources if volume.projected else ())
        if source.service_account_token is not None
    ]


def validate_pod_spec(
    spec: PodSpec,
    path: str,
    gates: FeatureGates,
    *,
    tolerated: Collection[str] = (),
    meta: ObjectMeta | None = None,
    before: PodSpec | None = None,
) -> list[FieldError]:
    """`meta` is the pod's; a template's spec has none. Of a spec that differs from one that passed by generated names
    and the node alone, only these are judged, of one that differs by amounts, volumes and names only those. `before` is
    the spec that a resize changes: where it passed, only sizes are judged."""
    if before is None:
        return _judged(spec, path, gates, tolerated=tolerated, meta=meta, repeated=None if tolerated else generic(spec))
    key = (path, meta and meta.name, *sorted(tolerated), *gates.overrides.items())
    if _resized.holds(key, before) and differ_by_size(spec, before) and not _sizes(spec, path, gates):
        _resized.follow(key, before, spec)
        return []
    errors = _judged(spec, path, gates, tolerated=tolerated, meta=meta, repeated=None)
    if not errors and not spec.ephemeral_containers and not spec.resource_claims:
        _resized.keep(key, spec)
    return errors


def _judged(
    spec: PodSpec,
    path: str,
    gates: FeatureGates,
    *,
    tolerated: Collection[str],
    meta: ObjectMeta | None,
    repeated: PodSpec | None,
) -> list[FieldError]:
    repeated_key = (path, meta is None, *gates.overrides.items(), *texts(spec))
    if repeated is not None and _repeated.holds(repeated_key, repeated) and not (errors := _names(spec, path)):
        return errors
    sized = outline(spec)
    key = (path, meta is None, *sorted(tolerated), *gates.overrides.items(), *texts(spec))
    if _outlines.holds(key, sized) and not _apart_from_outline(spec, path, gates, meta):
        return []
    errors = _every_rule(spec, path, gates, tolerated=tolerated, meta=meta)
    if not errors and not spec.ephemeral_containers and not spec.resource_claims:
        _outlines.keep(key, sized)
        if repeated is not None:
            _repeated.keep(repeated_key, repeated)
    return errors


_outlines = PassedValues(128, longest=4096, by_text=by_text)
_repeated = PassedValues(128, longest=8192, by_text=by_text)
_resized = PassedObjects(1024, longest=4096)


def _apart_from_outline(spec: PodSpec, path: str, gates: FeatureGates, meta: ObjectMeta | None) -> list[FieldError]:
    """Every rule that looks at what an outline leaves out, of a spec without ephemeral containers and claims."""
    volumes, errors = validate_volumes(spec.volumes, f"{path}.volumes", pod=meta.name if meta else "")
    for container in regular_first(spec):
        errors += validate_mounts(container, volumes, path) + validate_devices(container, volumes, path)
    return errors + _sizes(spec, path, gates) + _names(spec, path) + _env_files(spec, path)


def _sizes(spec: PodSpec, path: str, gates: FeatureGates) -> list[FieldError]:
    """Every rule that looks at the amounts of a spec without ephemeral containers and claims."""
    errors = []
    for container in regular_first(spec):
        errors += validate_container_resources(container.resources, (), path)
    return errors + (validate_pod_resources(spec, (), path) if gates["PodLevelResources"] else [])


def _every_rule(
    spec: PodSpec, path: str, gates: FeatureGates, *, tolerated: Collection[str], meta: ObjectMeta | None
) -> list[FieldError]:
    """In upstream's order."""
    errors = []
    if spec.termination_grace_period_seconds is None:
        errors.append(required(f"{path}.terminationGracePeriodSeconds"))
    volumes, problems = validate_volumes(spec.volumes, f"{path}.volumes", pod=meta.name if meta else "")
    errors += problems + _claims(spec.resource_claims, meta, f"{path}.resourceClaims")
    around = surroundings(spec, volumes)
    errors += validate_containers(spec, around, f"{path}.containers")
    errors += validate_init_containers(spec, around, f"{path}.initContainers", tolerated=tolerated)
    errors += validate_ephemeral_containers(spec, around, f"{path}.ephemeralContainers")
    if gates["PodLevelResources"]:
        errors += validate_pod_resources(spec, around.claims, f"{path}.resources")
    errors += validate_host_network_ports(spec, f"{path}.containers", of_pod=meta is not None)
    errors += choice(spec.restart_policy, _RESTART_POLICIES, f"{path}.restartPolicy")
    errors += choice(spec.dns_policy, _DNS_POLICIES, f"{path}.dnsPolicy")
    errors += validate_labels(spec.node_selector, f"{path}.nodeSelector")
    errors += validate_pod_security(spec.security_context, spec, f"{path}.securityContext")
    errors += validate_affinity(spec.affinity, f"{path}.affinity")
    errors += validate_dns(spec.dns_config, spec.dns_policy, f"{path}.dnsConfig")
    errors += _gates(spec, path)
    errors += validate_spreading(spec.topology_spread_constraints, f"{path}.topologySpreadConstraints")
    errors += validate_host_processes(spec, path) + _host_users(spec, path) + _hostname_override(spec, path)
    errors += _names(spec, path) + validate_tolerations(spec.tolerations, f"{path}.tolerations")
    return errors + _rest(spec, path) + _env_files(spec, path)


def _claims(claims: tuple[PodResourceClaim, ...], meta: ObjectMeta | None, path: str) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        where = f"{path}[{index}]"
        if meta is not None and MIRROR in meta.annotations:
            errors.append(forbidden(WHOLE, "static pods do not support resource claims"))
            continue
        if not claim.name:
            errors.append(required(f"{where}.name"))
        elif claim.name in seen:
            errors.append(duplicate(f"{where}.name", claim.name))
        else:
            errors += [invalid(f"{where}.name", claim.name, text) for text in names.dns_label(claim.name)]
            seen.add(claim.name)
        errors += _claim_source(claim, where)
    return errors


def _claim_source(claim: PodResourceClaim, path: str) -> list[FieldError]:
    errors, named, template = [], claim.resource_claim_name, claim.resource_claim_template_name
    shown = {"Name": claim.name, "ResourceClaimName": named or None, "ResourceClaimTemplateName": template or None}
    if named and template:
        text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        errors.append(invalid(path, shown, text))
    if not named and not template:
        text = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        errors.append(invalid(path, shown, text))
    for value, name in ((named, "resourceClaimName"), (template, "resourceClaimTemplateName")):
        errors += [invalid(f"{path}.{name}", value, text) for text in (names.dns_subdomain(value) if value else ())]
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


def _host_users(spec: PodSpec, path: str) -> list[FieldError]:
    """Users of its own go with none of the host's other namespaces, nor with raw devices."""
    if spec.host_users is not False:
        return []
    text = "when `hostUsers` is false"
    given = ((spec.host_network, "hostNetwork"), (spec.host_pid, "HostPID"), (spec.host_ipc, "HostIPC"))
    errors = [forbidden(f"{path}.{name}", text) for value, name in given if value]
    for container, where in containers_of(spec, path):
        errors += [forbidden(f"{where}.volumeDevices", text)] if container.volume_devices else []
    return errors


def _hostname_override(spec: PodSpec, path: str) -> list[FieldError]:
    if spec.hostname_override is None:
        return []
    where, name = f"{path}.hostnameOverride", spec.hostname_override
    given = ((spec.set_hostname_as_fqdn, "setHostnameAsFQDN"), (spec.host_network, "hostNetwork"))
    errors = [forbidden(where, f"may not be specified when {other} is true") for value, other in given if value]
    errors += [too_long(where, _LONGEST_HOSTNAME)] if len(name.encode()) > _LONGEST_HOSTNAME else []
    return errors + [invalid(where, name, text) for text in names.dns_subdomain(name)]


def _rest(spec: PodSpec, path: str) -> list[FieldError]:
    errors = []
    for index, alias in enumerate(spec.host_aliases):
        where = f"{path}.hostAliases[{index}]"
        errors += address(alias.ip, f"{where}.ip")
        for position, hostname in enumerate(alias.hostnames):
            problems = names.dns_subdomain(hostname)
            errors += [invalid(f"{where}.hostnames[{position}]", hostname, text) for text in problems]
    for value, field in (
        (spec.priority_class_name, "priorityClassName"),
        (spec.runtime_class_name, "runtimeClassName"),
    ):
        errors += [invalid(f"{path}.{field}", value, text) for text in (names.dns_subdomain(value) if value else ())]
    if spec.preemption_policy and spec.preemption_policy not in _PREEMPTION:
        errors.append(unsupported(f"{path}.preemptionPolicy", spec.preemption_policy, _PREEMPTION))
    errors += validate_overhead(spec.overhead, f"{path}.overhead")
    if spec.os is None:
        return errors
    if not spec.os.name:
        return [*errors, required(f"{path}.os.name")]
    if spec.os.name not in ("linux", "windows"):
        return [*errors, unsupported(f"{path}.os", spec.os.name, ("linux", "windows"))]
    return errors + validate_os_fields(spec, path)


def _env_files(spec: PodSpec, path: str) -> list[FieldError]:
    """A file of variables lies in a volume that the pod's containers write."""
    given = [
        (variable.value_from.file_key_ref, f"{where}.env[{index}].valueFrom.fileKeyRef.volumeName")
        for container, where in containers_of(spec, path)
        for index, variable in enumerate(container.env)
        if variable.value_from is not None and variable.value_from.file_key_ref is not None
    ]
    errors = []
    volumes = {volume.name: volume for volume in spec.volumes} if given else {}
    for ref, at in given:
        volume = volumes.get(ref.volume_name)
        if volume is None:
            errors.append(missing(at, ref.volume_name))
        elif volume.empty_dir is None:
            errors.append(invalid(at, ref.volume_name, "referenced volume must be of type emptyDir"))
    return errors
