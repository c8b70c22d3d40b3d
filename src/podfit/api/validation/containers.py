"""Containers of every sort: regular ones, init containers and sidecars, ephemeral ones."""

from collections.abc import Collection, Iterable

import msgspec

from podfit.api.core.aggregate import is_sidecar
from podfit.api.core.containers import Container, ContainerPort, ContainerRestartRule, EphemeralContainer
from podfit.api.core.pods import PodSpec
from podfit.api.validation import names
from podfit.api.validation.env import validate_env, validate_env_from
from podfit.api.validation.mounts import validate_devices, validate_mounts
from podfit.api.validation.probes import validate_lifecycle, validate_probes
from podfit.api.validation.resources import validate_container_resources, validate_resize_policy
from podfit.api.validation.security import validate_security
from podfit.core.fields import FieldError, duplicate, forbidden, invalid, missing, required, unsupported

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("FallbackToLogsOnError", "File")
RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RULE_ACTIONS = ("Restart", "RestartAllContainers")
_NOT_EPHEMERAL = (
    ("ports", "ports"), ("resources", "resources"), ("resize_policy", "resizePolicy"),
    ("restart_policy", "restartPolicy"), ("restart_policy_rules", "restartPolicyRules"),
    ("liveness_probe", "livenessProbe"), ("readiness_probe", "readinessProbe"), ("startup_probe", "startupProbe"),
    ("lifecycle", "lifecycle"),
)  # fmt: skip
_NOTHING = EphemeralContainer()


class Surroundings(msgspec.Struct, frozen=True):
    """What a container may refer to."""

    volumes: Collection[str]
    claims: Collection[str]
    restart_policy: str
    host_network: bool


def surroundings(spec: PodSpec) -> Surroundings:
    return Surroundings(
        volumes={volume.name for volume in spec.volumes},
        claims={claim.name for claim in spec.resource_claims},
        restart_policy=spec.restart_policy,
        host_network=spec.host_network,
    )


def validate_containers(spec: PodSpec, path: str) -> list[FieldError]:
    if not spec.containers:
        return [required(path)]
    around = surroundings(spec)
    errors = []
    seen: set[str] = set()
    for index, container in enumerate(spec.containers):
        where = f"{path}[{index}]"
        errors += _common(container, around, where)
        if container.name in seen:
            errors.append(duplicate(f"{where}.name", container.name))
        seen.add(container.name)
        errors += validate_lifecycle(container.lifecycle, f"{where}.lifecycle")
        errors += validate_probes(container.liveness_probe, container.readiness_probe, container.startup_probe, where)
        errors += _restart(container, where)
    return errors + _host_ports(spec.containers, path)


def validate_init_containers(spec: PodSpec, path: str, *, tolerated: Collection[str] = ()) -> list[FieldError]:
    """`tolerated` names those that were stored with a restart policy of resizing that is refused today (R-024)."""
    around = surroundings(spec)
    errors = []
    seen = {container.name for container in spec.containers}
    for index, container in enumerate(spec.init_containers):
        where = f"{path}[{index}]"
        errors += _common(container, around, where)
        if container.name in seen:
            errors.append(duplicate(f"{where}.name", container.name))
        seen.add(container.name)
        errors += _host_ports((container,), path)
        probes = (container.liveness_probe, container.readiness_probe, container.startup_probe)
        if is_sidecar(container):
            errors += validate_lifecycle(container.lifecycle, f"{where}.lifecycle") + validate_probes(*probes, where)
        else:
            errors += _run_once(container, where)
            if container.name not in tolerated:
                errors += _live_only(container, where)
        errors += _restart(container, where)
    return errors


def _run_once(container: Container, path: str) -> list[FieldError]:
    text = "may not be set for init containers without restartPolicy=Always"
    given = (
        (container.lifecycle, "lifecycle"), (container.liveness_probe, "livenessProbe"),
        (container.readiness_probe, "readinessProbe"), (container.startup_probe, "startupProbe"),
    )  # fmt: skip
    return [forbidden(f"{path}.{name}", text) for value, name in given if value is not None]


def _live_only(container: Container, path: str) -> list[FieldError]:
    text = "must not be set to 'RestartContainer' for non-sidecar initContainers"
    return [
        invalid(f"{path}.resizePolicy[{index}].restartPolicy", policy.restart_policy, text)
        for index, policy in enumerate(container.resize_policy)
        if policy.restart_policy == "RestartContainer"
    ]


