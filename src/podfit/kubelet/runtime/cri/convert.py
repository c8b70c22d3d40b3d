"""Between our types and CRI's messages; the only place that knows both."""

from typing import Any

from podfit.kubelet.runtime.cri import runtime_v1_pb2 as pb
from podfit.kubelet.runtime.types import (
    Container,
    ContainerConfig,
    ContainerEvent,
    ContainerState,
    ContainerStats,
    ContainerStatus,
    EventKind,
    Image,
    LinuxResources,
    Mount,
    Sandbox,
    SandboxConfig,
    SandboxState,
    SandboxStats,
    SandboxStatus,
    SecurityContext,
    WindowsResources,
)

_STATES = {
    pb.CONTAINER_CREATED: ContainerState.CREATED,
    pb.CONTAINER_RUNNING: ContainerState.RUNNING,
    pb.CONTAINER_EXITED: ContainerState.EXITED,
}
_EVENTS = {
    pb.CONTAINER_CREATED_EVENT: EventKind.CREATED,
    pb.CONTAINER_STARTED_EVENT: EventKind.STARTED,
    pb.CONTAINER_STOPPED_EVENT: EventKind.STOPPED,
    pb.CONTAINER_DELETED_EVENT: EventKind.DELETED,
}
_PROPAGATION = {
    "private": pb.PROPAGATION_PRIVATE,
    "host-to-container": pb.PROPAGATION_HOST_TO_CONTAINER,
    "bidirectional": pb.PROPAGATION_BIDIRECTIONAL,
}
_PROTOCOLS = {"TCP": pb.TCP, "UDP": pb.UDP, "SCTP": pb.SCTP}


def resources_out(given: LinuxResources | None) -> Any:
    if given is None:
        return None
    return pb.LinuxContainerResources(
        cpu_period=given.cpu_period,
        cpu_quota=given.cpu_quota,
        cpu_shares=given.cpu_shares,
        memory_limit_in_bytes=given.memory_limit,
        oom_score_adj=given.oom_score_adj,
        cpuset_cpus=given.cpuset_cpus,
        cpuset_mems=given.cpuset_mems,
        unified=dict(given.unified),
        memory_swap_limit_in_bytes=given.swap_limit,
        hugepage_limits=[pb.HugepageLimit(page_size=size, limit=limit) for size, limit in given.hugepages.items()],
    )


def resources_in(message: Any) -> LinuxResources | None:
    """None when the runtime says nothing of resources, as containerd before 1.6.9."""
    if not message.HasField("linux"):
        return None
    linux = message.linux
    return LinuxResources(
        cpu_shares=linux.cpu_shares,
        cpu_quota=linux.cpu_quota,
        cpu_period=linux.cpu_period,
        memory_limit=linux.memory_limit_in_bytes,
        oom_score_adj=linux.oom_score_adj,
        cpuset_cpus=linux.cpuset_cpus,
        cpuset_mems=linux.cpuset_mems,
        unified=dict(linux.unified),
        swap_limit=linux.memory_swap_limit_in_bytes,
        hugepages={each.page_size: each.limit for each in linux.hugepage_limits},
    )


def windows_out(given: WindowsResources) -> Any:
    return pb.WindowsContainerResources(
        cpu_shares=given.cpu_shares,
        cpu_count=given.cpu_count,
        cpu_maximum=given.cpu_maximum,
        memory_limit_in_bytes=given.memory_limit,
        rootfs_size_in_bytes=given.rootfs_size,
    )


def windows_in(message: Any) -> WindowsResources | None:
    """None unless the container is a Windows container."""
    if not message.HasField("windows"):
        return None
    windows = message.windows
    return WindowsResources(
        cpu_shares=windows.cpu_shares,
        cpu_count=windows.cpu_count,
        cpu_maximum=windows.cpu_maximum,
        memory_limit=windows.memory_limit_in_bytes,
        rootfs_size=windows.rootfs_size_in_bytes,
    )


def update_request(container_id: str, resources: LinuxResources | WindowsResources) -> Any:
    """With the one half of the message that is meant."""
    if isinstance(resources, WindowsResources):
        return pb.UpdateContainerResourcesRequest(container_id=container_id, windows=windows_out(resources))
    return pb.UpdateContainerResourcesRequest(container_id=container_id, linux=resources_out(resources))


