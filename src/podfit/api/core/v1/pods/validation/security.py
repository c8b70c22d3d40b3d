"""Security contexts of pods and containers."""

from typing import Any

from podfit.api.core.v1.pods.security import AppArmorProfile, PodSecurityContext, SeccompProfile, SecurityContext
from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.core.v1.pods.validation.volume_files import local_path
from podfit.api.core.v1.pods.validation.windows import validate_windows_options
from podfit.api.meta.validation import names
from podfit.core.fields import FieldError, duplicate, invalid, required, too_long, unsupported

_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_PROC_MOUNTS = ("Default", "Unmasked")
_OF_IPC = ("kernel.shm", "kernel.msg", "fs.mqueue.")
_LONGEST_PROFILE = 4095
_PRIVILEGED = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
_ADMIN = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"


_NOTHING = PodSecurityContext()


def validate_pod_security(context: PodSecurityContext | None, spec: PodSpec, path: str) -> list[FieldError]:
    errors = []
    if context is not None:
        for number, name in (
            (context.fs_group, "fsGroup"),
            (context.run_as_user, "runAsUser"),
            (context.run_as_group, "runAsGroup"),
        ):
            errors += _identity(number, f"{path}.{name}")
        for index, group in enumerate(context.supplemental_groups):
            errors += _identity(group, f"{path}.supplementalGroups[{index}]")
    if spec.share_process_namespace and spec.host_pid:
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(f"{path}.shareProcessNamespace", True, text))
    return errors if context is None or context == _NOTHING else errors + _pod_rest(context, spec, path)


def _pod_rest(context: PodSecurityContext, spec: PodSpec, path: str) -> list[FieldError]:
    errors = _sysctls(context, spec, f"{path}.sysctls")
    errors += _one_of(context.fs_group_change_policy, ("Always", "OnRootMismatch"), f"{path}.fsGroupChangePolicy")
    errors += _seccomp(context.seccomp_profile, f"{path}.seccompProfile")
    errors += validate_windows_options(context.windows_options, f"{path}.windowsOptions")
    errors += _app_armor(context.app_armor_profile, f"{path}.appArmorProfile")
    errors += _one_of(context.supplemental_groups_policy, ("Merge", "Strict"), f"{path}.supplementalGroupsPolicy")
    policy = context.se_linux_change_policy or None
    return errors + _one_of(policy, ("MountOption", "Recursive"), f"{path}.seLinuxChangePolicy")


def _one_of(value: str | None, supported: tuple[str, ...], path: str) -> list[FieldError]:
    return [] if value is None or value in supported else [unsupported(path, value, supported)]


def _identity(number: int | None, path: str) -> list[FieldError]:
    return [invalid(path, number, text) for text in names.user_id(number)] if number is not None else []


def _sysctls(context: PodSecurityContext, spec: PodSpec, path: str) -> list[FieldError]:
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
        dotted = _dotted(sysctl.name)
        if spec.host_network and dotted.startswith("net."):
            errors.append(invalid(where, sysctl.name, "may not be specified when 'hostNetwork' is true"))
        elif spec.host_ipc and (dotted == "kernel.sem" or dotted.startswith(_OF_IPC)):
            errors.append(invalid(where, sysctl.name, "may not be specified when 'hostIPC' is true"))
    return errors


def _dotted(sysctl: str) -> str:
    """The name with dots between its parts: slashes and dots stand for each other where a slash comes first."""
    first = next((letter for letter in sysctl if letter in "./"), "")
    return sysctl.translate(str.maketrans("./", "/.")) if first == "/" else sysctl


def _seccomp(profile: SeccompProfile | None, path: str) -> list[FieldError]:
    if profile is None:
        return []
    errors, where = [], f"{path}.localhostProfile"
    if not profile.type:
        errors.append(required(f"{path}.type", "type is required when seccompProfile is set"))
    elif profile.type not in _PROFILES:
        errors.append(unsupported(f"{path}.type", profile.type, _PROFILES))
    if profile.type != "Localhost":
        if profile.localhost_profile:
            shown = {"Type": profile.type, "LocalhostProfile": profile.localhost_profile}
            errors.append(invalid(where, shown, "can only be set when seccomp type is Localhost"))
    elif not profile.localhost_profile:
        errors.append(required(where, "must be set when seccomp type is Localhost"))
    else:
        errors += local_path(profile.localhost_profile, where)
    return errors


