"""What `up` was asked for, checked before anything is touched."""

import os
import shutil
import socket
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec.structs import fields

from podfit.apiserver.audit.options import AuditOptions, BadPolicy
from podfit.apiserver.legacy.options import OFF, Legacy
from podfit.client.kubeconfig import default_paths
from podfit.core.clock import Clock
from podfit.core.features import FeatureGates
from podfit.decide.memory_qos import THROTTLING_FACTOR
from podfit.decide.pressure import DEFAULT
from podfit.decide.services import BadRange, ServiceRanges
from podfit.process.errors import MachineError, UsageError, reason
from podfit.process.given_files import check_data, check_kubeconfig, check_manifests, check_own_kubeconfig
from podfit.process.layout import DEFAULT_PORT, DataDir
from podfit.process.listening import Listening

if TYPE_CHECKING:
    from podfit.apiserver.audit.log import AuditLog
    from podfit.apiserver.embedded import Rule

NEEDED = ("containerd", "runc")


class MakeRoom(StrEnum):
    """What may be done to lower-priority pods for a deferred resize (docs/room.md)."""

    NO = "no"
    SHRINK = "shrink"
    PREEMPT = "preempt"


class NodeKind(StrEnum):
    REAL = "real"
    SIMULATED = "simulated"
    NONE = "none"


class CpuPolicy(StrEnum):
    NONE = "none"
    STATIC = "static"


class SwapBehavior(StrEnum):
    NO_SWAP = "NoSwap"
    LIMITED = "LimitedSwap"


class MemoryPolicy(StrEnum):
    NONE = "None"
    STATIC = "Static"


class MemoryReservation(StrEnum):
    NONE = "None"
    TIERED = "TieredReservation"


class MemoryShrink(StrEnum):
    CHECKED = "checked"
    GUARDED = "guarded"


class NodeChoice(msgspec.Struct, frozen=True):
    """The kind of node and, for people, why it was chosen."""

    kind: NodeKind
    why: str


class KubeletOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the nodes are told, in the kubelet's own words."""

    cpu_manager_policy: CpuPolicy = CpuPolicy.NONE
    reserved_cpus: str = ""
    memory_manager_policy: MemoryPolicy = MemoryPolicy.NONE
    reserved_memory: str = ""
    swap_behavior: SwapBehavior = SwapBehavior.NO_SWAP
    eviction_hard: str = DEFAULT
    pod_manifest_path: str = ""
    memory_reservation_policy: MemoryReservation = MemoryReservation.NONE
    memory_throttling_factor: float = THROTTLING_FACTOR
    memory_shrink: MemoryShrink = MemoryShrink.CHECKED

    def arguments(self) -> list[str]:
        """On the command line; those that are not as usual."""
        return [
            part
            for each in fields(self)
            if (value := getattr(self, each.name)) != each.default
            for part in (f"--{each.name.replace('_', '-')}", str(value))
        ]


class NodeOptions(Protocol):
    """What a node is started with, by `up` or alone."""

    @property
    def data(self) -> DataDir: ...
    @property
    def kubelet(self) -> KubeletOptions: ...
    @property
    def gates(self) -> FeatureGates: ...
    @property
    def runtime_endpoint(self) -> str: ...


class UpOptions(msgspec.Struct, frozen=True, kw_only=True):
    data: DataDir
    port: int = DEFAULT_PORT
    listening: Listening = Listening()
    ranges: ServiceRanges = ServiceRanges()
    kubeconfig: Path | None = None
    node: NodeKind | None = None
    nodes: int = 1
    gates: FeatureGates = msgspec.field(default_factory=FeatureGates)
    runtime_endpoint: str = ""
    make_room: MakeRoom = MakeRoom.NO
    legacy: Legacy = OFF
    encryption: Path | None = None  # an EncryptionConfiguration
    kubelet: KubeletOptions = msgspec.field(default_factory=KubeletOptions)
    audit: AuditOptions = msgspec.field(default_factory=AuditOptions)

    def check(self) -> None:
        """UsageError when the options contradict each other, or name a file that is not what it should be."""
        check_data(self.data.root)
        if self.kubeconfig is not None:
            check_kubeconfig(self.kubeconfig)
        else:
            check_own_kubeconfig(default_paths(os.environ)[0])
        if not 0 <= self.port <= 65535:
            raise UsageError(f"--port {self.port} is not a port (0 to 65535; 0 takes a free one)")
        self.listening.check()
        check_audit(self.audit)
        if self.nodes < 1:
            raise UsageError(f"--nodes {self.nodes}: a cluster has at least one node (or use --node none)")
        if self.nodes > 1 and self.node is NodeKind.REAL:
            raise UsageError("--nodes above 1 needs --node simulated: this machine is one real node")
        if self.runtime_endpoint and self.node in (NodeKind.SIMULATED, NodeKind.NONE):
            raise UsageError(f"--container-runtime-endpoint means a real node, not --node {self.node}")
        encryption_rules(self.encryption)
        if self.kubelet.pod_manifest_path:
            check_manifests(Path(self.kubelet.pod_manifest_path))