def sandbox_config(config: SandboxConfig) -> Any:
    message = pb.PodSandboxConfig(
        metadata=pb.PodSandboxMetadata(
            name=config.name, uid=config.uid, namespace=config.namespace, attempt=config.attempt
        ),
        hostname=config.hostname,
        log_directory=config.log_directory,
        labels=dict(config.labels),
        annotations=dict(config.annotations),
        port_mappings=[
            pb.PortMapping(
                protocol=_PROTOCOLS[each.protocol],
                container_port=each.container_port,
                host_port=each.host_port,
                host_ip=each.host_ip,
            )
            for each in config.port_mappings
        ],
        linux=pb.LinuxPodSandboxConfig(
            cgroup_parent=config.cgroup_parent,
            sysctls=dict(config.sysctls),
            security_context=_sandbox_security(config),
            overhead=resources_out(config.overhead),
            resources=resources_out(config.resources),
        ),
    )
    if config.dns is not None:
        dns = config.dns
        message.dns_config.CopyFrom(pb.DNSConfig(servers=dns.servers, searches=dns.searches, options=dns.options))
    return message


def _namespaces(*, network: bool, pid: bool, ipc: bool, shared: bool) -> Any:
    """Whose namespaces are used: the node's, the pod's, or the container's own (processes, unless shared)."""
    return pb.NamespaceOption(
        network=pb.NODE if network else pb.POD,
        ipc=pb.NODE if ipc else pb.POD,
        pid=pb.NODE if pid else pb.POD if shared else pb.CONTAINER,
    )


def _sandbox_security(config: SandboxConfig) -> Any:
    message = pb.LinuxSandboxSecurityContext(
        namespace_options=_namespaces(
            network=config.host_network, pid=config.host_pid, ipc=config.host_ipc, shared=config.share_process_namespace
        ),
        supplemental_groups=config.supplemental_groups,
    )
    if config.run_as_user is not None:
        message.run_as_user.value = config.run_as_user
    if config.run_as_group is not None:
        message.run_as_group.value = config.run_as_group
    return message


def container_config(config: ContainerConfig, sandbox: SandboxConfig, security: SecurityContext) -> Any:
    return pb.ContainerConfig(
        metadata=pb.ContainerMetadata(name=config.name, attempt=config.attempt),
        image=pb.ImageSpec(image=config.image),
        command=config.command,
        args=config.args,
        working_dir=config.working_dir,
        envs=[pb.KeyValue(key=key, value=value.encode()) for key, value in config.envs],
        mounts=[_mount(each) for each in config.mounts],
        labels=dict(config.labels),
        annotations=dict(config.annotations),
        log_path=config.log_path,
        stdin=config.stdin,
        stdin_once=config.stdin_once,
        tty=config.tty,
        stop_signal=_signal(config.stop_signal),
        linux=pb.LinuxContainerConfig(
            resources=resources_out(config.resources), security_context=_security(security, sandbox)
        ),
    )


def _signal(name: str) -> str:
    """SIGRTMIN+1 is SIGRTMINPLUS1 in CRI."""
    return name.replace("+", "PLUS").replace("-", "MINUS") or "RUNTIME_DEFAULT"


def _mount(mount: Mount) -> Any:
    return pb.Mount(
        container_path=mount.container_path,
        host_path=mount.host_path,
        readonly=mount.readonly,
        propagation=_PROPAGATION[mount.propagation],
    )


def _security(context: SecurityContext, sandbox: SandboxConfig) -> Any:
    message = pb.LinuxContainerSecurityContext(
        privileged=context.privileged,
        readonly_rootfs=context.readonly_rootfs,
        no_new_privs=context.no_new_privileges,
        supplemental_groups=context.supplemental_groups,
        capabilities=pb.Capability(
            add_capabilities=context.add_capabilities, drop_capabilities=context.drop_capabilities
        ),
        namespace_options=_namespaces(
            network=sandbox.host_network,
            pid=sandbox.host_pid,
            ipc=sandbox.host_ipc,
            shared=sandbox.share_process_namespace,
        ),
    )
    if context.target_id and not (sandbox.host_pid or sandbox.share_process_namespace):
        message.namespace_options.pid = pb.TARGET
        message.namespace_options.target_id = context.target_id
    if context.run_as_user is not None:
        message.run_as_user.value = context.run_as_user
    if context.run_as_group is not None:
        message.run_as_group.value = context.run_as_group
    return message