def _app_armor(profile: AppArmorProfile | None, path: str) -> list[FieldError]:
    if profile is None:
        return []
    name, where = profile.localhost_profile, f"{path}.localhostProfile"
    if not profile.type:
        return [required(f"{path}.type", "type is required when appArmorProfile is set")]
    if profile.type not in _PROFILES:
        return [unsupported(f"{path}.type", profile.type, _PROFILES)]
    if profile.type != "Localhost":
        return [invalid(where, name, "can only be set when AppArmor type is Localhost")] if name else []
    errors = []
    if name != name.strip():
        errors.append(invalid(where, name, "must not be padded with whitespace"))
    elif not name:
        errors.append(required(where, "must be set when AppArmor type is Localhost"))
    return errors + ([too_long(where, _LONGEST_PROFILE)] if len(name.encode()) > _LONGEST_PROFILE else [])


def validate_security(context: SecurityContext | None, path: str, *, host_users: bool) -> list[FieldError]:
    if context is None:
        return []
    errors = _identity(context.run_as_user, f"{path}.runAsUser") + _identity(context.run_as_group, f"{path}.runAsGroup")
    if context.proc_mount and context.proc_mount not in _PROC_MOUNTS:
        errors.append(unsupported(f"{path}.procMount", context.proc_mount, _PROC_MOUNTS))
    if context.proc_mount == "Unmasked" and host_users:
        text = "`hostUsers` must be false to use `Unmasked`"
        errors.append(invalid(f"{path}.procMount", context.proc_mount, text))
    errors += _seccomp(context.seccomp_profile, f"{path}.seccompProfile")
    if context.allow_privilege_escalation is False:
        if context.privileged:
            errors.append(invalid(path, _go(context), _PRIVILEGED))
        added = context.capabilities.add if context.capabilities else ()
        errors += [invalid(path, _go(context), _ADMIN) for name in added if name == "CAP_SYS_ADMIN"]
    errors += validate_windows_options(context.windows_options, f"{path}.windowsOptions")
    return errors + _app_armor(context.app_armor_profile, f"{path}.appArmorProfile")


def _go(context: SecurityContext) -> dict[str, Any]:
    """The whole context under the names of the API server's own fields, as its message quotes it."""
    capabilities, linux, windows = context.capabilities, context.se_linux_options, context.windows_options
    seccomp, armor = context.seccomp_profile, context.app_armor_profile
    return {
        "Capabilities": {"Add": capabilities.add or None, "Drop": capabilities.drop or None} if capabilities else None,
        "Privileged": context.privileged,
        "SELinuxOptions": (
            {"User": linux.user, "Role": linux.role, "Type": linux.type, "Level": linux.level} if linux else None
        ),
        "WindowsOptions": {
            "GMSACredentialSpecName": windows.gmsa_credential_spec_name or None,
            "GMSACredentialSpec": windows.gmsa_credential_spec or None,
            "RunAsUserName": windows.run_as_user_name or None,
            "HostProcess": windows.host_process,
        }
        if windows
        else None,
        "RunAsUser": context.run_as_user,
        "RunAsGroup": context.run_as_group,
        "RunAsNonRoot": context.run_as_non_root,
        "ReadOnlyRootFilesystem": context.read_only_root_filesystem,
        "AllowPrivilegeEscalation": context.allow_privilege_escalation,
        "ProcMount": context.proc_mount or None,
        "SeccompProfile": _profile(seccomp) if seccomp else None,
        "AppArmorProfile": _profile(armor) if armor else None,
    }


def _profile(profile: SeccompProfile | AppArmorProfile) -> dict[str, Any]:
    return {"Type": profile.type, "LocalhostProfile": profile.localhost_profile or None}
