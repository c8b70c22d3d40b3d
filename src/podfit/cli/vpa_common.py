"""Flags that the Vertical Pod Autoscaler's processes share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from podfit.client.election import LeaseTiming
from podfit.client.rate_limit import Rate
from podfit.core.quantity import Quantity
from podfit.decide.autoscaling.gates import Gates
from podfit.process.config_file import seconds
from podfit.process.control.control_process import ControlOptions
from podfit.process.errors import UsageError
from podfit.process.options import check_port


@dataclass(frozen=True, kw_only=True)
class VpaProcessFlags:
    """Upstream's names and defaults."""

    kubeconfig: Annotated[
        Path | None,
        Parameter(help="How it reaches the API server. [default: KUBECONFIG, ~/.kube/config, or the pod's account]"),
    ] = None
    vpa_object_namespace: Annotated[str, Parameter(help="Only this namespace.")] = ""
    ignored_vpa_object_namespaces: Annotated[str, Parameter(help="All but these, separated by commas.")] = ""
    feature_gates: Annotated[
        str, Parameter(help="NAME=true,OTHER=false of CPUStartupBoost, InPlace, PerVPAConfig.")
    ] = ""
    kube_api_qps: Annotated[float, Parameter(help="Requests a second; 0 is without a limit.")] = 50.0
    kube_api_burst: Annotated[int, Parameter(help="Requests at once.")] = 100
    bind_address: Annotated[str, Parameter(help="Where its health and metrics are served.")] = "127.0.0.1"

    @property
    def ignored(self) -> frozenset[str]:
        return frozenset(filter(None, self.ignored_vpa_object_namespaces.split(",")))

    @property
    def gates(self) -> Gates:
        """UsageError for a gate that there is not, or what is neither true nor false."""
        named: dict[str, bool] = {}
        for gate in filter(None, self.feature_gates.split(",")):
            name, _, value = gate.partition("=")
            if value not in ("true", "false"):
                raise UsageError(f"--feature-gates {gate}: write NAME=true or NAME=false")
            named[name] = value == "true"
        try:
            return Gates.of(named)
        except ValueError as error:
            raise UsageError(f"--feature-gates: {error}") from None

    def check(self) -> None:
        """Raises UsageError."""
        if self.vpa_object_namespace and self.ignored_vpa_object_namespaces:
            raise UsageError("--vpa-object-namespace and --ignored-vpa-object-namespaces: give one of them")
        if self.kube_api_qps < 0 or self.kube_api_burst < 1:
            raise UsageError("--kube-api-qps is at least 0, --kube-api-burst at least 1")


@dataclass(frozen=True, kw_only=True)
class ElectionFlags:
    leader_elect: Annotated[bool, Parameter(help="Work only while the Lease is held.")] = True
    leader_elect_lease_duration: Annotated[str, Parameter(help="How long a Lease is good.")] = "15s"
    leader_elect_renew_deadline: Annotated[str, Parameter(help="How long the holder tries to renew it.")] = "10s"
    leader_elect_retry_period: Annotated[str, Parameter(help="How often.")] = "2s"
    leader_elect_resource_name: Annotated[str, Parameter(help="Of the Lease.  [default: the component's]")] = ""
    leader_elect_resource_namespace: Annotated[str, Parameter(help="Of the Lease.")] = "kube-system"


VpaProcess: TypeAlias = Annotated[VpaProcessFlags | None, Parameter(name="*")]
ElectedProcess: TypeAlias = Annotated[ElectionFlags | None, Parameter(name="*")]


def control_options(
    name: str,
    flags: VpaProcessFlags,
    election: ElectionFlags,
    *,
    lease: str,
    port: int,
    healthy: Callable[[], bool],
    told: Mapping[str, str] | None = None,
) -> ControlOptions:
    """Raises UsageError."""

    flags.check()
    check_port(port, "--secure-port")
    pace = LeaseTiming(
        duration=duration(election.leader_elect_lease_duration, "--leader-elect-lease-duration"),
        renew=duration(election.leader_elect_renew_deadline, "--leader-elect-renew-deadline"),
        retry=duration(election.leader_elect_retry_period, "--leader-elect-retry-period"),
    )
    if not pace.retry < pace.renew < pace.duration:
        raise UsageError("--leader-elect-retry-period < --leader-elect-renew-deadline < --leader-elect-lease-duration")
    return ControlOptions(
        name=name,
        kubeconfig=flags.kubeconfig,
        lease=election.leader_elect_resource_name or lease,
        lease_namespace=election.leader_elect_resource_namespace,
        pace=pace,
        rate=Rate(flags.kube_api_qps, flags.kube_api_burst) if flags.kube_api_qps else None,
        port=port,
        address=flags.bind_address,
        elect=election.leader_elect,
        healthy=healthy,
        told=told or {},
    )


def duration(text: str, flag: str) -> float:
    """Seconds, more than 0. Raises UsageError."""
    try:
        found = seconds(text, flag)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if found <= 0:
        raise UsageError(f"{flag}: it has to be more than 0")
    return found


def amount(text: str, flag: str) -> Quantity | None:
    """None for nothing. Raises UsageError."""
    try:
        return Quantity.parse(text) if text else None
    except ValueError as error:
        raise UsageError(f"{flag} {text}: {error}") from None


def flag_of(field: str) -> str:
    return "--" + field.replace("_", "-")
