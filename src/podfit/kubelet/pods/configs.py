"""Translates a pod into the runtime's sandbox and container configurations.

A sandbox on the host's network has no UTS namespace of its own, and the runtime refuses a hostname then: what the
kernel tells is the node's name, while HOSTNAME and /etc/hostname are the pod's.
"""

from pathlib import Path

from msgspec.structs import replace

from podfit.api.core.v1.pods.aggregate import is_sidecar
from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.security import PodSecurityContext, SELinuxOptions
from podfit.api.core.v1.pods.security import SecurityContext as Wanted
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.owners import controller_named
from podfit.decide.lifecycle.facts import LinuxResources
from podfit.decide.pod.ephemeral_containers import every_container
from podfit.decide.pod.naming import hostname_of
from podfit.decide.pod.resolver import DOMAIN
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.configs import (
    ContainerConfig,
    DNSConfig,
    Mount,
    SandboxConfig,
    SecurityContext,
    SecurityProfile,
    SELinux,
)
from podfit.kubelet.runtime.types import Image
from podfit.kubelet.sources.environment import ExpandedCommand

DEFAULT_MESSAGE_PATH = "/dev/termination-log"
MASKED = (
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
)
READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
"""What is hidden of /proc and /sys, and may not be written there, unless procMount is Unmasked: upstream's lists."""


def log_directory(root: Path, pod: labels.PodRef) -> Path:
    """The folder that upstream has below /var/log/pods: `<namespace>_<name>_<uid>`."""
    return root / f"{pod.namespace}_{pod.name}_{pod.uid}"


def sandbox_config(
    pod: Pod,
    *,
    node: str,
    attempt: int,
    logs: Path,
    cgroup_parent: str,
    resources: LinuxResources | None,
    overhead: LinuxResources | None,
    dns: DNSConfig | None,
    host_network: bool,
    domain: str = DOMAIN,
) -> SandboxConfig:
    """`host_network`: whatever the pod says, it is on its node's network."""
    security = pod.spec.security_context or PodSecurityContext()
    return SandboxConfig(
        name=pod.metadata.name,
        namespace=pod.metadata.namespace,
        uid=pod.metadata.uid,
        attempt=attempt,
        hostname="" if host_network else hostname_of(pod, domain),
        log_directory=str(logs),
        cgroup_parent=cgroup_parent,
        host_network=host_network,
        host_pid=pod.spec.host_pid,
        host_ipc=pod.spec.host_ipc,
        share_process_namespace=bool(pod.spec.share_process_namespace),
        privileged=has_privileged(pod),
        run_as_user=security.run_as_user,
        run_as_group=security.run_as_group,
        supplemental_groups=_groups(security),
        sysctls={sysctl.name: sysctl.value for sysctl in security.sysctls},
        labels=labels.pod_labels(pod, node),
        annotations=labels.pod_annotations(pod),
        resources=resources,
        overhead=overhead,
        dns=dns,
    )


def has_privileged(pod: Pod) -> bool:
    """Whether any container of the pod, guests of `kubectl debug` too, is privileged."""
    contexts = (container.security_context for container in every_container(pod))
    return any(context is not None and context.privileged for context in contexts)


def container_config(
    pod: Pod,
    container: Container,
    *,
    image: str,
    attempt: int,
    words: ExpandedCommand,
    mounts: tuple[Mount, ...],
    message_file: Path | None,
    resources: LinuxResources,
    profiles: Path,
    target_id: str = "",
) -> ContainerConfig:
    """`message_file` is on the host and is mounted where the container writes its termination message; None where it
    writes none. `target_id` is the container whose processes it sees.
    """
    message_path = container.termination_message_path or DEFAULT_MESSAGE_PATH
    if message_file is not None:
        mounts += (Mount(container_path=message_path, host_path=str(message_file)),)
    return ContainerConfig(
        name=container.name,
        image=image,
        attempt=attempt,
        command=words.command,
        args=words.args,
        working_dir=container.working_dir,
        envs=tuple({**_hostname(pod), **words.environment}.items()),
        mounts=mounts,
        labels=labels.container_labels(pod, container),
        annotations=labels.container_annotations(
            pod,
            container,
            attempt=attempt,
            message_file=str(message_file or ""),
            images={mount.image for mount in mounts if mount.image},
        ),
        log_path=f"{container.name}/{attempt}.log",
        stdin=container.stdin,
        stdin_once=container.stdin_once,
        tty=container.tty,
        stop_signal=container.lifecycle.stop_signal if container.lifecycle is not None else "",
        resources=resources,
        has_end=has_end(pod, container),
        security=replace(security_context(pod, container, profiles), target_id=target_id),
    )