def validate_ephemeral_containers(spec: PodSpec, path: str) -> list[FieldError]:
    """A guest for debugging: no ports, no probes, no resources of its own (R-025)."""
    around = surroundings(spec)
    errors = []
    hosts = {container.name for container in (*spec.containers, *spec.init_containers)}
    seen = set(hosts)
    for index, container in enumerate(spec.ephemeral_containers):
        where = f"{path}[{index}]"
        text = "cannot be set for an Ephemeral Container"
        banned = [
            forbidden(f"{where}.{name}", text)
            for attribute, name in _NOT_EPHEMERAL
            if getattr(container, attribute) != getattr(_NOTHING, attribute)
        ]
        errors += banned or _common(container, around, where)
        if container.name in seen:
            errors.append(duplicate(f"{where}.name", container.name))
        seen.add(container.name)
        target = container.target_container_name
        if target and target not in hosts:
            errors.append(missing(f"{where}.targetContainerName", target))
    return errors


def _common(container: Container | EphemeralContainer, around: Surroundings, path: str) -> list[FieldError]:
    errors = _identity(container, path)
    if container.termination_message_policy not in _MESSAGE_POLICIES:
        given = container.termination_message_policy
        errors.append(unsupported(f"{path}.terminationMessagePolicy", given, _MESSAGE_POLICIES))
    errors += _ports(container.ports, f"{path}.ports", host_network=around.host_network)
    errors += validate_env(container.env, f"{path}.env") + validate_env_from(container.env_from, f"{path}.envFrom")
    devices = {device.device_path for device in container.volume_devices}
    errors += validate_mounts(container.volume_mounts, around.volumes, devices, f"{path}.volumeMounts")
    errors += validate_devices(container.volume_devices, around.volumes, f"{path}.volumeDevices")
    if container.image_pull_policy not in _PULL_POLICIES:
        errors.append(unsupported(f"{path}.imagePullPolicy", container.image_pull_policy, _PULL_POLICIES))
    errors += validate_container_resources(container.resources, around.claims, f"{path}.resources")
    errors += validate_resize_policy(container.resize_policy, f"{path}.resizePolicy", around.restart_policy)
    return errors + validate_security(container.security_context, f"{path}.securityContext")


def _identity(container: Container | EphemeralContainer, path: str) -> list[FieldError]:
    errors = []
    if not container.name:
        errors.append(required(f"{path}.name"))
    else:
        errors += [invalid(f"{path}.name", container.name, text) for text in names.dns_label(container.name)]
    if not container.image:
        errors.append(required(f"{path}.image"))
    elif container.image != container.image.strip():
        errors.append(invalid(f"{path}.image", container.image, "must not have leading or trailing whitespace"))
    return errors


def _ports(ports: tuple[ContainerPort, ...], path: str, *, host_network: bool) -> list[FieldError]:
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
            if host_network and port.host_port != port.container_port:
                text = "must match `containerPort` when `hostNetwork` is true"
                errors.append(invalid(f"{where}.hostPort", port.host_port, text))
        if not port.protocol:
            errors.append(required(f"{where}.protocol"))
        elif port.protocol not in _PROTOCOLS:
            errors.append(unsupported(f"{where}.protocol", port.protocol, _PROTOCOLS))
    return errors


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
    errors = []
    if container.restart_policy and container.restart_policy not in RESTART_POLICIES:
        errors.append(unsupported(f"{path}.restartPolicy", container.restart_policy, RESTART_POLICIES))
    if container.restart_policy_rules and not container.restart_policy:
        errors.append(required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used"))
    for index, rule in enumerate(container.restart_policy_rules):
        errors += _restart_rule(rule, f"{path}.restartPolicyRules[{index}]")
    return errors


def _restart_rule(rule: ContainerRestartRule, path: str) -> list[FieldError]:
    errors = []
    if rule.action not in _RULE_ACTIONS:
        errors.append(unsupported(f"{path}.action", rule.action, _RULE_ACTIONS))
    if rule.exit_codes is None:
        errors.append(required(f"{path}.exitCodes", "must be specified"))
    elif rule.exit_codes.operator not in ("In", "NotIn"):
        errors.append(unsupported(f"{path}.exitCodes.operator", rule.exit_codes.operator, ("In", "NotIn")))
    return errors
