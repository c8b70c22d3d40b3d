"""`--config` of the scheduler and the controllers: upstream's field names; others are refused by name."""

from pathlib import Path

import pytest
import yaml

from podfit.client.election import LeaseTiming
from podfit.client.rate_limit import Rate
from podfit.process.control_files import MANAGER, SCHEDULER, read_controllers, read_scheduler
from podfit.process.errors import UsageError
from podfit.process.options import ControllersOptions, SchedulerOptions, SchedulerProfile


def scheduler(tmp_path: Path, **fields: object) -> Path:
    return _written(tmp_path, dict(zip(("apiVersion", "kind"), SCHEDULER, strict=True)) | fields)


def manager(tmp_path: Path, **generic: object) -> Path:
    return _written(tmp_path, dict(zip(("apiVersion", "kind"), MANAGER, strict=True)) | {"Generic": generic})


def _written(tmp_path: Path, document: dict[str, object]) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def profile(**score: object) -> list[object]:
    return [{"plugins": {"score": score}}]


def fit(**strategy: object) -> list[object]:
    return [{"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]}]


def test_a_scheduler_that_fills_nodes(tmp_path: Path) -> None:
    resources = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
    path = scheduler(tmp_path, profiles=fit(type="MostAllocated", resources=resources))
    assert read_scheduler(path)[0].profiles[0].weights == {"MostAllocated": 1, "NodeResourcesFit": 0}


def test_several_profiles_in_one_file(tmp_path: Path) -> None:
    profiles = [{}, *fit(type="MostAllocated")]
    path = scheduler(tmp_path, profiles=[profiles[0], {"schedulerName": "full", **profiles[1]}])  # type: ignore[dict-item]
    assert read_scheduler(path)[0].profiles == (
        SchedulerProfile(),
        SchedulerProfile(name="full", weights={"MostAllocated": 1, "NodeResourcesFit": 0}),
    )


def test_without_a_file_everything_is_as_upstream() -> None:
    options, common = read_scheduler(None)
    assert options == SchedulerOptions(profiles=(SchedulerProfile(name="default-scheduler", weights={}),))
    assert (common.elect, common.pace, common.lease, common.rate) == (
        True,
        LeaseTiming(15, 10, 2),
        "kube-scheduler",
        None,
    )
    assert read_controllers(None)[0] == ControllersOptions()
    assert read_controllers(None)[1].lease == "kube-controller-manager"


def test_a_scheduler_with_a_name_and_weights(tmp_path: Path) -> None:
    election = {"leaseDuration": "1m30s", "renewDeadline": "20s", "retryPeriod": "500ms", "resourceName": "other"}
    score = {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality", "weight": 7}, {"name": "NodeAffinity"}]}
    path = scheduler(
        tmp_path,
        leaderElection=election,
        clientConnection={"kubeconfig": "/k", "qps": 5, "burst": 10},
        profiles=[{"schedulerName": "mine", "plugins": {"score": score}}],
    )
    options, common = read_scheduler(path)
    (found,) = options.profiles
    assert found.name == "mine"
    assert {name: weight for name, weight in found.weights.items() if weight} == {"ImageLocality": 7, "NodeAffinity": 2}
    assert found.weights["NodeResourcesFit"] == 0
    assert (common.pace, common.lease) == (LeaseTiming(90, 20, 0.5), "other")
    assert (common.kubeconfig, common.rate) == (Path("/k"), Rate(5, 10))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"extenders": []}, "unknown field `extenders`"),
        ({"profiles": [{"pluginConfig": [{"name": "NodeAffinity"}]}]}, "only NodeResourcesFit"),
        ({"profiles": fit(type="RequestedToCapacityRatio")}, "LeastAllocated or MostAllocated"),
        ({"profiles": fit(resources=[{"name": "nvidia.com/gpu"}])}, "are cpu and memory, with weight 1"),
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
        ({"clientConnection": {"qps": -1}}, "qps and burst are at least 0"),
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
    options, common = read_controllers(path)
    assert not options.runs("namespace-controller")
    assert options.runs("garbage-collector-controller")
    assert not common.elect


@pytest.mark.parametrize(
    ("generic", "said"),
    [
        ({"Controllers": ["node-ipam-controller"]}, "Generic.Controllers: there is no 'node-ipam-controller'"),
        ({"MinResyncPeriod": "1h"}, "unknown field `MinResyncPeriod`"),
        ({"leaderElection": {}}, "unknown field `leaderElection`"),
    ],
)
def test_what_controllers_do_not_follow(tmp_path: Path, generic: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_controllers(manager(tmp_path, **generic))
    assert said in str(refused.value)
