"""Configurations of sandboxes and containers, as a runtime gets them; its answers are in `types`."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from podfit.decide.lifecycle.facts import LinuxResources

Propagation = Literal["private", "host-to-container", "bidirectional"]
PortProtocol = Literal["TCP", "UDP", "SCTP"]


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
    """A pod as the runtime sees it; `cgroup_parent` is the pod's cgroup path, e.g. `/kubepods/burstable/pod<uid>`.

    `privileged`: the pod has a privileged container. A runtime creates one only where the configuration that comes with
    the call says so, however its sandbox was made.
    """

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
    privileged: bool = False
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
    """A mount of what is at `host_path`, or of `image_sub_path` in an `image` that the runtime has."""

    container_path: str
    host_path: str = ""
    image: str = ""
    image_sub_path: str = ""
    readonly: bool = False
    recursive_read_only: bool = False
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
    has_end: bool = False
    """Its program is to end by itself: an init container, or one of a Job. Only a simulated runtime has to know."""
