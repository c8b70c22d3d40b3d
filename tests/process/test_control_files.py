"""`--config` of the scheduler and the controllers: upstream's field names; others are refused by name."""

from pathlib import Path

import pytest
import yaml

from podfit.api.core.v1.pods.affinity import TopologySpreadConstraint
from podfit.client.election import LeaseTiming
from podfit.client.rate_limit import Rate
from podfit.decide.placement.default_spread import SYSTEM_DEFAULTING, SpreadDefaulting
from podfit.decide.placement.fit_score import FitScoring, Strategy
from podfit.process.config_file import read
from podfit.process.control.options import ControllersProcessOptions, LeaderElection, SchedulerProcessOptions
from podfit.process.controllers_options import ControllersOptions
from podfit.process.errors import UsageError
from podfit.process.options import SchedulerProfile


def scheduler(tmp_path: Path, **fields: object) -> Path:
    document = SchedulerProcessOptions.document
    return _written(tmp_path, {"apiVersion": document.api_version, "kind": document.kind} | fields)


def manager(tmp_path: Path, **generic: object) -> Path:
    document = ControllersProcessOptions.document
    return _written(tmp_path, {"apiVersion": document.api_version, "kind": document.kind, "Generic": generic})


def _written(tmp_path: Path, document: dict[str, object]) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def read_scheduler(path: Path | None) -> SchedulerProcessOptions:
    return read(SchedulerProcessOptions, None, path)


def read_controllers(path: Path | None) -> ControllersProcessOptions:
    return read(ControllersProcessOptions, None, path)


def profile(**score: object) -> list[object]:
    return [{"plugins": {"score": score}}]


def fit(**strategy: object) -> list[object]:
    return [{"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]}]


def spread(**args: object) -> list[object]:
    return [{"pluginConfig": [{"name": "PodTopologySpread", "args": args}]}]


def constraint(**changed: object) -> dict[str, object]:
    return {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **changed}


def shape(*points: tuple[int, int]) -> dict[str, object]:
    named = [{"utilization": utilization, "score": score} for utilization, score in points]
    return {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": named}}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ({"type": "MostAllocated"}, FitScoring(Strategy.MOST_ALLOCATED)),
        (
            {"resources": [{"name": "cpu", "weight": 3}, {"name": "ephemeral-storage"}, {"name": "a.com/gpu"}]},
            FitScoring(resources=(("cpu", 3), ("ephemeral-storage", 1), ("a.com/gpu", 1))),
        ),
        (
            {**shape((0, 0), (100, 10)), "resources": [{"name": "hugepages-2Mi", "weight": 100}]},
            FitScoring(Strategy.REQUESTED_TO_CAPACITY_RATIO, (("hugepages-2Mi", 100),), ((0, 0), (100, 10))),
        ),
    ],
)
def test_how_resources_are_scored(tmp_path: Path, strategy: dict[str, object], expected: FitScoring) -> None:
    found = read_scheduler(scheduler(tmp_path, profiles=fit(**strategy))).profiles[0]
    assert found == SchedulerProfile(fit=expected)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, SYSTEM_DEFAULTING),
        ({"defaultingType": "System"}, SYSTEM_DEFAULTING),
        ({"defaultingType": "List"}, SpreadDefaulting((), of_system=False)),
        (
            {"defaultingType": "List", "defaultConstraints": [constraint(minDomains=2, nodeTaintsPolicy="Honor")]},
            SpreadDefaulting(
                (
                    TopologySpreadConstraint(
                        topology_key="zone",
                        max_skew=1,
                        when_unsatisfiable="DoNotSchedule",
                        min_domains=2,
                        node_taints_policy="Honor",
                    ),
                ),
                of_system=False,
            ),
        ),
    ],
)
def test_default_constraints_of_a_profile(tmp_path: Path, args: dict[str, object], expected: SpreadDefaulting) -> None:
    found = read_scheduler(scheduler(tmp_path, profiles=spread(**args))).profiles[0]
    assert found == SchedulerProfile(spread=expected)


