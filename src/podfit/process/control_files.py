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
from podfit.decide.placement.score import DEFAULT_WEIGHTS, MOST_ALLOCATED
from podfit.process import config_file
from podfit.process.config_file import Rejected, Strict, only, seconds
from podfit.process.errors import UsageError
from podfit.process.options import (
    CONTROLLERS,
    DEFAULT_SCHEDULER,
    ControllersOptions,
    SchedulerOptions,
    SchedulerProfile,
)

SCHEDULER = "kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration"
MANAGER = "kubecontrollermanager.config.k8s.io/v1alpha1", "KubeControllerManagerConfiguration"
MOST_WEIGHT, MOST_PROFILES = 100, 16
FIT, LEAST_ALLOCATED = "NodeResourcesFit", "LeastAllocated"


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


class Plugin(Strict, frozen=True, kw_only=True):
    name: str
    weight: int | None = None


class PluginSet(Strict, frozen=True, kw_only=True):
    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()


class ScoredResource(Strict, frozen=True, kw_only=True):
    name: str
    weight: int = 1


class Plugins(Strict, frozen=True, kw_only=True):
    score: PluginSet = PluginSet()


class ScoringStrategy(Strict, frozen=True, kw_only=True):
    type: str = LEAST_ALLOCATED
    resources: tuple[ScoredResource, ...] = ()


class FitArgs(Strict, frozen=True, kw_only=True):
    api_version: str = SCHEDULER[0]
    kind: str = "NodeResourcesFitArgs"
    scoring_strategy: ScoringStrategy = ScoringStrategy()


class PluginConfig(Strict, frozen=True, kw_only=True):
    name: str
    args: FitArgs = FitArgs()

    def prefers_full(self) -> bool:
        """Raises Rejected."""
        only("profiles.pluginConfig.name", self.name, FIT, f"only {FIT}")
        strategy = self.args.scoring_strategy
        if strategy.type not in (LEAST_ALLOCATED, MOST_ALLOCATED):
            raise Rejected(
                f"profiles: the scoringStrategy is {LEAST_ALLOCATED} or {MOST_ALLOCATED}, not {strategy.type}"
            )
        if {(resource.name, resource.weight) for resource in strategy.resources} not in (
            set(),
            {("cpu", 1), ("memory", 1)},
        ):
            raise Rejected("profiles: scoringStrategy.resources are cpu and memory, with weight 1")
        return strategy.type == MOST_ALLOCATED


class Profile(Strict, frozen=True, kw_only=True):
    scheduler_name: str = DEFAULT_SCHEDULER
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()

    def options(self) -> SchedulerProfile:
        """Raises Rejected."""
        score, weights = self.plugins.score, dict[str, int]()
        for plugin in score.disabled:
            weights |= dict.fromkeys(DEFAULT_WEIGHTS, 0) if plugin.name == "*" else {_known(plugin): 0}
        for plugin in score.enabled:
            weight = plugin.weight or DEFAULT_WEIGHTS[_known(plugin)]
            if not 0 < weight <= MOST_WEIGHT:
                raise Rejected(f"profiles: the weight of {plugin.name} is {weight}; from 1 to {MOST_WEIGHT}")
            weights[plugin.name] = weight
        if any(config.prefers_full() for config in self.plugin_config):
            weights |= {MOST_ALLOCATED: weights.get(FIT, DEFAULT_WEIGHTS[FIT]), FIT: 0}
        return SchedulerProfile(name=self.scheduler_name, weights=weights)


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
        return SchedulerOptions(profiles=tuple(profile.options() for profile in self.profiles))


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


def _known(plugin: Plugin) -> str:
    if plugin.name not in DEFAULT_WEIGHTS:
        known = ", ".join(DEFAULT_WEIGHTS)
        raise Rejected(f"profiles: there is no plugin {plugin.name!r} that scores (known: {known})")
    return plugin.name
