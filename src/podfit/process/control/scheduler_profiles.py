"""Profiles of a KubeSchedulerConfiguration: which plugins score, what each counts for, and their arguments.

What upstream would follow and podfit does not is refused, and so is what upstream refuses; each says where it stands.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from podfit.api.core.v1.pods.affinity import TopologySpreadConstraint
from podfit.api.meta.validation.names import qualified
from podfit.decide.placement.default_spread import SYSTEM_DEFAULTING, SpreadDefaulting
from podfit.decide.placement.fit_score import SHAPE_SCORES, FitScoring, Strategy
from podfit.decide.placement.score import DEFAULT_WEIGHTS
from podfit.process.config_file import Rejected, Strict
from podfit.process.options import DEFAULT_SCHEDULER, SchedulerProfile

API_VERSION = "kubescheduler.config.k8s.io/v1"
MOST_WEIGHT = 100
MOST_RESOURCES = 32
MOST_CONSTRAINTS = 16
FIT, SPREAD = "NodeResourcesFit", "PodTopologySpread"
ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
SYSTEM, LIST = "System", "List"


class Plugin(Strict, frozen=True, kw_only=True):
    name: str
    weight: int | None = None


class PluginSet(Strict, frozen=True, kw_only=True):
    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()


class Plugins(Strict, frozen=True, kw_only=True):
    score: PluginSet = PluginSet()


class ScoredResource(Strict, frozen=True, kw_only=True):
    name: str
    weight: int = 1


class ShapePoint(Strict, frozen=True, kw_only=True):
    utilization: int
    score: int


class RatioParam(Strict, frozen=True, kw_only=True):
    shape: tuple[ShapePoint, ...] = ()


class ScoringStrategy(Strict, frozen=True, kw_only=True):
    type: str = Strategy.LEAST_ALLOCATED.value
    resources: tuple[ScoredResource, ...] = ()
    requested_to_capacity_ratio: RatioParam | None = None

    def scoring(self, where: str) -> FitScoring:
        """Raises Rejected."""
        known = [strategy.value for strategy in Strategy]
        if self.type not in known:
            raise Rejected(f"{where}.type: {self.type!r} is none of {', '.join(known)}")
        strategy = Strategy(self.type)
        return FitScoring(strategy, self._resources(f"{where}.resources"), self._shape(where, strategy))

    def _resources(self, where: str) -> tuple[tuple[str, int], ...]:
        if len(self.resources) > MOST_RESOURCES:
            raise Rejected(f"{where}: there are {len(self.resources)}; at most {MOST_RESOURCES}")
        for index, resource in enumerate(self.resources):
            if not _is_scored(resource.name):
                raise Rejected(
                    f"{where}[{index}].name: {resource.name!r} is not scored; cpu, memory, ephemeral-storage, "
                    "hugepages-SIZE and extended resources (example.com/gpu) are"
                )
            if not 0 < resource.weight <= MOST_WEIGHT:
                raise Rejected(f"{where}[{index}].weight: {resource.weight} is not from 1 to {MOST_WEIGHT}")
        return tuple((resource.name, resource.weight) for resource in self.resources) or FitScoring().resources

    def _shape(self, where: str, strategy: Strategy) -> tuple[tuple[int, int], ...]:
        ratio, where = self.requested_to_capacity_ratio, f"{where}.requestedToCapacityRatio"
        if strategy is not Strategy.REQUESTED_TO_CAPACITY_RATIO:
            if ratio is not None:
                raise Rejected(f"{where}: only with type {Strategy.REQUESTED_TO_CAPACITY_RATIO}; leave it out")
            return ()
        shape = tuple((point.utilization, point.score) for point in ratio.shape) if ratio is not None else ()
        if not 0 < len(shape) <= 101:
            raise Rejected(f"{where}.shape: there are {len(shape)} points; from 1 to 101")
        for index, (utilization, score) in enumerate(shape):
            if index and utilization <= shape[index - 1][0]:
                raise Rejected(f"{where}.shape[{index}].utilization: {utilization} is not more than the one before")
            if not 0 <= utilization <= 100:
                raise Rejected(f"{where}.shape[{index}].utilization: {utilization} is not from 0 to 100")
            if not 0 <= score <= SHAPE_SCORES:
                raise Rejected(f"{where}.shape[{index}].score: {score} is not from 0 to {SHAPE_SCORES}")
        return shape


class FitArgs(Strict, frozen=True, kw_only=True):
    api_version: str = API_VERSION
    kind: str = "NodeResourcesFitArgs"
    scoring_strategy: ScoringStrategy = ScoringStrategy()


class DefaultConstraint(Strict, frozen=True, kw_only=True):
    topology_key: str = ""
    max_skew: int = 0
    when_unsatisfiable: str = ""
    min_domains: int | None = None
    node_affinity_policy: str = ""
    node_taints_policy: str = ""

    def constraint(self, where: str) -> TopologySpreadConstraint:
        """Raises Rejected."""
        if self.max_skew < 1:
            raise Rejected(f"{where}.maxSkew: {self.max_skew} is not at least 1")
        if not self.topology_key or qualified(self.topology_key):
            raise Rejected(f"{where}.topologyKey: {self.topology_key!r} is no label of nodes")
        if self.when_unsatisfiable not in ACTIONS:
            raise Rejected(f"{where}.whenUnsatisfiable: {self.when_unsatisfiable!r} is none of {', '.join(ACTIONS)}")
        if self.min_domains is not None and not (self.min_domains > 0 and self.when_unsatisfiable == ACTIONS[0]):
            raise Rejected(f"{where}.minDomains: {self.min_domains}; at least 1, and only with {ACTIONS[0]}")
        for field, policy in (
            ("nodeAffinityPolicy", self.node_affinity_policy),
            ("nodeTaintsPolicy", self.node_taints_policy),
        ):
            if policy not in ("", "Honor", "Ignore"):
                raise Rejected(f"{where}.{field}: {policy!r} is none of Honor, Ignore")
        return TopologySpreadConstraint(
            max_skew=self.max_skew,
            topology_key=self.topology_key,
            when_unsatisfiable=self.when_unsatisfiable,
            min_domains=self.min_domains,
            node_affinity_policy=self.node_affinity_policy,
            node_taints_policy=self.node_taints_policy,
        )


class SpreadArgs(Strict, frozen=True, kw_only=True):
    """A constraint has no `labelSelector` and no `matchLabelKeys`: whose pods count follows from its workload."""

    api_version: str = API_VERSION
    kind: str = "PodTopologySpreadArgs"
    defaulting_type: str = SYSTEM
    default_constraints: tuple[DefaultConstraint, ...] = ()

    def defaulting(self, where: str) -> SpreadDefaulting:
        """Raises Rejected."""
        if self.defaulting_type not in (SYSTEM, LIST):
            raise Rejected(f"{where}.defaultingType: {self.defaulting_type!r} is none of {SYSTEM}, {LIST}")
        if self.defaulting_type == SYSTEM:
            if self.default_constraints:
                raise Rejected(f"{where}.defaultConstraints: only with defaultingType {LIST}; leave them out")
            return SYSTEM_DEFAULTING
        where = f"{where}.defaultConstraints"
        if len(self.default_constraints) > MOST_CONSTRAINTS:
            raise Rejected(f"{where}: there are {len(self.default_constraints)}; at most {MOST_CONSTRAINTS}")
        constraints = tuple(
            given.constraint(f"{where}[{index}]") for index, given in enumerate(self.default_constraints)
        )
        pairs = [(given.topology_key, given.when_unsatisfiable) for given in constraints]
        for index, pair in enumerate(pairs):
            if pair in pairs[:index]:
                raise Rejected(f"{where}[{index}]: {pair[0]} with {pair[1]} is there already")
        return SpreadDefaulting(constraints, of_system=False)


class PluginConfig(Strict, frozen=True, kw_only=True):
    name: str
    args: Mapping[str, object] = {}


class Profile(Strict, frozen=True, kw_only=True):
    scheduler_name: str = DEFAULT_SCHEDULER
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()

    def options(self, where: str) -> SchedulerProfile:
        """Raises Rejected."""
        configured: dict[str, Mapping[str, object]] = {}
        for index, config in enumerate(self.plugin_config):
            place = f"{where}.pluginConfig[{index}].name"
            if config.name not in (FIT, SPREAD):
                raise Rejected(
                    f"{place}: {config.name!r} has no arguments that podfit follows; only {FIT} and {SPREAD} have"
                )
            if config.name in configured:
                raise Rejected(f"{place}: {config.name} is there twice")
            configured[config.name] = config.args
        where = f"{where}.pluginConfig"
        fit = _args(FitArgs, configured.get(FIT, {}), f"{where} of {FIT}")
        spread = _args(SpreadArgs, configured.get(SPREAD, {}), f"{where} of {SPREAD}")
        return SchedulerProfile(
            name=self.scheduler_name,
            weights=self._weights(),
            fit=fit.scoring_strategy.scoring(f"{where} of {FIT}: args.scoringStrategy"),
            spread=spread.defaulting(f"{where} of {SPREAD}: args"),
        )

    def _weights(self) -> dict[str, int]:
        score, weights = self.plugins.score, dict[str, int]()
        for plugin in score.disabled:
            weights |= dict.fromkeys(DEFAULT_WEIGHTS, 0) if plugin.name == "*" else {_known(plugin): 0}
        for plugin in score.enabled:
            weight = plugin.weight or DEFAULT_WEIGHTS[_known(plugin)]
            if not 0 < weight <= MOST_WEIGHT:
                raise Rejected(f"profiles: the weight of {plugin.name} is {weight}; from 1 to {MOST_WEIGHT}")
            weights[plugin.name] = weight
        return weights


A = TypeVar("A", FitArgs, SpreadArgs)


def _args(kind: type[A], given: Mapping[str, object], where: str) -> A:
    try:
        args = msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise Rejected(f"{where}: args: {error}") from error
    expected = kind()
    if (args.api_version, args.kind) != (expected.api_version, expected.kind):
        raise Rejected(f"{where}: args are of apiVersion {expected.api_version}, kind {expected.kind}")
    return args


def _known(plugin: Plugin) -> str:
    if plugin.name not in DEFAULT_WEIGHTS:
        known = ", ".join(DEFAULT_WEIGHTS)
        raise Rejected(f"profiles: there is no plugin {plugin.name!r} that scores (known: {known})")
    return plugin.name


def _is_scored(name: str) -> bool:
    if name in ("cpu", "memory", "ephemeral-storage") or name.startswith("hugepages-"):
        return True
    return "/" in name and not qualified(name)