def encryption_rules(path: Path | None) -> "tuple[Rule, ...]":
    """What an EncryptionConfiguration says; UsageError when it cannot be followed."""
    if path is None:
        return ()
    from podfit.apiserver.encryption import EncryptionConfigError, read_rules

    try:
        return read_rules(path)
    except EncryptionConfigError as error:
        raise UsageError(str(error)) from None


def open_audit(audit: AuditOptions, clock: Clock) -> "AuditLog | None":
    """MachineError when the file cannot be written."""
    try:
        return audit.open(clock)
    except OSError as error:
        raise MachineError(f"--audit-log-path: {audit.log} cannot be written ({reason(error)})") from error


def check_audit(audit: AuditOptions) -> None:
    """UsageError for a policy without a log, or one that cannot be read."""
    if audit.policy is not None and audit.log is None:
        raise UsageError("--audit-policy-file says what goes into a log: name the log with --audit-log-path")
    if audit.policy is None:
        return
    try:
        audit.read()
    except BadPolicy as error:
        raise UsageError(f"--audit-policy-file: {error}") from None


def ranges_of(addresses: str, ports: str) -> ServiceRanges:
    """What services get; UsageError for what is no range."""
    try:
        return ServiceRanges.parse(addresses, ports)
    except BadRange as error:
        raise UsageError(str(error)) from None


def legacy_of(switches: str, clients: str) -> Legacy:
    """What `--legacy` and `--legacy-clients` ask for; UsageError for a switch that there is not."""
    try:
        return Legacy.parse(switches, clients)
    except ValueError as error:
        raise UsageError(f"--legacy: {error}") from None


def choose_node(options: UpOptions) -> NodeChoice:
    """A real node when this machine can have one, else a simulated one; MachineError when a real one was demanded."""
    if options.node in (NodeKind.SIMULATED, NodeKind.NONE):
        return NodeChoice(options.node, "as asked")
    lacking = lacking_for_real(private=not options.runtime_endpoint)
    if not lacking and options.nodes == 1:
        return NodeChoice(NodeKind.REAL, "root, Linux and a container runtime are here")
    if options.node is NodeKind.REAL or options.runtime_endpoint:
        raise MachineError(
            "a real node cannot run here",
            evidence=tuple(lacking),
            fix=(*advice(lacking), f"or run:  {options.data.command('up', '--node', 'simulated')}"),
        )
    why = lacking[0] if lacking else f"{options.nodes} nodes were asked for and this machine is one"
    return NodeChoice(NodeKind.SIMULATED, why)


def lacking_for_real(*, private: bool) -> list[str]:
    """What this machine lacks to be a real node; `private` is one with a containerd of its own."""
    if os.uname().sysname != "Linux":
        return [f"this is {os.uname().sysname}, not Linux"]
    missing = []
    if os.geteuid() != 0:
        missing.append(f"not root (uid {os.geteuid()}), so no cgroups")
    if private:
        missing += [f"{program} is not installed" for program in NEEDED if not shutil.which(program)]
    return missing


def advice(lacking: list[str]) -> tuple[str, ...]:
    """Commands that help."""
    commands = []
    if any("not root" in each for each in lacking):
        commands.append("run it as root:  sudo podfit up")
    if any("not installed" in each for each in lacking):
        commands.append("install it:  apt-get install containerd runc containernetworking-plugins")
    return tuple(commands)


def node_names(choice: NodeChoice, count: int) -> tuple[str, ...]:
    """The host's name for a real node; a simulated one says in its name what it is."""
    if choice.kind is NodeKind.NONE:
        return ()
    if choice.kind is NodeKind.REAL:
        return (socket.gethostname().lower(),)
    return tuple(f"simulated-{number}" for number in range(1, count + 1))
