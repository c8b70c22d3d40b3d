"""Validation of a pod's operating system: fields that only Windows or only Linux has."""

import re
from collections.abc import Iterator

from podfit.api.core.v1.pods.aggregate import with_ephemeral
from podfit.api.core.v1.pods.containers import Container, EphemeralContainer
from podfit.api.core.v1.pods.security import WindowsSecurityContextOptions
from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.meta.validation import names
from podfit.core.fields import FieldError, forbidden, invalid

_CREDENTIALS_KIB, _LONGEST_DOMAIN, _LONGEST_USER = 64, 256, 104
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NET_BIOS = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DNS_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DNS = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*")
_NOT_IN_USER = re.compile(r'["/\\:;|=,+*?<>@\[\]]')
_NOT_FOR_LINUX = "windows options cannot be set for a linux pod"
_NOT_FOR_WINDOWS = "cannot be set for a windows pod"
_ALL_OR_NONE = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
_POD_FIELDS = (
    ("app_armor_profile", "appArmorProfile"),
    ("se_linux_options", "seLinuxOptions"),
    (None, "hostUsers"),
    (None, "hostPID"),
    (None, "hostIPC"),
    ("seccomp_profile", "seccompProfile"),
    ("fs_group", "fsGroup"),
    ("fs_group_change_policy", "fsGroupChangePolicy"),
    ("sysctls", "sysctls"),
    (None, "shareProcessNamespace"),
    ("run_as_user", "runAsUser"),
    ("run_as_group", "runAsGroup"),
    ("supplemental_groups", "supplementalGroups"),
    ("supplemental_groups_policy", "supplementalGroupsPolicy"),
    ("se_linux_change_policy", "seLinuxChangePolicy"),
)
"""Of the pod's security context; without an attribute: of the pod itself, in the order of upstream's errors."""
_CONTAINER_FIELDS = (
    ("app_armor_profile", "appArmorProfile"),
    ("se_linux_options", "seLinuxOptions"),
    ("seccomp_profile", "seccompProfile"),
    ("capabilities", "capabilities"),
    ("read_only_root_filesystem", "readOnlyRootFilesystem"),
    ("privileged", "privileged"),
    ("allow_privilege_escalation", "allowPrivilegeEscalation"),
    ("proc_mount", "procMount"),
    ("run_as_user", "runAsUser"),
    ("run_as_group", "runAsGroup"),
)
_UNSET = (None, "", ())


def containers_of(spec: PodSpec, path: str) -> Iterator[tuple[Container | EphemeralContainer, str]]:
    """Every container with its path, in the order in which upstream visits them."""
    for index, init in enumerate(spec.init_containers):
        yield init, f"{path}.initContainers[{index}]"
    for index, container in enumerate(spec.containers):
        yield container, f"{path}.containers[{index}]"
    for index, ephemeral in enumerate(spec.ephemeral_containers):
        yield ephemeral, f"{path}.ephemeralContainers[{index}]"


def validate_os_fields(spec: PodSpec, path: str) -> list[FieldError]:
    """Of a pod that names its operating system: what belongs to the other one."""
    if spec.os is None:
        return []
    return _linux(spec, path) if spec.os.name == "linux" else _windows(spec, path)


def _linux(spec: PodSpec, path: str) -> list[FieldError]:
    errors = []
    if spec.security_context is not None and spec.security_context.windows_options is not None:
        errors.append(forbidden(f"{path}.securityContext.windowsOptions", _NOT_FOR_LINUX))
    for container, where in containers_of(spec, path):
        context = container.security_context
        if context is not None and context.windows_options is not None:
            errors.append(forbidden(f"{where}.securityContext.windowsOptions", _NOT_FOR_LINUX))
    return errors


