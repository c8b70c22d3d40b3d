"""The runtime's types, frozen and our own.

They mirror what the kubelet uses of CRI v1 and nothing else, so that only `runtime.cri` knows protobuf and the
simulated runtime needs no gRPC. Times are Unix nanoseconds (0 = never), sizes are bytes, CPU time is nanoseconds.
"""

import enum
from collections.abc import Mapping
from typing import Literal

import msgspec

from podfit.decide.lifecycle.facts import ContainerState

CgroupDriver = Literal["cgroupfs", "systemd"]


class EventKind(enum.Enum):
    CREATED = "created"
    STARTED = "started"
    STOPPED = "stopped"
    DELETED = "deleted"


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


class RuntimeUsage(msgspec.Struct, frozen=True, kw_only=True):
    """A sample of one container or sandbox; None where the runtime gives no figure. `cpu_usage` only ever grows."""

    id: str
    timestamp: int
    cpu_usage: int | None = None
    memory_usage: int | None = None
    memory_working_set: int | None = None
    memory_rss: int | None = None


class ContainerStats(RuntimeUsage, frozen=True, kw_only=True):
    """`layer_bytes` and `layer_inodes` are what it has written beside its volumes, None where nobody counts."""

    name: str = ""
    layer_bytes: int | None = None
    layer_inodes: int | None = None
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)


class SandboxStats(RuntimeUsage, frozen=True, kw_only=True):
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
