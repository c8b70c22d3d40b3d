"""The runtime's types, frozen and our own.

They mirror what the kubelet uses of CRI v1 and nothing else, so that only `runtime.cri` knows protobuf and the
simulated runtime needs no gRPC. Times are Unix nanoseconds (0 = never), sizes are bytes, CPU time is nanoseconds.
"""

import enum
from collections.abc import Mapping
from typing import Literal

import msgspec

CgroupDriver = Literal["cgroupfs", "systemd"]


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
    """`recursive_read_only`: whether what is mounted below a read-only mount can be made read-only too."""

    conditions: tuple[RuntimeCondition, ...]
    recursive_read_only: bool = False

    @property
    def runtime_ready(self) -> bool:
        return self._holds("RuntimeReady")

    @property
    def network_ready(self) -> bool:
        """False without a CNI configuration; pods on the host network run all the same."""
        return self._holds("NetworkReady")

    def _holds(self, kind: str) -> bool:
        return any(c.status for c in self.conditions if c.type == kind)


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
    recursive_read_only: frozenset[str] = frozenset()
    """Where something is mounted with all below it read-only, by the paths in the container."""


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
    """`layer_bytes` and `layer_inodes` are what it has written beside its volumes, None where nobody counts."""

    name: str = ""
    layer_bytes: int | None = None
    layer_inodes: int | None = None
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
