"""Conversion from CRI's messages to our types."""

from typing import Literal, TypedDict

from podfit.decide.lifecycle.facts import (
    ContainerState,
    ContainerStatus,
    LinuxResources,
    Sandbox,
    SandboxState,
    SandboxStatus,
    WindowsResources,
)
from podfit.kubelet.runtime.cri import runtime_v1_pb2 as pb
from podfit.kubelet.runtime.types import Container, ContainerEvent, ContainerStats, EventKind, Image, SandboxStats

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


def _resources(message: pb.ContainerResources) -> LinuxResources | None:
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
        hugepages={page.page_size: page.limit for page in linux.hugepage_limits},
    )


def _windows(message: pb.ContainerResources) -> WindowsResources | None:
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


class _SandboxFields(TypedDict):
    id: str
    name: str
    namespace: str
    uid: str
    attempt: int
    state: SandboxState
    created_at: int
    labels: dict[str, str]
    annotations: dict[str, str]


def _sandbox_fields(message: pb.PodSandbox | pb.PodSandboxStatus) -> _SandboxFields:
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


def sandbox(message: pb.PodSandbox) -> Sandbox:
    return Sandbox(**_sandbox_fields(message))


def sandbox_status(message: pb.PodSandboxStatus) -> SandboxStatus:
    network = message.network
    ips = tuple(filter(None, (network.ip, *(extra.ip for extra in network.additional_ips))))
    shares_host = message.linux.namespaces.options.network == pb.NODE
    return SandboxStatus(**_sandbox_fields(message), ips=ips, host_network=shares_host)


def container(message: pb.Container) -> Container:
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


def container_status(message: pb.ContainerStatus) -> ContainerStatus:
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
        resources=_resources(message.resources),
        windows=_windows(message.resources),
        stop_signal=pb.Signal.Name(message.stop_signal) if message.stop_signal else "",
        labels=dict(message.labels),
        annotations=dict(message.annotations),
        recursive_read_only=frozenset(mount.container_path for mount in message.mounts if mount.recursive_read_only),
    )


def _cpu(message: pb.CpuUsage) -> int | None:
    """None where the runtime has no figure."""
    return message.usage_core_nano_seconds.value if message.HasField("usage_core_nano_seconds") else None


def _memory(message: pb.MemoryUsage, name: Literal["usage_bytes", "working_set_bytes", "rss_bytes"]) -> int | None:
    """None where the runtime has no figure."""
    figure: pb.UInt64Value = getattr(message, name)
    return figure.value if message.HasField(name) else None


class _Usage(TypedDict):
    timestamp: int
    cpu_usage: int | None
    memory_usage: int | None
    memory_working_set: int | None
    memory_rss: int | None


def _usage(message: pb.ContainerStats | pb.LinuxPodSandboxStats) -> _Usage:
    return {
        "timestamp": message.cpu.timestamp or message.memory.timestamp,
        "cpu_usage": _cpu(message.cpu),
        "memory_usage": _memory(message.memory, "usage_bytes"),
        "memory_working_set": _memory(message.memory, "working_set_bytes"),
        "memory_rss": _memory(message.memory, "rss_bytes"),
    }


def container_stats(message: pb.ContainerStats) -> ContainerStats:
    attributes = message.attributes
    layer = message.writable_layer
    return ContainerStats(
        id=attributes.id,
        name=attributes.metadata.name,
        labels=dict(attributes.labels),
        layer_bytes=layer.used_bytes.value if layer.HasField("used_bytes") else None,
        layer_inodes=layer.inodes_used.value if layer.HasField("inodes_used") else None,
        **_usage(message),
    )


def sandbox_stats(message: pb.PodSandboxStats) -> SandboxStats:
    inside = tuple(container_stats(stats) for stats in message.linux.containers)
    return SandboxStats(id=message.attributes.id, containers=inside, **_usage(message.linux))


def image(message: pb.Image) -> Image:
    return Image(
        id=message.id,
        tags=tuple(message.repo_tags),
        digests=tuple(message.repo_digests),
        size=message.size,
        uid=message.uid.value if message.HasField("uid") else None,
        username=message.username,
        pinned=message.pinned,
    )


def event(message: pb.ContainerEventResponse) -> ContainerEvent | None:
    kind = _EVENTS.get(message.container_event_type)
    return ContainerEvent(container_id=message.container_id, kind=kind) if kind else None
