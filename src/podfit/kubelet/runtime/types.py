"""The runtime's vocabulary in our own frozen types.

They mirror what the kubelet uses of CRI v1 and nothing else, so that only `runtime.cri` knows protobuf and the
simulated runtime needs no gRPC. Times are Unix nanoseconds (0 = never), sizes are bytes, CPU time is nanoseconds.
"""

import enum
from collections.abc import Mapping
from typing import Literal

import msgspec

CgroupDriver = Literal["cgroupfs", "systemd"]
Propagation = Literal["private", "host-to-container", "bidirectional"]
PortProtocol = Literal["TCP", "UDP", "SCTP"]


class SandboxState(enum.Enum):
    READY = "ready"
    NOT_READY = "not ready"


class ContainerState(enum.Enum):
    CREATED = "created"
    RUNNING = "running"
    EXITED = "exited"
    UNKNOWN = "unknown"


class EventKind(enum.Enum):
    CREATED = "created"
    STARTED = "started"
    STOPPED = "stopped"
    DELETED = "deleted"


class LinuxResources(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one container or sandbox. A field that is 0 or empty leaves the present value alone.

    `cpu_quota` and `cpu_period` are microseconds, quota -1 = no limit; `memory_limit` -1 = no limit;
    `hugepages` maps a page size such as `2MB` to bytes; `unified` holds cgroup v2 files by name.
    """

    cpu_shares: int = 0
    cpu_quota: int = 0
    cpu_period: int = 0
    memory_limit: int = 0
    oom_score_adj: int = 0
    cpuset_cpus: str = ""
    cpuset_mems: str = ""
    hugepages: Mapping[str, int] = msgspec.field(default_factory=dict)
    unified: Mapping[str, str] = msgspec.field(default_factory=dict)
    swap_limit: int = 0


class WindowsResources(msgspec.Struct, frozen=True, kw_only=True):
    """The same of a Windows container: `cpu_maximum` in ten-thousandths of the machine, sizes in bytes."""

    cpu_shares: int = 0
    cpu_count: int = 0
    cpu_maximum: int = 0
    memory_limit: int = 0
    rootfs_size: int = 0


class Version(msgspec.Struct, frozen=True, kw_only=True):
    runtime_name: str
    runtime_version: str
    api_version: str


class RuntimeCondition(msgspec.Struct, frozen=True, kw_only=True):
    """`type` is `RuntimeReady` or `NetworkReady`."""

    type: str
    status: bool
    reason: str = ""
    message: str = ""


class RuntimeStatus(msgspec.Struct, frozen=True, kw_only=True):
    conditions: tuple[RuntimeCondition, ...]

    @property
    def runtime_ready(self) -> bool:
        return self._holds("RuntimeReady")

    @property
    def network_ready(self) -> bool:
        """False without a CNI configuration; pods on the host network run all the same."""
        return self._holds("NetworkReady")

    def _holds(self, kind: str) -> bool:
        return any(c.status for c in self.conditions if c.type == kind)


class DNSConfig(msgspec.Struct, frozen=True, kw_only=True):
    servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class PortMapping(msgspec.Struct, frozen=True, kw_only=True):
    container_port: int
    host_port: int = 0
    host_ip: str = ""
    protocol: PortProtocol = "TCP"


class SandboxConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A pod as the runtime sees it; `cgroup_parent` is the pod's cgroup path, e.g. `/kubepods/burstable/pod<uid>`."""

    name: str
    namespace: str
    uid: str
    attempt: int = 0
    hostname: str = ""
    log_directory: str = ""
    cgroup_parent: str = ""
    host_network: bool = False
    host_pid: bool = False
    host_ipc: bool = False
    share_process_namespace: bool = False
    run_as_user: int | None = None
    run_as_group: int | None = None
    supplemental_groups: tuple[int, ...] = ()
    dns: DNSConfig | None = None
    port_mappings: tuple[PortMapping, ...] = ()
    sysctls: Mapping[str, str] = msgspec.field(default_factory=dict)
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    resources: LinuxResources | None = None
    overhead: LinuxResources | None = None


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    container_path: str
    host_path: str
    readonly: bool = False
    propagation: Propagation = "private"


class SecurityProfile(msgspec.Struct, frozen=True, kw_only=True):
    """`file` is the absolute path of a Localhost profile."""

    kind: Literal["RuntimeDefault", "Unconfined", "Localhost"]
    file: str = ""


class SELinux(msgspec.Struct, frozen=True, kw_only=True):
    """A label; ignored where the machine has no SELinux."""

    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class SecurityContext(msgspec.Struct, frozen=True, kw_only=True):
    """None = what the image says. `target_id` is a container whose processes are seen instead of only the own ones."""

    target_id: str = ""
    privileged: bool = False
    run_as_user: int | None = None
    run_as_group: int | None = None
    supplemental_groups: tuple[int, ...] = ()
    readonly_rootfs: bool = False
    no_new_privileges: bool = False
    add_capabilities: tuple[str, ...] = ()
    drop_capabilities: tuple[str, ...] = ()
    seccomp: SecurityProfile | None = None
    selinux: SELinux | None = None
    masked_paths: tuple[str, ...] = ()
    readonly_paths: tuple[str, ...] = ()


class ContainerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`log_path` is relative to the sandbox's `log_directory`; `image` is an image id or a name the runtime has."""

    name: str
    image: str
    attempt: int = 0
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    envs: tuple[tuple[str, str], ...] = ()
    mounts: tuple[Mount, ...] = ()
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    log_path: str = ""
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    resources: LinuxResources | None = None
    security: SecurityContext = SecurityContext()
    stop_signal: str = ""
    """Such as SIGUSR1 or SIGRTMIN+1; empty for the image's."""


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the sandbox list."""

    id: str
    name: str
    namespace: str
    uid: str
    attempt: int
    state: SandboxState
    created_at: int
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)


class SandboxStatus(Sandbox, frozen=True, kw_only=True):
    """`ips` is empty on the host network; the first one is the pod IP otherwise."""

    ips: tuple[str, ...] = ()
    host_network: bool = False


class Container(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the container list. `image` is the name asked for, `image_id` what it was resolved to."""

    id: str
    sandbox_id: str
    name: str
    attempt: int
    image: str
    image_id: str
    state: ContainerState
    created_at: int
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)


class ContainerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """`exit_code` and `reason` (`Completed`, `Error`, `OOMKilled`) mean something once EXITED.

    `resources` is None where the runtime does not report them; `log_path` is absolute. `stop_signal` is empty where it
    is the image's, or the runtime does not know of another.
    A container that met the OOM killer may show RUNNING with reason OOMKilled for a moment.
    """

    id: str
    name: str
    attempt: int
    state: ContainerState
    created_at: int
    started_at: int = 0
    finished_at: int = 0
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    image: str = ""
    image_id: str = ""
    image_ref: str = ""
    log_path: str = ""
    resources: LinuxResources | None = None
    windows: WindowsResources | None = None
    stop_signal: str = ""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)


class Executed(msgspec.Struct, frozen=True, kw_only=True):
    """How a command in a container ended, and what it wrote."""

    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""


class Streams(msgspec.Struct, frozen=True, kw_only=True):
    """What of a process is wanted. With a terminal there is no stderr of its own."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """A sample of one container or sandbox; None where the runtime gives no figure. `cpu_usage` only ever grows."""

    id: str
    timestamp: int
    cpu_usage: int | None = None
    memory_usage: int | None = None
    memory_working_set: int | None = None
    memory_rss: int | None = None


class ContainerStats(Usage, frozen=True, kw_only=True):
    name: str = ""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)


class SandboxStats(Usage, frozen=True, kw_only=True):
    containers: tuple[ContainerStats, ...] = ()


class ContainerEvent(msgspec.Struct, frozen=True, kw_only=True):
    container_id: str
    kind: EventKind


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """`id` is the digest of the image's configuration, the only name that two runtimes agree on."""

    id: str
    tags: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    size: int = 0
    uid: int | None = None
    username: str = ""
    pinned: bool = False