def test_several_profiles_in_one_file(tmp_path: Path) -> None:
    profiles = [{}, *fit(type="MostAllocated")]
    path = scheduler(tmp_path, profiles=[profiles[0], {"schedulerName": "full", **profiles[1]}])  # type: ignore[dict-item]
    assert read_scheduler(path).profiles == (
        SchedulerProfile(),
        SchedulerProfile(name="full", fit=FitScoring(Strategy.MOST_ALLOCATED)),
    )


def test_without_a_file_everything_is_as_upstream() -> None:
    options = read_scheduler(None)
    assert options.profiles == (SchedulerProfile(name="default-scheduler", weights={}),)
    assert options.election == LeaderElection(elect=True, pace=LeaseTiming(15, 10, 2), namespace="kube-system")
    assert options.connection.rate is None
    assert read_controllers(None).controllers == ControllersOptions()


def test_a_scheduler_with_a_name_and_weights(tmp_path: Path) -> None:
    election = {"leaseDuration": "1m30s", "renewDeadline": "20s", "retryPeriod": "500ms", "resourceName": "other"}
    score = {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality", "weight": 7}, {"name": "NodeAffinity"}]}
    path = scheduler(
        tmp_path,
        leaderElection=election,
        clientConnection={"kubeconfig": "/k", "qps": 5, "burst": 10},
        profiles=[{"schedulerName": "mine", "plugins": {"score": score}}],
    )
    options = read_scheduler(path)
    (found,) = options.profiles
    assert found.name == "mine"
    assert {name: weight for name, weight in found.weights.items() if weight} == {"ImageLocality": 7, "NodeAffinity": 2}
    assert found.weights["NodeResourcesFit"] == 0
    assert (options.election.pace, options.election.name) == (LeaseTiming(90, 20, 0.5), "other")
    assert (options.connection.kubeconfig, options.connection.rate) == (Path("/k"), Rate(5, 10))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"extenders": []}, "unknown field `extenders`"),
        (
            {"profiles": [{"pluginConfig": [{"name": "NodeAffinity"}]}]},
            "profiles[0].pluginConfig[0].name: 'NodeAffinity' has no arguments that podfit follows; only",
        ),
        (
            {"profiles": [{"pluginConfig": [{"name": "PodTopologySpread"}, {"name": "PodTopologySpread"}]}]},
            "profiles[0].pluginConfig[1].name: PodTopologySpread is there twice",
        ),
        (
            {"profiles": fit(type="Full")},
            "scoringStrategy.type: 'Full' is none of LeastAllocated, MostAllocated, RequestedToCapacityRatio",
        ),
        ({"profiles": fit(resources=[{"name": "pods"}])}, "scoringStrategy.resources[0].name: 'pods' is not scored"),
        (
            {"profiles": fit(resources=[{"name": "cpu"}, {"name": "memory", "weight": 101}])},
            "scoringStrategy.resources[1].weight: 101 is not from 1 to 100",
        ),
        ({"profiles": fit(type="RequestedToCapacityRatio")}, "requestedToCapacityRatio.shape: there are 0 points"),
        ({"profiles": fit(**shape((0, 0), (0, 5)))}, "shape[1].utilization: 0 is not more than the one before"),
        ({"profiles": fit(**shape((101, 0)))}, "shape[0].utilization: 101 is not from 0 to 100"),
        ({"profiles": fit(**shape((50, 11)))}, "shape[0].score: 11 is not from 0 to 10"),
        (
            {"profiles": fit(**{**shape((0, 0)), "type": "MostAllocated"})},
            "requestedToCapacityRatio: only with type RequestedToCapacityRatio; leave it out",
        ),
        ({"profiles": spread(defaultingType="None")}, "args.defaultingType: 'None' is none of System, List"),
        (
            {"profiles": spread(defaultConstraints=[constraint()])},
            "args.defaultConstraints: only with defaultingType List; leave them out",
        ),
        *(
            ({"profiles": spread(defaultingType="List", defaultConstraints=given)}, f"args.defaultConstraints[{said}")
            for given, said in (
                ([constraint(maxSkew=0)], "0].maxSkew: 0 is not at least 1"),
                ([constraint(topologyKey="")], "0].topologyKey: '' is no label of nodes"),
                ([constraint(whenUnsatisfiable="")], "0].whenUnsatisfiable: '' is none of DoNotSchedule, Schedule"),
                ([constraint(minDomains=2, whenUnsatisfiable="ScheduleAnyway")], "0].minDomains: 2; at least 1, and"),
                ([constraint(nodeAffinityPolicy="Obey")], "0].nodeAffinityPolicy: 'Obey' is none of Honor, Ignore"),
                ([constraint(), constraint(maxSkew=2)], "1]: zone with DoNotSchedule is there already"),
            )
        ),
        (
            {"profiles": spread(defaultingType="List", defaultConstraints=[constraint(labelSelector={})])},
            "profiles[0].pluginConfig of PodTopologySpread: args: Object contains unknown field `labelSelector`",
        ),
        ({"profiles": spread(kind="NodeResourcesFitArgs")}, "kind PodTopologySpreadArgs"),
        ({"profiles": [{"plugins": {"filter": {}}}]}, "unknown field `filter`"),
        ({"profiles": []}, "profiles: there are 0; from 1 to 16"),
        ({"profiles": [{}, {}]}, "profiles: 'default-scheduler' is the schedulerName of 2; each needs its own"),
        ({"profiles": [{"schedulerName": ""}]}, "profiles: schedulerName must not be empty"),
        ({"profiles": profile(enabled=[{"name": "Mine"}])}, "there is no plugin 'Mine' that scores"),
        ({"profiles": profile(enabled=[{"name": "NodeAffinity", "weight": 101}])}, "the weight of NodeAffinity is 101"),
        ({"percentageOfNodesToScore": 50}, "percentageOfNodesToScore: all nodes are looked at; leave it out"),
        ({"leaderElection": {"resourceLock": "endpoints"}}, "leaderElection.resourceLock: only leases"),
        ({"leaderElection": {"leaseDuration": "soon"}}, "leaderElection.leaseDuration: 'soon' is no duration"),
        ({"leaderElection": {"leaseDuration": "5s"}}, "leaseDuration has to be more than renewDeadline"),
        ({"clientConnection": {"qps": -1}}, "clientConnection.qps -1: it has to be at least 0"),
        ({"kind": "KubeletConfiguration"}, "it has to be apiVersion kubescheduler.config.k8s.io/v1, kind Kube"),
    ],
)
def test_what_a_scheduler_does_not_follow(tmp_path: Path, fields: dict[str, object], said: str) -> None:
    path = scheduler(tmp_path, **fields)
    with pytest.raises(UsageError) as refused:
        read_scheduler(path)
    assert str(refused.value).startswith(f"--config: {path}: ")
    assert said in str(refused.value)


def test_controllers_that_are_left_out(tmp_path: Path) -> None:
    path = manager(tmp_path, Controllers=["*", "-namespace-controller"], LeaderElection={"leaderElect": False})
    options = read_controllers(path)
    assert not options.controllers.runs("namespace-controller")
    assert options.controllers.runs("garbage-collector-controller")
    assert not options.election.elect


@pytest.mark.parametrize(
    ("generic", "said"),
    [
        ({"Controllers": ["service-cidr-controller"]}, "Generic.Controllers: there is no controller 'service-cidr"),
        ({"MinResyncPeriod": "1h"}, "unknown field `MinResyncPeriod`"),
        ({"leaderElection": {}}, "unknown field `leaderElection`"),
    ],
)
def test_what_controllers_do_not_follow(tmp_path: Path, generic: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_controllers(manager(tmp_path, **generic))
    assert said in str(refused.value)
