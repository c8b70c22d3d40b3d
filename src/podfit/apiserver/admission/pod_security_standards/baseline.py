"""The checks of the baseline level. Each gives None for a pod that it allows."""

from collections.abc import Collection, Iterable, Iterator

from podfit.api.core.v1.pods.probes import LifecycleHandler, Probe
from podfit.api.core.v1.pods.security import SeccompProfile, SELinuxOptions
from podfit.api.core.v1.pods.types import PodSpec
from podfit.api.core.v1.pods.validation.deprecations import APP_ARMOR, SECCOMP_CONTAINER, SECCOMP_POD
from podfit.api.meta.v1.types import ObjectMeta
from podfit.apiserver.admission.pod_security_standards.findings import (
    AnyContainer,
    Check,
    Violation,
    comma_list,
    containers_of,
    contexts_of,
    in_user_namespace,
    named,
    plural,
    pod_context_of,
    quoted,
    setters,
    uses,
)
from podfit.core.fields import go_value

DEFAULT_CAPABILITIES = frozenset(
    (
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    )
)
SAFE_PROFILES = ("RuntimeDefault", "Localhost")  # of AppArmor and of seccomp

SELINUX_TYPES = frozenset(("", "container_t", "container_init_t", "container_kvm_t"))
SELINUX_TYPES_31 = SELINUX_TYPES | {"container_engine_t"}

SYSCTLS = frozenset(
    (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    )
)
SYSCTLS_27 = SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
SYSCTLS_29 = SYSCTLS_27 | {
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
}
SYSCTLS_32 = SYSCTLS_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}


def host_namespaces(_: ObjectMeta, spec: PodSpec) -> Violation | None:
    shared = {"hostNetwork": spec.host_network, "hostPID": spec.host_pid, "hostIPC": spec.host_ipc}
    texts = [f"{name}=true" for name, wanted in shared.items() if wanted]
    return Violation("host namespaces", ", ".join(texts)) if texts else None


def host_path_volumes(_: ObjectMeta, spec: PodSpec) -> Violation | None:
    names = [volume.name for volume in spec.volumes if volume.host_path is not None]
    return Violation("hostPath volumes", named("volume", names)) if names else None


def host_ports(_: ObjectMeta, spec: PodSpec) -> Violation | None:
    names, ports = [], set()
    for container in containers_of(spec):
        wanted = {str(port.host_port) for port in container.ports if port.host_port}
        if wanted:
            names.append(container.name)
            ports |= wanted
    if not names:
        return None
    text = f"{named('container', names)} {uses(names)} {plural('hostPort', ports)} {comma_list(sorted(ports))}"
    return Violation("hostPort", text)


def privileged(_: ObjectMeta, spec: PodSpec) -> Violation | None:
    names = [name for name, context in contexts_of(spec) if context.privileged]
    if not names:
        return None
    return Violation("privileged", f"{named('container', names)} must not set securityContext.privileged=true")


def capabilities(_: ObjectMeta, spec: PodSpec) -> Violation | None:
    names, added = [], set()
    for name, context in contexts_of(spec):
        other = set(context.capabilities.add) - DEFAULT_CAPABILITIES if context.capabilities else set()
        if other:
            names.append(name)
            added |= other
    if not names:
        return None
    text = f"{named('container', names)} must not include {quoted(sorted(added))} in securityContext.capabilities.add"
    return Violation("non-default capabilities", text)


def host_probes(_: ObjectMeta, spec: PodSpec) -> Violation | None:
    hosts = {container.name: set(_hosts(container)) for container in containers_of(spec)}
    names, used = sorted(name for name in hosts if hosts[name]), sorted(set().union(*hosts.values()))
    if not names:
        return None
    text = f"{named('container', names)} {uses(names)} {plural('probe or lifecycle host', used)} {quoted(used)}"
    return Violation("probe or lifecycle host", text)


def _hosts(container: AnyContainer) -> Iterator[str]:
    lifecycle = container.lifecycle
    hooks = (lifecycle.post_start, lifecycle.pre_stop) if lifecycle else ()
    probes = (container.liveness_probe, container.readiness_probe, container.startup_probe)
    handlers: tuple[Probe | LifecycleHandler | None, ...] = (*probes, *hooks)
    for handler in handlers:
        for action in (handler.http_get, handler.tcp_socket) if handler else ():
            if action is not None and action.host:
                yield action.host