def _windows(spec: PodSpec, path: str) -> list[FieldError]:
    own = {
        "hostUsers": spec.host_users is not None,
        "hostPID": spec.host_pid,
        "hostIPC": spec.host_ipc,
        "shareProcessNamespace": spec.share_process_namespace is not None,
    }
    errors = []
    for attribute, name in _POD_FIELDS:
        if attribute is None:
            errors += [forbidden(f"{path}.{name}", _NOT_FOR_WINDOWS)] if own[name] else []
        elif spec.security_context is not None and getattr(spec.security_context, attribute) not in _UNSET:
            errors.append(forbidden(f"{path}.securityContext.{name}", _NOT_FOR_WINDOWS))
    for container, where in containers_of(spec, path):
        for attribute, name in _CONTAINER_FIELDS if container.security_context is not None else ():
            if getattr(container.security_context, attribute) not in _UNSET:
                errors.append(forbidden(f"{where}.securityContext.{name}", _NOT_FOR_WINDOWS))
    return errors


def validate_host_processes(spec: PodSpec, path: str) -> list[FieldError]:
    """Either every container is a process of the host or none is, and then the pod is on the host's network."""
    containers = with_ephemeral(spec)
    contexts = [container.security_context for container in containers]
    options = spec.security_context.windows_options if spec.security_context else None
    if options is None and all(context is None or context.windows_options is None for context in contexts):
        return []
    of_pod = options.host_process if options else None
    errors = []
    total = on_host = 0
    for container, where in containers_of(spec, path):
        total += 1
        context = container.security_context
        own = context.windows_options.host_process if context and context.windows_options else None
        if of_pod is not None and own is not None and of_pod != own:
            text = f"pod hostProcess value must be identical if both are specified, was {str(of_pod).lower()}"
            errors.append(invalid(f"{where}.securityContext.windowsOptions.hostProcess", own, text))
        on_host += bool(of_pod if own is None else own)
    if on_host and on_host != total:
        errors.append(invalid(path, "", _ALL_OR_NONE))
    if on_host and not spec.host_network:
        text = "hostNetwork must be true if pod contains any hostProcess containers"
        errors.append(invalid(f"{path}.hostNetwork", False, text))
    return errors


def validate_windows_options(options: WindowsSecurityContextOptions | None, path: str) -> list[FieldError]:
    if options is None:
        return []
    errors, name = [], options.gmsa_credential_spec_name
    if name:
        errors += [invalid(f"{path}.gmsaCredentialSpecName", name, text) for text in names.dns_subdomain(name)]
    if len(options.gmsa_credential_spec.encode()) > _CREDENTIALS_KIB * 1024:
        text = f"gmsaCredentialSpec size must be under {_CREDENTIALS_KIB} KiB"
        errors.append(invalid(f"{path}.gmsaCredentialSpec", options.gmsa_credential_spec, text))
    user = options.run_as_user_name
    return errors + [invalid(f"{path}.runAsUserName", user, f"runAsUserName{text}") for text in _user_name(user)]


def _user_name(name: str) -> list[str]:
    """What is wrong with `USER` or `DOMAIN\\USER`, each text without its first word."""
    if not name:
        return []
    if _CONTROL.search(name):
        return [" cannot contain control characters"]
    if name.count("\\") > 1:
        return [" cannot contain more than one backslash"]
    domain, backslash, user = name.rpartition("\\")
    problems = []
    if len(domain.encode()) >= _LONGEST_DOMAIN:
        problems.append(f"'s Domain length must be under {_LONGEST_DOMAIN} characters")
    if backslash and not (_NET_BIOS.fullmatch(domain) or _DNS.fullmatch(domain)):
        problems.append("'s Domain doesn't match the NetBios nor the DNS format")
    if not user:
        problems.append("'s User cannot be empty")
    elif len(user.encode()) > _LONGEST_USER:
        problems.append(f"'s User length must not be longer than {_LONGEST_USER} characters")
    if user and not user.strip(". "):
        problems.append("'s User cannot contain only periods or spaces")
    if _NOT_IN_USER.search(user):
        problems.append("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
    return problems