def _sandbox_fields(message: Any) -> dict[str, Any]:
    meta = message.metadata
    return {
        "id": message.id,
        "name": meta.name,
        "namespace": meta.namespace,
        "uid": meta.uid,
        "attempt": meta.attempt,
        "state": SandboxState.READY if message.state == pb.SANDBOX_READY else SandboxState.NOT_READY,
        "created_at": message.created_at,
        "labels": dict(message.labels),
        "annotations": dict(message.annotations),
    }


def sandbox(message: Any) -> Sandbox:
    return Sandbox(**_sandbox_fields(message))


def sandbox_status(message: Any) -> SandboxStatus:
    network = message.network
    ips = tuple(filter(None, (network.ip, *(each.ip for each in network.additional_ips))))
    shares_host = message.linux.namespaces.options.network == pb.NODE
    return SandboxStatus(**_sandbox_fields(message), ips=ips, host_network=shares_host)


def container(message: Any) -> Container:
    return Container(
        id=message.id,
        sandbox_id=message.pod_sandbox_id,
        name=message.metadata.name,
        attempt=message.metadata.attempt,
        image=message.image.user_specified_image or message.image.image,
        image_id=message.image_id or message.image_ref,
        state=_STATES.get(message.state, ContainerState.UNKNOWN),
        created_at=message.created_at,
        labels=dict(message.labels),
        annotations=dict(message.annotations),
    )


def container_status(message: Any) -> ContainerStatus:
    return ContainerStatus(
        id=message.id,
        name=message.metadata.name,
        attempt=message.metadata.attempt,
        state=_STATES.get(message.state, ContainerState.UNKNOWN),
        created_at=message.created_at,
        started_at=message.started_at,
        finished_at=message.finished_at,
        exit_code=message.exit_code,
        reason=message.reason,
        message=message.message,
        image=message.image.user_specified_image or message.image.image,
        image_id=message.image_id or message.image_ref,
        image_ref=message.image_ref,
        log_path=message.log_path,
        resources=resources_in(message.resources),
        windows=windows_in(message.resources),
        stop_signal=pb.Signal.Name(message.stop_signal) if message.stop_signal else "",
        labels=dict(message.labels),
        annotations=dict(message.annotations),
    )


def _figure(message: Any, name: str) -> int | None:
    """A wrapped number; None where the runtime has none."""
    return int(getattr(message, name).value) if message.HasField(name) else None


def _usage(message: Any) -> dict[str, Any]:
    return {
        "timestamp": message.cpu.timestamp or message.memory.timestamp,
        "cpu_usage": _figure(message.cpu, "usage_core_nano_seconds"),
        "memory_usage": _figure(message.memory, "usage_bytes"),
        "memory_working_set": _figure(message.memory, "working_set_bytes"),
        "memory_rss": _figure(message.memory, "rss_bytes"),
    }


def container_stats(message: Any) -> ContainerStats:
    attributes = message.attributes
    name, labels = attributes.metadata.name, dict(attributes.labels)
    return ContainerStats(id=attributes.id, name=name, labels=labels, **_usage(message))


def sandbox_stats(message: Any) -> SandboxStats:
    inside = tuple(container_stats(each) for each in message.linux.containers)
    return SandboxStats(id=message.attributes.id, containers=inside, **_usage(message.linux))


def image(message: Any) -> Image:
    return Image(
        id=message.id,
        tags=tuple(message.repo_tags),
        digests=tuple(message.repo_digests),
        size=message.size,
        uid=message.uid.value if message.HasField("uid") else None,
        username=message.username,
        pinned=message.pinned,
    )


def event(message: Any) -> ContainerEvent | None:
    kind = _EVENTS.get(message.container_event_type)
    return ContainerEvent(container_id=message.container_id, kind=kind) if kind else None
