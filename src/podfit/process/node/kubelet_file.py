"""`--config` of a kubelet: a KubeletConfiguration with the fields of upstream's that mean something here.

How such a file is read: `config_file`.
"""

from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from podfit.decide.node.shutdown import ShutdownGroup
from podfit.process import config_file
from podfit.process.config_file import Rejected, Strict
from podfit.process.errors import UsageError
from podfit.process.node.kubelet_config import shutdown_groups
from podfit.process.options import CpuPolicy, KubeletOptions, MemoryPolicy, MemoryReservation, SwapBehavior

API_VERSION, KIND = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"


class _X509(Strict, frozen=True):
    client_ca_file: str = msgspec.field(default="", name="clientCAFile")


class _Switch(Strict, frozen=True):
    enabled: bool | None = None


class _Authentication(Strict, frozen=True):
    x509: _X509 = _X509()
    anonymous: _Switch = _Switch()
    webhook: _Switch = _Switch()


class _Authorization(Strict, frozen=True):
    mode: str = "Webhook"


class _Swap(Strict, frozen=True):
    swap_behavior: SwapBehavior = SwapBehavior.NO_SWAP


class _Limits(Strict, frozen=True):
    memory: str


class _ReservedMemory(Strict, frozen=True):
    numa_node: int
    limits: _Limits


class _ShutdownGroup(Strict, frozen=True):
    priority: int
    shutdown_grace_period_seconds: int


class KubeletFile(Strict, frozen=True, kw_only=True):
    """None and empty: not said."""

    api_version: str = API_VERSION
    kind: str = KIND
    address: str = ""
    port: int | None = None
    read_only_port: int = 0
    static_pod_path: str = ""
    container_runtime_endpoint: str = ""
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    rotate_certificates: bool = True
    server_tls_bootstrap: bool | None = msgspec.field(default=None, name="serverTLSBootstrap")
    authentication: _Authentication = _Authentication()
    authorization: _Authorization = _Authorization()
    cgroup_root: str | None = None
    eviction_hard: dict[str, str] | None = None
    eviction_pressure_transition_period: str | None = None
    shutdown_grace_period: str | None = None
    shutdown_grace_period_critical_pods: str | None = None
    shutdown_grace_period_by_pod_priority: tuple[_ShutdownGroup, ...] = ()
    image_gc_high_threshold: int | None = msgspec.field(default=None, name="imageGCHighThresholdPercent")
    image_gc_low_threshold: int | None = msgspec.field(default=None, name="imageGCLowThresholdPercent")
    image_minimum_age: str | None = msgspec.field(default=None, name="imageMinimumGCAge")
    image_maximum_age: str | None = msgspec.field(default=None, name="imageMaximumGCAge")
    cpu_manager_policy: CpuPolicy | None = None
    reserved_system_cpus: str | None = msgspec.field(default=None, name="reservedSystemCPUs")
    memory_manager_policy: MemoryPolicy | None = None
    reserved_memory: tuple[_ReservedMemory, ...] | None = None
    memory_swap: _Swap | None = None
    memory_throttling_factor: float | None = None
    memory_reservation_policy: MemoryReservation | None = None
    feature_gates: dict[str, bool] = msgspec.field(default_factory=dict)

    def options(self) -> KubeletOptions:
        """What it says of a node, over the defaults."""
        evict = self.eviction_hard
        said: dict[str, Any] = {
            "cpu_manager_policy": self.cpu_manager_policy,
            "reserved_cpus": self.reserved_system_cpus,
            "memory_manager_policy": self.memory_manager_policy,
            "reserved_memory": None
            if self.reserved_memory is None
            else ";".join(
                f"{reservation.numa_node}:memory={reservation.limits.memory}" for reservation in self.reserved_memory
            ),
            "swap_behavior": self.memory_swap.swap_behavior if self.memory_swap else None,
            "eviction_hard": None if evict is None else ",".join(f"{name}<{value}" for name, value in evict.items()),
            "eviction_pressure_transition_period": self.eviction_pressure_transition_period,
            "cgroup_root": None if self.cgroup_root is None else self.cgroup_root.rstrip("/"),
            "pod_manifest_path": self.static_pod_path or None,
            "memory_reservation_policy": self.memory_reservation_policy,
            "memory_throttling_factor": self.memory_throttling_factor,
            "shutdown_grace_period": self.shutdown_grace_period,
            "shutdown_grace_period_critical_pods": self.shutdown_grace_period_critical_pods,
            "shutdown_by_priority": tuple(
                ShutdownGroup(group.priority, group.shutdown_grace_period_seconds)
                for group in self.shutdown_grace_period_by_pod_priority
            ),
            "image_gc_high_threshold": self.image_gc_high_threshold,
            "image_gc_low_threshold": self.image_gc_low_threshold,
            "image_minimum_age": _seconds(self.image_minimum_age, "imageMinimumGCAge"),
            "image_maximum_age": _seconds(self.image_maximum_age, "imageMaximumGCAge"),
        }
        return replace(KubeletOptions(), **{name: value for name, value in said.items() if value is not None})

    @property
    def gates(self) -> str:
        """As `--feature-gates` has it."""
        return ",".join(f"{name}={str(on).lower()}" for name, on in self.feature_gates.items())


def read(path: Path) -> KubeletFile:
    """Raises UsageError that names the field."""
    found = config_file.read(path, KubeletFile, api_version=API_VERSION, name=KIND)
    try:
        shutdown_groups(found.options())
        _seconds(found.eviction_pressure_transition_period, "evictionPressureTransitionPeriod")
        problem = _problem(found) or found.options().images.problem
    except Rejected as error:
        problem = str(error)
    if problem:
        raise UsageError(f"--config: {path}: {problem}")
    return found


def _seconds(text: str | None, field: str) -> float | None:
    return None if text is None else config_file.seconds(text, field)


def _problem(file: KubeletFile) -> str:
    if file.read_only_port:
        return "readOnlyPort: there is no port without authorization; leave it 0"
    if file.authentication.anonymous.enabled:
        return "authentication.anonymous.enabled: every caller has to be known; leave it false"
    if file.authentication.webhook.enabled is False:
        return "authentication.webhook.enabled: tokens are checked by the API server; leave it true"
    if file.authorization.mode != "Webhook":
        return "authorization.mode: only Webhook, the API server decides"
    if not file.rotate_certificates:
        return "rotateCertificates: certificates are always renewed; leave it true"
    if bool(file.tls_cert_file) is not bool(file.tls_private_key_file):
        return "tlsCertFile and tlsPrivateKeyFile belong together"
    if file.server_tls_bootstrap is False and not file.tls_cert_file:
        return "serverTLSBootstrap: false needs tlsCertFile and tlsPrivateKeyFile"
    if file.server_tls_bootstrap and file.tls_cert_file:
        return "serverTLSBootstrap: true, but tlsCertFile names a certificate; which?"
    return ""
