"""`--config` of `podfit scheduler` and `podfit controllers`, and what the two have in common.

KubeSchedulerConfiguration            kubescheduler.config.k8s.io/v1
KubeControllerManagerConfiguration    kubecontrollermanager.config.k8s.io/v1alpha1, whose fields begin in capitals
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from podfit.client.election import LeaseTiming
from podfit.client.rate_limit import Rate
from podfit.process import config_file
from podfit.process.config_file import Rejected, Strict, only, seconds
from podfit.process.control.scheduler_profiles import API_VERSION, Profile
from podfit.process.errors import UsageError
from podfit.process.options import CONTROLLERS, ControllersOptions, SchedulerOptions

SCHEDULER = API_VERSION, "KubeSchedulerConfiguration"
MANAGER = "kubecontrollermanager.config.k8s.io/v1alpha1", "KubeControllerManagerConfiguration"
MOST_PROFILES = 16


class LeaderElection(Strict, frozen=True, kw_only=True):
    leader_elect: bool = True
    lease_duration: str = "15s"
    renew_deadline: str = "10s"
    retry_period: str = "2s"
    resource_lock: str = "leases"
    resource_name: str = ""
    resource_namespace: str = "kube-system"

    def pace(self) -> LeaseTiming:
        """Raises Rejected."""
        only("leaderElection.resourceLock", self.resource_lock, "leases", "only leases")
        pace = LeaseTiming(
            duration=seconds(self.lease_duration, "leaderElection.leaseDuration"),
            renew=seconds(self.renew_deadline, "leaderElection.renewDeadline"),
            retry=seconds(self.retry_period, "leaderElection.retryPeriod"),
        )
        if not pace.duration > pace.renew > pace.retry > 0:
            raise Rejected("leaderElection: leaseDuration has to be more than renewDeadline, and that than retryPeriod")
        return pace


class ClientConnection(Strict, frozen=True, kw_only=True):
    kubeconfig: str = ""
    qps: float = 0.0
    burst: int = 0

    def rate(self) -> Rate | None:
        """None: as fast as the API server lets it. Raises Rejected."""
        if self.qps < 0 or self.burst < 0:
            raise Rejected("clientConnection: qps and burst are at least 0; 0 is without a limit")
        return Rate(self.qps, max(self.burst, 1)) if self.qps else None


class SchedulerFile(Strict, frozen=True, kw_only=True):
    api_version: str = SCHEDULER[0]
    kind: str = SCHEDULER[1]
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    percentage_of_nodes_to_score: int = 100
    profiles: tuple[Profile, ...] = (Profile(),)

    def options(self) -> SchedulerOptions:
        """Raises Rejected."""
        only("percentageOfNodesToScore", self.percentage_of_nodes_to_score, 100, "all nodes are looked at")
        if not 0 < len(self.profiles) <= MOST_PROFILES:
            raise Rejected(f"profiles: there are {len(self.profiles)}; from 1 to {MOST_PROFILES}")
        named = Counter(profile.scheduler_name for profile in self.profiles)
        if twice := [name for name, count in named.items() if count > 1]:
            raise Rejected(f"profiles: {twice[0]!r} is the schedulerName of {named[twice[0]]}; each needs its own")
        if "" in named:
            raise Rejected("profiles: schedulerName must not be empty")
        return SchedulerOptions(
            profiles=tuple(profile.options(f"profiles[{index}]") for index, profile in enumerate(self.profiles))
        )


class Generic(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="pascal", kw_only=True):
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    controllers: tuple[str, ...] = ("*",)


class ControllersFile(Strict, frozen=True, kw_only=True):
    api_version: str = MANAGER[0]
    kind: str = MANAGER[1]
    generic: Generic = msgspec.field(default=Generic(), name="Generic")

    def options(self) -> ControllersOptions:
        """Raises Rejected."""
        options = ControllersOptions(controllers=self.generic.controllers)
        if unknown := options.unknown():
            raise Rejected(f"Generic.Controllers: there is no {unknown[0]!r} (known: {', '.join(CONTROLLERS)})")
        return options


class Common(msgspec.Struct, frozen=True, kw_only=True):
    """What either file says about the process itself."""

    elect: bool
    pace: LeaseTiming
    lease: str
    namespace: str
    kubeconfig: Path | None
    rate: Rate | None


def read_scheduler(path: Path | None) -> tuple[SchedulerOptions, Common]:
    """The defaults without a file. Raises UsageError."""
    said = (
        config_file.read(path, SchedulerFile, api_version=SCHEDULER[0], name=SCHEDULER[1]) if path else SchedulerFile()
    )
    return _followed(
        path, lambda: (said.options(), _common(said.leader_election, said.client_connection, "kube-scheduler"))
    )


def read_controllers(path: Path | None) -> tuple[ControllersOptions, Common]:
    """The defaults without a file. Raises UsageError."""
    said = (
        config_file.read(path, ControllersFile, api_version=MANAGER[0], name=MANAGER[1]) if path else ControllersFile()
    )
    generic = said.generic
    return _followed(
        path,
        lambda: (
            said.options(),
            _common(generic.leader_election, generic.client_connection, "kube-controller-manager"),
        ),
    )


def _common(election: LeaderElection, connection: ClientConnection, lease: str) -> Common:
    return Common(
        elect=election.leader_elect,
        pace=election.pace(),
        lease=election.resource_name or lease,
        namespace=election.resource_namespace,
        kubeconfig=Path(connection.kubeconfig) if connection.kubeconfig else None,
        rate=connection.rate(),
    )


T = TypeVar("T")


def _followed(path: Path | None, follow: Callable[[], T]) -> T:
    try:
        return follow()
    except Rejected as error:
        raise UsageError(f"--config: {path}: {error}") from None
