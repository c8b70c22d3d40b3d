"""Conversion from our types to CRI's messages."""

from podfit.decide.lifecycle.facts import LinuxResources, WindowsResources
from podfit.kubelet.runtime.configs import ContainerConfig, Mount, SandboxConfig, SecurityContext
from podfit.kubelet.runtime.cri import runtime_v1_pb2 as pb

_PROPAGATION = {
    "private": pb.PROPAGATION_PRIVATE,
    "host-to-container": pb.PROPAGATION_HOST_TO_CONTAINER,
    "bidirectional": pb.PROPAGATION_BIDIRECTIONAL,
}
_PROFILES = {
    "RuntimeDefault": pb.SecurityProfile.RuntimeDefault,
    "Unconfined": pb.SecurityProfile.Unconfined,
    "Localhost": pb.SecurityProfile.Localhost,
}
_PROTOCOLS = {"TCP": pb.TCP, "UDP": pb.UDP, "SCTP": pb.SCTP}


def resources(given: LinuxResources) -> pb.LinuxContainerResources:
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


def _resources(given: LinuxResources | None) -> pb.LinuxContainerResources | None:
    return None if given is None else resources(given)


def _windows(given: WindowsResources) -> pb.WindowsContainerResources:
    return pb.WindowsContainerResources(
        cpu_shares=given.cpu_shares,
        cpu_count=given.cpu_count,
        cpu_maximum=given.cpu_maximum,
        memory_limit_in_bytes=given.memory_limit,
        rootfs_size_in_bytes=given.rootfs_size,
    )


def update_request(container_id: str, given: LinuxResources | WindowsResources) -> pb.UpdateContainerResourcesRequest:
    """The message with the one half that is meant."""
    if isinstance(given, WindowsResources):
        return pb.UpdateContainerResourcesRequest(container_id=container_id, windows=_windows(given))
    return pb.UpdateContainerResourcesRequest(container_id=container_id, linux=resources(given))


def sandbox_config(config: SandboxConfig) -> pb.PodSandboxConfig:
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
                protocol=_PROTOCOLS[mapping.protocol],
                container_port=mapping.container_port,
                host_port=mapping.host_port,
                host_ip=mapping.host_ip,
            )
            for mapping in config.port_mappings
        ],
        linux=pb.LinuxPodSandboxConfig(
            cgroup_parent=config.cgroup_parent,
            sysctls=dict(config.sysctls),
            security_context=_sandbox_security(config),
            overhead=_resources(config.overhead),
            resources=_resources(config.resources),
        ),
    )
    if config.dns is not None:
        dns = config.dns
        message.dns_config.CopyFrom(pb.DNSConfig(servers=dns.servers, searches=dns.searches, options=dns.options))
    return message


def _namespaces(*, network: bool, pid: bool, ipc: bool, shared: bool) -> pb.NamespaceOption:
    """Whose namespaces are used: the node's, the pod's, or the container's own (processes, unless shared)."""
    return pb.NamespaceOption(
        network=pb.NODE if network else pb.POD,
        ipc=pb.NODE if ipc else pb.POD,
        pid=pb.NODE if pid else pb.POD if shared else pb.CONTAINER,
    )


def _sandbox_security(config: SandboxConfig) -> pb.LinuxSandboxSecurityContext:
    message = pb.LinuxSandboxSecurityContext(
        namespace_options=_namespaces(
            network=config.host_network, pid=config.host_pid, ipc=config.host_ipc, shared=config.share_process_namespace
        ),
        supplemental_groups=config.supplemental_groups,
        privileged=config.privileged,
    )
    if config.run_as_user is not None:
        message.run_as_user.value = config.run_as_user
    if config.run_as_group is not None:
        message.run_as_group.value = config.run_as_group
    return message


def container_config(config: ContainerConfig, sandbox: SandboxConfig, security: SecurityContext) -> pb.ContainerConfig:
    return pb.ContainerConfig(
        metadata=pb.ContainerMetadata(name=config.name, attempt=config.attempt),
        image=pb.ImageSpec(image=config.image),
        command=config.command,
        args=config.args,
        working_dir=config.working_dir,
        envs=[pb.KeyValue(key=key, value=value.encode()) for key, value in config.envs],
        mounts=[_mount(mount) for mount in config.mounts],
        labels=dict(config.labels),
        annotations=dict(config.annotations),
        log_path=config.log_path,
        stdin=config.stdin,
        stdin_once=config.stdin_once,
        tty=config.tty,
        stop_signal=_signal(config.stop_signal),
        linux=pb.LinuxContainerConfig(
            resources=_resources(config.resources), security_context=_security(security, sandbox)
        ),
    )


def _signal(name: str) -> str:
    """SIGRTMIN+1 is SIGRTMINPLUS1 in CRI."""
    return name.replace("+", "PLUS").replace("-", "MINUS") or "RUNTIME_DEFAULT"


def _mount(mount: Mount) -> pb.Mount:
    return pb.Mount(
        container_path=mount.container_path,
        host_path=mount.host_path,
        image=pb.ImageSpec(image=mount.image) if mount.image else None,
        image_sub_path=mount.image_sub_path,
        readonly=mount.readonly,
        recursive_read_only=mount.recursive_read_only,
        propagation=_PROPAGATION[mount.propagation],
    )


def _security(context: SecurityContext, sandbox: SandboxConfig) -> pb.LinuxContainerSecurityContext:
    message = pb.LinuxContainerSecurityContext(
        privileged=context.privileged,
        readonly_rootfs=context.readonly_rootfs,
        no_new_privs=context.no_new_privileges,
        supplemental_groups=context.supplemental_groups,
        masked_paths=context.masked_paths,
        readonly_paths=context.readonly_paths,
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
    if (profile := context.seccomp) is not None:
        confined = pb.SecurityProfile(profile_type=_PROFILES[profile.kind], localhost_ref=profile.file)
        message.seccomp.CopyFrom(confined)
    if (label := context.selinux) is not None:
        options = pb.SELinuxOption(user=label.user, role=label.role, type=label.type, level=label.level)
        message.selinux_options.CopyFrom(options)
    if context.target_id and not (sandbox.host_pid or sandbox.share_process_namespace):
        message.namespace_options.pid = pb.TARGET
        message.namespace_options.target_id = context.target_id
    if context.run_as_user is not None:
        message.run_as_user.value = context.run_as_user
    if context.run_as_group is not None:
        message.run_as_group.value = context.run_as_group
    return message