def app_armor(meta: ObjectMeta, spec: PodSpec) -> Violation | None:
    own = pod_context_of(spec).app_armor_profile
    pod = own is not None and own.type not in SAFE_PROFILES
    values, names = {own.type} if own is not None and pod else set(), []
    for name, context in contexts_of(spec):
        profile = context.app_armor_profile
        if profile is not None and profile.type not in SAFE_PROFILES:
            names.append(name)
            values.add(profile.type)
    annotations = sorted(
        f"{key}={go_value(value)}"
        for key, value in meta.annotations.items()
        if key.startswith(APP_ARMOR) and not _safe_app_armor(value)
    )
    who = [text for text in (setters(pod=pod, containers=names),) if text]
    who += [plural("annotation", annotations)] if annotations else []
    if not who:
        return None
    bad = [*sorted(values), *annotations]
    text = f"{' and '.join(who)} must not set AppArmor profile type to {quoted(bad)}"
    return Violation(plural("forbidden AppArmor profile", bad), text)


def _safe_app_armor(annotation: str) -> bool:
    return annotation in ("", "runtime/default") or annotation.startswith("localhost/")


def selinux(allowed: Collection[str]) -> Check:
    def check(_: ObjectMeta, spec: PodSpec) -> Violation | None:
        own = pod_context_of(spec).se_linux_options
        pod = _is_bad(own, allowed)
        found = [
            (name, context.se_linux_options)
            for name, context in contexts_of(spec)
            if _is_bad(context.se_linux_options, allowed)
        ]
        if not pod and not found:
            return None
        bad = [options for options in (own if pod else None, *(options for _, options in found)) if options]
        types = sorted({options.type for options in bad} - set(allowed))
        texts = [f"{plural('type', types)} {quoted(types)}"] if types else []
        texts += ["user may not be set"] if any(options.user for options in bad) else []
        texts += ["role may not be set"] if any(options.role for options in bad) else []
        who = setters(pod=pod, containers=[name for name, _ in found])
        return Violation("seLinuxOptions", f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(texts)}")

    return check


def _is_bad(options: SELinuxOptions | None, allowed: Collection[str]) -> bool:
    return options is not None and bool(options.type not in allowed or options.user or options.role)


def proc_mount(_: ObjectMeta, spec: PodSpec) -> Violation | None:
    found = [
        (name, context.proc_mount) for name, context in contexts_of(spec) if context.proc_mount not in ("", "Default")
    ]
    if not found:
        return None
    who, values = named("container", [name for name, _ in found]), sorted({value for _, value in found})
    return Violation("procMount", f"{who} must not set securityContext.procMount to {quoted(values)}")


def proc_mount_35(meta: ObjectMeta, spec: PodSpec) -> Violation | None:
    """In a user namespace any."""
    return None if in_user_namespace(spec) else proc_mount(meta, spec)


def seccomp_annotations(meta: ObjectMeta, spec: PodSpec) -> Violation | None:
    """What counted before there was a field."""
    keys = [SECCOMP_POD, *(SECCOMP_CONTAINER + container.name for container in containers_of(spec))]
    given = {key: meta.annotations[key] for key in keys if key in meta.annotations}
    bad = sorted(f"{key}={go_value(value)}" for key, value in given.items() if not _safe_seccomp(value))
    return Violation("seccompProfile", f"forbidden {plural('annotation', bad)} {comma_list(bad)}") if bad else None


def _safe_seccomp(annotation: str) -> bool:
    return annotation in ("runtime/default", "docker/default") or annotation.startswith("localhost/")


def seccomp_19(_: ObjectMeta, spec: PodSpec) -> Violation | None:
    return bad_seccomp(spec)


def bad_seccomp(spec: PodSpec) -> Violation | None:
    """Profiles that are set, and to something else than a safe one."""
    own = unsafe_type(pod_context_of(spec).seccomp_profile)
    found = [
        (name, kind)
        for name, context in contexts_of(spec)
        if (kind := unsafe_type(context.seccomp_profile)) is not None
    ]
    who = setters(pod=own is not None, containers=[name for name, _ in found])
    if not who:
        return None
    values = sorted({kind for _, kind in found} | ({own} if own is not None else set()))
    return Violation("seccompProfile", f"{who} must not set securityContext.seccompProfile.type to {quoted(values)}")


def unsafe_type(profile: SeccompProfile | None) -> str | None:
    return None if profile is None or profile.type in SAFE_PROFILES else profile.type


def sysctls(allowed: Collection[str]) -> Check:
    def check(_: ObjectMeta, spec: PodSpec) -> Violation | None:
        names = _others((sysctl.name for sysctl in pod_context_of(spec).sysctls), allowed)
        return Violation("forbidden sysctls", comma_list(names)) if names else None

    return check


def _others(names: Iterable[str], allowed: Collection[str]) -> list[str]:
    return [name for name in names if name not in allowed]


def windows_host_process(_: ObjectMeta, spec: PodSpec) -> Violation | None:
    own = pod_context_of(spec).windows_options
    names = [
        name
        for name, context in contexts_of(spec)
        if context.windows_options is not None and context.windows_options.host_process
    ]
    who = setters(pod=own is not None and bool(own.host_process), containers=names)
    if not who:
        return None
    return Violation("hostProcess", f"{who} must not set securityContext.windowsOptions.hostProcess=true")