def has_end(pod: Pod, container: Container) -> bool:
    """Whether its program is to end by itself: an init container's, or one of a Job's pod. A sidecar's is not."""
    sidecar = any(is_sidecar(other) and other.name == container.name for other in pod.spec.init_containers)
    initial = any(other.name == container.name for other in pod.spec.init_containers)
    owner = controller_named(pod.metadata)
    return not sidecar and (initial or (owner is not None and (owner.group, owner.kind) == ("batch", "Job")))


def _hostname(pod: Pod) -> dict[str, str]:
    """What runtimes set from a sandbox's hostname; the container's own word counts more."""
    name = hostname_of(pod)
    return {"HOSTNAME": name} if name else {}


def security_context(pod: Pod, container: Container, profiles: Path = Path()) -> SecurityContext:
    """The container's word over the pod's, the image's where both are silent. Below `profiles` are seccomp profiles."""
    own, shared = container.security_context or Wanted(), pod.spec.security_context or PodSecurityContext()
    capabilities, hides = own.capabilities, not own.privileged and own.proc_mount != "Unmasked"
    return SecurityContext(
        privileged=bool(own.privileged),
        run_as_user=own.run_as_user if own.run_as_user is not None else shared.run_as_user,
        run_as_group=own.run_as_group if own.run_as_group is not None else shared.run_as_group,
        supplemental_groups=_groups(shared),
        readonly_rootfs=bool(own.read_only_root_filesystem),
        no_new_privileges=own.allow_privilege_escalation is False,
        add_capabilities=capabilities.add if capabilities else (),
        drop_capabilities=capabilities.drop if capabilities else (),
        seccomp=_seccomp(own, shared, profiles),
        selinux=_selinux(own.se_linux_options or shared.se_linux_options),
        masked_paths=MASKED if hides else (),
        readonly_paths=READ_ONLY if hides else (),
    )


def _seccomp(own: Wanted, shared: PodSecurityContext, profiles: Path) -> SecurityProfile | None:
    """Nothing asked for leaves it to the runtime, which confines nothing then, as upstream's."""
    wanted = own.seccomp_profile or shared.seccomp_profile
    if own.privileged or (wanted is not None and wanted.type == "Unconfined"):
        return SecurityProfile(kind="Unconfined")
    if wanted is None:
        return None
    if wanted.type == "Localhost":
        return SecurityProfile(kind="Localhost", file=str(profiles / wanted.localhost_profile))
    return SecurityProfile(kind="RuntimeDefault")


def _selinux(wanted: SELinuxOptions | None) -> SELinux | None:
    if wanted is None:
        return None
    return SELinux(user=wanted.user, role=wanted.role, type=wanted.type, level=wanted.level)


def confinement_problem(pod: Pod, container: Container) -> str:
    """Why the container cannot be confined as it asks; empty when it can, or does not ask."""
    own, shared = container.security_context or Wanted(), pod.spec.security_context or PodSecurityContext()
    wanted = own.app_armor_profile or shared.app_armor_profile
    if wanted is not None and wanted.type != "Unconfined":
        return "Cannot enforce AppArmor: podfit does not set AppArmor profiles"
    return ""


def root_problem(pod: Pod, container: Container, image: Image | None) -> str:
    """Why runAsNonRoot forbids this container, in upstream's words; empty when it does not."""
    own, shared = container.security_context or Wanted(), pod.spec.security_context or PodSecurityContext()
    if not (own.run_as_non_root if own.run_as_non_root is not None else shared.run_as_non_root):
        return ""
    user = security_context(pod, container).run_as_user
    where = f'(pod: "{labels.ref(pod)}", container: {container.name})'
    if user is not None:
        return f"container's runAsUser breaks non-root policy {where}" if user == 0 else ""
    if image is not None and image.username:
        who = f"non-numeric user ({image.username})"
        return f"container has runAsNonRoot and image has {who}, cannot verify user is non-root {where}"
    if image is None or not image.uid:
        return f"container has runAsNonRoot and image will run as root {where}"
    return ""


def _groups(security: PodSecurityContext) -> tuple[int, ...]:
    extra = () if security.fs_group is None else (security.fs_group,)
    return (*security.supplemental_groups, *extra)
