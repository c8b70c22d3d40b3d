"""Security contexts."""

from typing import Any

from podfit.api.core.pods import PodSpec
from podfit.api.core.security import PodSecurityContext, SeccompProfile, SecurityContext
from podfit.api.validation import names
from podfit.core.fields import FieldError, duplicate, invalid, required, unsupported

_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_SECCOMP = ("Localhost", "RuntimeDefault", "Unconfined")


def validate_pod_security(context: PodSecurityContext | None, spec: PodSpec, path: str) -> list[FieldError]:
    errors = []
    if context is not None:
        for number, name in (
            (context.fs_group, "fsGroup"), (context.run_as_user, "runAsUser"), (context.run_as_group, "runAsGroup"),
        ):  # fmt: skip
            errors += _identity(number, f"{path}.{name}")
        for index, group in enumerate(context.supplemental_groups):
            errors += _identity(group, f"{path}.supplementalGroups[{index}]")
    if spec.share_process_namespace and spec.host_pid:
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(f"{path}.shareProcessNamespace", True, text))
    if context is not None:
        errors += _sysctls(context, f"{path}.sysctls")
        errors += _seccomp(context.seccomp_profile, f"{path}.seccompProfile")
    return errors


def _identity(number: int | None, path: str) -> list[FieldError]:
    return [invalid(path, number, text) for text in names.user_id(number)] if number is not None else []


def _sysctls(context: PodSecurityContext, path: str) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for index, sysctl in enumerate(context.sysctls):
        where = f"{path}[{index}].name"
        if not sysctl.name:
            errors.append(required(where))
        elif not names.is_sysctl(sysctl.name):
            text = f"must have at most 253 characters and match regex {_SYSCTL}"
            errors.append(invalid(where, sysctl.name, text))
        elif sysctl.name in seen:
            errors.append(duplicate(where, sysctl.name))
        seen.add(sysctl.name)
    return errors


def _seccomp(profile: SeccompProfile | None, path: str) -> list[FieldError]:
    if profile is None:
        return []
    if not profile.type:
        return [required(f"{path}.type", "type is required when seccompProfile is set")]
    if profile.type not in _SECCOMP:
        return [unsupported(f"{path}.type", profile.type, _SECCOMP)]
    if profile.type == "Localhost" and not profile.localhost_profile:
        return [required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")]
    if profile.type != "Localhost" and profile.localhost_profile:
        text = "can only be set when seccomp type is Localhost"
        return [invalid(f"{path}.localhostProfile", profile.localhost_profile, text)]
    return []


def validate_security(context: SecurityContext | None, path: str) -> list[FieldError]:
    if context is None:
        return []
    errors = _identity(context.run_as_user, f"{path}.runAsUser") + _identity(context.run_as_group, f"{path}.runAsGroup")
    if context.proc_mount and context.proc_mount not in ("Default", "Unmasked"):
        errors.append(unsupported(f"{path}.procMount", context.proc_mount, ("Default", "Unmasked")))
    errors += _seccomp(context.seccomp_profile, f"{path}.seccompProfile")
    if context.allow_privilege_escalation is False:
        if context.privileged:
            text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(invalid(path, _go(context), text))
        if context.capabilities and {"SYS_ADMIN", "CAP_SYS_ADMIN"} & set(context.capabilities.add):
            text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            errors.append(invalid(path, _go(context), text))
    return errors


def _go(context: SecurityContext) -> dict[str, Any]:
    """The whole context under the names of the API server's own fields, as its message quotes it."""
    capabilities = context.capabilities
    return {
        "Capabilities": {"Add": capabilities.add or None, "Drop": capabilities.drop or None} if capabilities else None,
        "Privileged": context.privileged,
        "SELinuxOptions": context.se_linux_options,
        "WindowsOptions": context.windows_options,
        "RunAsUser": context.run_as_user,
        "RunAsGroup": context.run_as_group,
        "RunAsNonRoot": context.run_as_non_root,
        "ReadOnlyRootFilesystem": context.read_only_root_filesystem,
        "AllowPrivilegeEscalation": context.allow_privilege_escalation,
        "ProcMount": context.proc_mount or None,
        "SeccompProfile": context.seccomp_profile,
        "AppArmorProfile": context.app_armor_profile,
    }
