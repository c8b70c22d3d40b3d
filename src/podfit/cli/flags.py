"""The flags of each component, declared once: `podfit up` takes those of all of them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_type_hints

from cyclopts import Parameter

from podfit.apiserver.extensions.audit.options import AuditOptions
from podfit.cli.logs import LogFormat
from podfit.core.features import FeatureGates
from podfit.decide.autoscaling.horizontal.model import Settings
from podfit.decide.workload.nodes.ipam import DEFAULT_CLUSTER_RANGE, DEFAULT_MASK
from podfit.net.tls import KeyPair
from podfit.process.apiserver_options import etcd_options, legacy_of, ranges_of
from podfit.process.config_file import Rejected, seconds
from podfit.process.data.data_dir import DEFAULT_PORT, DataDir, default_data_dir
from podfit.process.errors import UsageError
from podfit.process.listening import listening
from podfit.process.options import ApiServerOptions, ControllersOptions, MakeRoom, NodeKind

Gates: TypeAlias = Annotated[str, Parameter(help="NAME=true,OTHER=false; upstream's names, defaults of 1.36.")]
RuntimeEndpoint: TypeAlias = Annotated[
    str, Parameter(help="CRI socket of a runtime that is running. [default: a private containerd]", show_default=False)
]


@dataclass(frozen=True, kw_only=True)
class ApiServerFlags:
    data: Annotated[
        Path | None,
        Parameter(help=f"Data directory: certificates, and the store without etcd. [default: {default_data_dir()}]"),
    ] = None
    etcd_servers: Annotated[
        tuple[str, ...],
        Parameter(help="URLs of etcd, separated by commas. [default: a file in the data directory]", negative=""),
    ] = ()
    etcd_cafile: Annotated[Path | None, Parameter(help="Who signed etcd's certificates.")] = None
    etcd_certfile: Annotated[Path | None, Parameter(help="Certificate to show to etcd.")] = None
    etcd_keyfile: Annotated[Path | None, Parameter(help="Its key.")] = None
    etcd_prefix: Annotated[str, Parameter(help="Where in etcd the keys are.")] = "/registry"
    port: Annotated[
        int, Parameter(name=["--port", "--secure-port"], help="Port of the API server; 0 takes a free one.")
    ] = DEFAULT_PORT
    bind_address: Annotated[
        tuple[str, ...],
        Parameter(
            help="IP addresses to listen on, separated by commas; 0.0.0.0 for all. `up` listens on "
            "127.0.0.1 besides. [default: 127.0.0.1]",
            negative="",
            show_default=False,
        ),
    ] = ()
    advertise_address: Annotated[
        str, Parameter(help="IP address that pods and other clients are told. [default: where it listens]")
    ] = ""
    tls_san: Annotated[
        tuple[str, ...],
        Parameter(help="More names and addresses for its certificate.", negative="", show_default=False),
    ] = ()
    service_cluster_ip_range: Annotated[str, Parameter(help="Addresses of services.")] = "10.96.0.0/12"
    service_node_port_range: Annotated[str, Parameter(help="Node ports of services.")] = "30000-32767"
    kubeconfig: Annotated[
        Path | None,
        Parameter(
            name=["--write-kubeconfig", "--kubeconfig"],
            help="File to add an administrator's context to, as the current one; what is in it stays. [default: `up`: "
            "your own, current if none was; `apiserver`: DATA/admin.kubeconfig]",
        ),
    ] = None
    tls_cert_file: Annotated[Path | None, Parameter(help="Certificate to serve with. [default: issued]")] = None
    tls_private_key_file: Annotated[Path | None, Parameter(help="Its key.")] = None
    client_ca_file: Annotated[Path | None, Parameter(help="Who else may sign clients' certificates.")] = None
    service_account_signing_key_file: Annotated[
        Path | None, Parameter(help="EC key that signs tokens. [default: made in the data directory]")
    ] = None
    encryption_provider_config: Annotated[
        Path | None, Parameter(help="An EncryptionConfiguration: what is encrypted at rest, and how (docs/store.md).")
    ] = None
    feature_gates: Gates = ""
    legacy: Annotated[str, Parameter(help="For clients of 1.27 to 1.32: resize-status,pod-updates,draft-policies.")] = (
        ""
    )
    legacy_clients: Annotated[
        str, Parameter(help="User agents that resize-status is for, as NAME,OTHER. [default: everyone]")
    ] = ""
    audit_log_path: Annotated[Path | None, Parameter(help="Record who asked for what, in lines of JSON.")] = None
    audit_policy_file: Annotated[
        Path | None, Parameter(help="Which requests, and how much of them. [default: all, metadata only]")
    ] = None

    def options(self) -> ApiServerOptions:
        """Raises UsageError."""
        return ApiServerOptions(
            data=DataDir.at(self.data),
            port=self.port,
            kubeconfig=self.kubeconfig,
            client_ca=self.client_ca_file,
            listening=listening(self.bind_address, self.advertise_address, self.tls_san),
            ranges=ranges_of(self.service_cluster_ip_range, self.service_node_port_range),
            etcd=etcd_options(
                self.etcd_servers,
                ca_file=self.etcd_cafile,
                cert_file=self.etcd_certfile,
                key_file=self.etcd_keyfile,
                prefix=self.etcd_prefix,
            ),
            tls=key_pair(self.tls_cert_file, self.tls_private_key_file),
            encryption=self.encryption_provider_config,
            signing_key=self.service_account_signing_key_file,
            gates=FeatureGates.parse(self.feature_gates),
            audit=AuditOptions(log=self.audit_log_path, policy=self.audit_policy_file),
            legacy=legacy_of(self.legacy, self.legacy_clients),
        )


@dataclass(frozen=True, kw_only=True)
class ControllersFlags:
    make_room: Annotated[
        bool | Literal["preempt"],
        Parameter(
            help="Shrink lower-priority neighbours for a deferred resize, down to their podfit.dev/minimum; "
            "=preempt also evicts where that is not enough (docs/room.md).",
            negative="",
        ),
    ] = False
    controllers: Annotated[
        tuple[str, ...],
        Parameter(help="Which to run, by name: *, NAME, or -NAME for all but it. [default: *]", negative=""),
    ] = ()
    allocate_node_cidrs: Annotated[bool, Parameter(help="Give each node a range of addresses for its pods.")] = True
    cluster_cidr: Annotated[
        str,
        Parameter(
            help=f"Addresses of pods. [default: {DEFAULT_CLUSTER_RANGE}, with `up` another where that one is in use]",
            show_default=False,
        ),
    ] = ""
    node_cidr_mask_size: Annotated[int, Parameter(help="Bits of the mask of each node's range.")] = DEFAULT_MASK
    horizontal_pod_autoscaler_sync_period: Annotated[str, Parameter(help="From one look at an HPA to the next.")] = (
        "15s"
    )
    horizontal_pod_autoscaler_downscale_stabilization: Annotated[
        str, Parameter(help="Replicas go when none were wanted for so long.")
    ] = "5m"
    horizontal_pod_autoscaler_tolerance: Annotated[
        float, Parameter(help="How far a metric may be from its target before replicas change.")
    ] = Settings().tolerance
    horizontal_pod_autoscaler_cpu_initialization_period: Annotated[
        str, Parameter(help="The CPU of a pod that is younger is not believed until it is ready.")
    ] = "5m"
    horizontal_pod_autoscaler_initial_readiness_delay: Annotated[
        str, Parameter(help="A pod that was unready from its start for so long has never been ready.")
    ] = "30s"
    upstream_compatible: Annotated[bool, Parameter(help="HPAs follow upstream's rules to the letter.", negative="")] = (
        False
    )
    concurrent_horizontal_pod_autoscaler_syncs: Annotated[int, Parameter(help="HPAs that are worked on at once.")] = (
        Settings().workers
    )

    def options(self) -> ControllersOptions:
        """Raises UsageError."""
        names = tuple(part for controller in self.controllers for part in controller.split(",") if part)
        room = MakeRoom.PREEMPT if self.make_room == "preempt" else MakeRoom.SHRINK if self.make_room else MakeRoom.NO
        return ControllersOptions(
            make_room=room,
            controllers=names or ("*",),
            horizontal=self._horizontal(),
            allocate_node_cidrs=self.allocate_node_cidrs,
            cluster_cidr=self.cluster_cidr,
            node_cidr_mask_size=self.node_cidr_mask_size,
        )

    def _horizontal(self) -> Settings:
        syncs, tolerance = self.concurrent_horizontal_pod_autoscaler_syncs, self.horizontal_pod_autoscaler_tolerance
        if syncs < 1:
            raise UsageError(f"concurrent-horizontal-pod-autoscaler-syncs must be greater than 0, but got {syncs}")
        if not 0 <= tolerance < math.inf:
            raise UsageError(f"--horizontal-pod-autoscaler-tolerance {tolerance:g}: it has to be at least 0")
        sync = _seconds("sync_period", self.horizontal_pod_autoscaler_sync_period)
        if sync <= 0:
            raise UsageError("--horizontal-pod-autoscaler-sync-period: it has to be more than 0s")
        return Settings(
            sync_period=sync,
            downscale_stabilization=_seconds(
                "downscale_stabilization", self.horizontal_pod_autoscaler_downscale_stabilization
            ),
            tolerance=tolerance,
            cpu_initialization=_seconds(
                "cpu_initialization_period", self.horizontal_pod_autoscaler_cpu_initialization_period
            ),
            initial_readiness=_seconds(
                "initial_readiness_delay", self.horizontal_pod_autoscaler_initial_readiness_delay
            ),
            workers=syncs,
            upstream_compatible=self.upstream_compatible,
        )


@dataclass(frozen=True, kw_only=True)
class NodesFlags:
    """Which nodes `up` has, and what beside them."""

    node: Annotated[
        NodeKind | None,
        Parameter(help="[default: real when root, Linux and containerd are there, else simulated]", show_choices=True),
    ] = None
    nodes: Annotated[int, Parameter(help="How many nodes; more than one are simulated.")] = 1
    container_runtime_endpoint: RuntimeEndpoint = ""
    metrics_server: Annotated[bool, Parameter(help="Serve metrics.k8s.io, for `kubectl top`.")] = True
    vpa: Annotated[bool, Parameter(help="Run the Vertical Pod Autoscaler (docs/vpa.md).")] = True


@dataclass(frozen=True, kw_only=True)
class LogFlags:
    log_format: Annotated[LogFormat, Parameter(help="text or json, on stderr.")] = LogFormat.TEXT
    verbose: Annotated[int, Parameter(name=["--verbose", "-v"], count=True, help="Say more; twice: everything.")] = 0


ApiServer: TypeAlias = Annotated[ApiServerFlags | None, Parameter(name="*")]
Controllers: TypeAlias = Annotated[ControllersFlags | None, Parameter(name="*")]
Nodes: TypeAlias = Annotated[NodesFlags | None, Parameter(name="*")]
Log: TypeAlias = Annotated[LogFlags | None, Parameter(name="*")]


def _seconds(what: str, text: str) -> float:
    try:
        return seconds(text, f"--horizontal-pod-autoscaler-{what.replace('_', '-')}")
    except Rejected as error:
        raise UsageError(str(error)) from None


def key_pair(certificate: Path | None, key: Path | None) -> KeyPair | None:
    """UsageError for one without the other."""
    if (certificate is None) is not (key is None):
        raise UsageError("--tls-cert-file and --tls-private-key-file belong together")
    if certificate is None or key is None:
        return None

    return KeyPair(certificate, key)


def arguments(*flags: Any) -> list[str]:
    """The command line that gives the same flags, from any directory; those that are as usual are left out."""
    return [word for flag in flags for word in _arguments(flag)]


def _arguments(flags: Any) -> Iterator[str]:
    hints = get_type_hints(type(flags), include_extras=True)
    for field in fields(flags):
        value = getattr(flags, field.name)
        if value == field.default:
            continue
        [*_, parameter] = (
            annotation for annotation in hints[field.name].__metadata__ if isinstance(annotation, Parameter)
        )
        flag = next(iter(parameter.name or ()), f"--{field.name.replace('_', '-')}")
        if parameter.count:
            yield from [flag] * value
        elif value is True:
            yield flag
        else:
            yield f"{flag}={_text(value)}"


def _text(value: object) -> str:
    if isinstance(value, Path):
        return str(value.absolute())
    return ",".join(value) if isinstance(value, tuple) else str(value)
