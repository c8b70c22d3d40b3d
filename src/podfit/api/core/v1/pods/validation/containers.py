"""Containers of every sort: regular ones, init containers and sidecars, ephemeral ones."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from podfit.api.core.v1.pods.aggregate import all_containers, is_sidecar
from podfit.api.core.v1.pods.containers import Container, ContainerPort, ContainerRestartRule, EphemeralContainer
from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.core.v1.pods.validation.env import validate_env, validate_env_from
from podfit.api.core.v1.pods.validation.mounts import validate_devices, validate_mounts
from podfit.api.core.v1.pods.validation.probes import validate_lifecycle, validate_probes
from podfit.api.core.v1.pods.validation.resources import validate_container_resources, validate_resize_policy
from podfit.api.core.v1.pods.validation.security import validate_security
from podfit.api.core.v1.pods.volumes import Volume
from podfit.api.meta.validation import names
from podfit.core.fields import FieldError, duplicate, forbidden, invalid, missing, required, too_many, unsupported

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RULE_ACTIONS = ("Restart", "RestartAllContainers")
_MOST_RULES, _MOST_CODES = 20, 255
_NOT_EPHEMERAL = (
    ("ports", "ports"),
    ("resources", "resources"),
    ("resize_policy", "resizePolicy"),
    ("restart_policy", "restartPolicy"),
    ("restart_policy_rules", "restartPolicyRules"),
    ("liveness_probe", "livenessProbe"),
    ("readiness_probe", "readinessProbe"),
    ("startup_probe", "startupProbe"),
    ("lifecycle", "lifecycle"),
)
_NOTHING = EphemeralContainer()


class PodContext(msgspec.Struct, frozen=True):
    """What a container may refer to, and what of its pod its rules depend on."""

    volumes: Mapping[str, Volume]
    claims: Collection[str]
    restart_policy: str
    host_users: bool
    grace: int | None
    os: str | None


def surroundings(spec: PodSpec, volumes: Mapping[str, Volume]) -> PodContext:
    """`volumes` are those that are in order."""
    return PodContext(
        volumes=volumes,
        claims={claim.name for claim in spec.resource_claims if claim.name},
        restart_policy=spec.restart_policy,
        host_users=spec.host_users is not False,
        grace=spec.termination_grace_period_seconds,
        os=spec.os.name if spec.os is not None else None,
    )


def validate_containers(spec: PodSpec, around: PodContext, path: str) -> list[FieldError]:
    if not spec.containers:
        return [required(path)]
    errors = []
    seen: set[str] = set()
    for index, container in enumerate(spec.containers):
        where = f"{path}[{index}]"
        errors += _common(container, around, where)
        if container.name in seen:
            errors.append(duplicate(f"{where}.name", container.name))
        seen.add(container.name)
        errors += validate_lifecycle(container.lifecycle, f"{where}.lifecycle", grace=around.grace, os=around.os)
        errors += validate_probes(container, where) + _restart(container, where)
    return errors + _host_ports(spec.containers, path)


def validate_init_containers(
    spec: PodSpec, around: PodContext, path: str, *, tolerated: Collection[str] = ()
) -> list[FieldError]:
    """`tolerated` names those that were stored with a restart policy of resizing that is refused today (R-024)."""
    errors = []
    seen = {container.name for container in spec.containers}
    for index, container in enumerate(spec.init_containers):
        where = f"{path}[{index}]"
        errors += _common(container, around, where)
        if container.restart_policy or container.restart_policy_rules:
            errors += _restart(container, where)
        if container.name in seen:
            errors.append(duplicate(f"{where}.name", container.name))
        elif container.name:
            seen.add(container.name)
        errors += _host_ports((container,), path)
        if is_sidecar(container):
            errors += validate_lifecycle(container.lifecycle, f"{where}.lifecycle", grace=around.grace, os=around.os)
            errors += validate_probes(container, where)
        else:
            errors += _run_once(container, where)
            if container.name not in tolerated:
                errors += _live_only(container, where)
    return errors


def _run_once(container: Container, path: str) -> list[FieldError]:
    text = "may not be set for init containers without restartPolicy=Always"
    given = (
        (container.lifecycle, "lifecycle"),
        (container.liveness_probe, "livenessProbe"),
        (container.readiness_probe, "readinessProbe"),
        (container.startup_probe, "startupProbe"),
    )
    return [forbidden(f"{path}.{name}", text) for value, name in given if value is not None]


def _live_only(container: Container, path: str) -> list[FieldError]:
    text = "must not be set to 'RestartContainer' for non-sidecar initContainers"
    return [
        invalid(f"{path}.resizePolicy[{index}].restartPolicy", policy.restart_policy, text)
        for index, policy in enumerate(container.resize_policy)
        if policy.restart_policy == "RestartContainer"
    ]


def validate_ephemeral_containers(spec: PodSpec, around: PodContext, path: str) -> list[FieldError]:
    """For debugging: no ports, no probes, no resources of its own (R-025)."""
    errors = []
    hosts = {container.name for container in all_containers(spec)}
    seen = set(hosts)
    for index, container in enumerate(spec.ephemeral_containers):
        where = f"{path}[{index}]"
        errors += _common(container, around, where)
        errors += [_untrimmed(container, where)] if container.image != container.image.strip() else []
        if container.name in seen:
            errors.append(duplicate(f"{where}.name", container.name))
        seen.add(container.name)
        target = container.target_container_name
        if target and target not in hosts:
            errors.append(missing(f"{where}.targetContainerName", target))
        errors += _not_ephemeral(container, where)
    return errors


def _not_ephemeral(container: EphemeralContainer, path: str) -> list[FieldError]:
    text = "cannot be set for an Ephemeral Container"
    errors = [
        forbidden(f"{path}.{name}", text)
        for attribute, name in _NOT_EPHEMERAL
        if getattr(container, attribute) != getattr(_NOTHING, attribute)
    ]
    for index, mount in enumerate(container.volume_mounts):
        where = f"{path}.volumeMounts[{index}]"
        errors += [forbidden(f"{where}.subPath", text)] if mount.sub_path else []
        errors += [forbidden(f"{where}.subPathExpr", text)] if mount.sub_path_expr else []
    return errors


def _common(container: Container | EphemeralContainer, around: PodContext, path: str) -> list[FieldError]:
    if not container.name:
        errors = [required(f"{path}.name")]
    else:
        errors = [invalid(f"{path}.name", container.name, text) for text in names.dns_label(container.name)]
    if not container.image:
        errors.append(required(f"{path}.image"))
    errors += choice(container.termination_message_policy, _MESSAGE_POLICIES, f"{path}.terminationMessagePolicy")
    errors += _ports(container.ports, f"{path}.ports")
    errors += validate_env(container.env, f"{path}.env") + validate_env_from(container.env_from, f"{path}.envFrom")
    errors += validate_mounts(container, around.volumes, f"{path}.volumeMounts")
    errors += validate_devices(container, around.volumes, f"{path}.volumeDevices")
    errors += choice(container.image_pull_policy, _PULL_POLICIES, f"{path}.imagePullPolicy")
    errors += validate_container_resources(container.resources, around.claims, f"{path}.resources")
    errors += validate_resize_policy(container.resize_policy, f"{path}.resizePolicy", around.restart_policy)
    where = f"{path}.securityContext"
    return errors + validate_security(container.security_context, where, host_users=around.host_users)


def validate_images(containers: Sequence[Container], path: str) -> list[FieldError]:
    """What is asked of images in pods, though not in templates."""
    return [
        _untrimmed(container, f"{path}[{index}]")
        for index, container in enumerate(containers)
        if container.image != container.image.strip()
    ]


def _untrimmed(container: Container | EphemeralContainer, path: str) -> FieldError:
    return invalid(f"{path}.image", container.image, "must not have leading or trailing whitespace")


def choice(value: str, supported: tuple[str, ...], path: str) -> list[FieldError]:
    if not value:
        return [required(path)]
    return [] if value in supported else [unsupported(path, value, supported)]


def _ports(ports: tuple[ContainerPort, ...], path: str) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        where = f"{path}[{index}]"
        if port.name:
            problems = names.port_name(port.name)
            errors += [invalid(f"{where}.name", port.name, text) for text in problems]
            if not problems and port.name in seen:
                errors.append(duplicate(f"{where}.name", port.name))
            seen.add(port.name)
        if port.container_port == 0:
            errors.append(required(f"{where}.containerPort"))
        else:
            number = port.container_port
            errors += [invalid(f"{where}.containerPort", number, text) for text in names.port_number(number)]
        if port.host_port:
            errors += [invalid(f"{where}.hostPort", port.host_port, t) for t in names.port_number(port.host_port)]
        errors += choice(port.protocol, _PROTOCOLS, f"{where}.protocol")
    return errors


def validate_host_network_ports(spec: PodSpec, path: str, *, of_pod: bool) -> list[FieldError]:
    """On the host's network a port is the host's; a template may leave that to be filled in."""
    text = "must match `containerPort` when `hostNetwork` is true"
    return [
        invalid(f"{path}[{index}].ports[{position}].hostPort", port.host_port, text)
        for index, container in enumerate(spec.containers if spec.host_network else ())
        for position, port in enumerate(container.ports)
        if (of_pod or port.host_port) and port.host_port != port.container_port
    ]


def _host_ports(containers: Iterable[Container], path: str) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for index, container in enumerate(containers):
        for position, port in enumerate(container.ports):
            key = f"{port.protocol}/{port.host_ip}/{port.host_port}"
            if port.host_port and key in seen:
                errors.append(duplicate(f"{path}[{index}].ports[{position}].hostPort", key))
            seen.add(key)
    return errors


def _restart(container: Container, path: str) -> list[FieldError]:
    errors, rules = [], container.restart_policy_rules
    if container.restart_policy and container.restart_policy not in RESTART_POLICIES:
        errors.append(unsupported(f"{path}.restartPolicy", container.restart_policy, RESTART_POLICIES))
    if rules and not container.restart_policy:
        errors.append(required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used"))
    if len(rules) > _MOST_RULES:
        errors.append(too_many(f"{path}.restartPolicyRules", len(rules), _MOST_RULES))
    for index, rule in enumerate(rules):
        errors += _restart_rule(rule, f"{path}.restartPolicyRules[{index}]")
    return errors


def _restart_rule(rule: ContainerRestartRule, path: str) -> list[FieldError]:
    errors, codes = [], rule.exit_codes
    if rule.action not in _RULE_ACTIONS:
        errors.append(unsupported(f"{path}.action", rule.action, _RULE_ACTIONS))
    if codes is None:
        return [*errors, required(f"{path}.exitCodes", "must be specified")]
    if codes.operator not in ("In", "NotIn"):
        errors.append(unsupported(f"{path}.exitCodes.operator", codes.operator, ("In", "NotIn")))
    if len(codes.values) > _MOST_CODES:
        errors.append(too_many(f"{path}.exitCodes.values", len(codes.values), _MOST_CODES))
    return errors
