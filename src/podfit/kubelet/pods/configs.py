"""A pod's sandbox and containers in the runtime's words.

Every sandbox is on the host's network: podfit has no pod network yet, so a pod's address is its node's and two pods of
a node cannot listen on one port. The hostname is left to the runtime, which refuses one without an own UTS namespace.
"""

from pathlib import Path

from msgspec.structs import replace

from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.security import PodSecurityContext
from podfit.api.core.v1.pods.security import SecurityContext as Wanted
from podfit.api.core.v1.pods.types import Pod
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.types import ContainerConfig, Image, LinuxResources, Mount, SandboxConfig, SecurityContext
from podfit.kubelet.sources.environment import Words

DEFAULT_MESSAGE_PATH = "/dev/termination-log"


def log_directory(root: Path, pod: labels.PodRef) -> Path:
    """As upstream below /var/log/pods: `<namespace>_<name>_<uid>`."""
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
) -> SandboxConfig:
    security = pod.spec.security_context or PodSecurityContext()
    return SandboxConfig(
        name=pod.metadata.name,
        namespace=pod.metadata.namespace,
        uid=pod.metadata.uid,
        attempt=attempt,
        log_directory=str(logs),
        cgroup_parent=cgroup_parent,
        host_network=True,
        host_pid=pod.spec.host_pid,
        host_ipc=pod.spec.host_ipc,
        share_process_namespace=bool(pod.spec.share_process_namespace),
        run_as_user=security.run_as_user,
        run_as_group=security.run_as_group,
        supplemental_groups=_groups(security),
        sysctls={sysctl.name: sysctl.value for sysctl in security.sysctls},
        labels=labels.pod_labels(pod, node),
        annotations=labels.pod_annotations(pod),
        resources=resources,
        overhead=overhead,
    )


def container_config(
    pod: Pod,
    container: Container,
    *,
    image: str,
    attempt: int,
    words: Words,
    mounts: tuple[Mount, ...],
    message_file: Path,
    resources: LinuxResources,
    target_id: str = "",
) -> ContainerConfig:
    """`message_file` is on the host and is mounted where the container writes its termination message. `target_id` is
    the container whose processes it sees.
    """
    message_mount = Mount(
        container_path=container.termination_message_path or DEFAULT_MESSAGE_PATH, host_path=str(message_file)
    )
    return ContainerConfig(
        name=container.name,
        image=image,
        attempt=attempt,
        command=words.command,
        args=words.args,
        working_dir=container.working_dir,
        envs=tuple(words.environment.items()),
        mounts=(*mounts, message_mount),
        labels=labels.container_labels(pod, container),
        annotations=labels.container_annotations(pod, container, attempt=attempt, message_file=str(message_file)),
        log_path=f"{container.name}/{attempt}.log",
        stdin=container.stdin,
        stdin_once=container.stdin_once,
        tty=container.tty,
        stop_signal=container.lifecycle.stop_signal if container.lifecycle is not None else "",
        resources=resources,
        security=replace(security_context(pod, container), target_id=target_id),
    )


def security_context(pod: Pod, container: Container) -> SecurityContext:
    """The container's word over the pod's, the image's where both are silent."""
    own, shared = container.security_context or Wanted(), pod.spec.security_context or PodSecurityContext()
    capabilities = own.capabilities
    return SecurityContext(
        privileged=bool(own.privileged),
        run_as_user=own.run_as_user if own.run_as_user is not None else shared.run_as_user,
        run_as_group=own.run_as_group if own.run_as_group is not None else shared.run_as_group,
        supplemental_groups=_groups(shared),
        readonly_rootfs=bool(own.read_only_root_filesystem),
        no_new_privileges=own.allow_privilege_escalation is False,
        add_capabilities=capabilities.add if capabilities else (),
        drop_capabilities=capabilities.drop if capabilities else (),
    )


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
