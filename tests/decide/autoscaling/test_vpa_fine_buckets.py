"""Histograms that begin at a millicore and a megabyte, and their way to and from upstream's."""

import pytest

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscalerCheckpoint
from podfit.core.selectors import from_map
from podfit.decide.autoscaling.buckets import (
    CPU_BUCKETS,
    FINE_CPU_BUCKETS,
    FINE_MEMORY_BUCKETS,
    MEMORY_BUCKETS,
    Buckets,
    rebucketed,
)
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.flags import EstimatorFlags, RecommenderFlags
from podfit.decide.autoscaling.tracked import PodKey, VpaKey
from podfit.process.config_file import read
from podfit.process.errors import UsageError
from podfit.process.vpa.recommender import RecommenderOptions

NOW, DAY, MB = 1_770_000_000.0, 86_400.0, 10**6
VPA, POD = VpaKey("ns", "v"), PodKey("ns", "p")
NO_MINIMUM = EstimatorFlags(min_cpu_millicores=0, min_memory_mb=0, margin=0)


def known(*, fine: bool, used: tuple[int, int] | None) -> ClusterState:
    """A container that used so many millicores and bytes for a day."""
    found = ClusterState(RecommenderFlags(estimator=NO_MINIMUM, fine_buckets=fine))
    found.set_vpa(VPA, from_map({"app": "a"}), None)
    if used is not None:
        found.set_pod(POD, {"app": "a"}, ["c"], NOW)
        for hour in range(30):
            found.add_sample(POD, "c", NOW + hour * 3600, cpu=used[0], memory=used[1])
    return found


def target(found: ClusterState) -> tuple[int, int]:
    (one,) = found.recommend({VPA: {}})[VPA].container_recommendations
    return one.target["cpu"].milli(), one.target["memory"].value()


def kept(found: ClusterState) -> VerticalPodAutoscalerCheckpoint:
    ((_, (checkpoint,)),) = found.checkpoints([VPA], NOW + 3 * DAY)
    return checkpoint


def test_vpa_sees_how_small_a_workload_is() -> None:
    assert target(known(fine=False, used=(2, 3 * MB))) == (10, 10 * MB)
    cpu, memory = target(known(fine=True, used=(2, 3 * MB)))
    assert 2 <= cpu <= 4
    assert 3 * MB <= memory < 4.3 * MB


@pytest.mark.parametrize("used", [(300, 400 * MB), (4000, 8000 * MB)])
def test_vpa_sees_larger_ones_as_before(used: tuple[int, int]) -> None:
    for coarse, fine in zip(target(known(fine=False, used=used)), target(known(fine=True, used=used)), strict=True):
        assert fine == pytest.approx(coarse, rel=0.08)


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("used", [(300, 400 * MB), (4000, 8000 * MB)])
def test_vpa_goes_on_from_checkpoints_of_the_other_buckets(before: bool, used: tuple[int, int]) -> None:
    first, second = known(fine=before, used=used), known(fine=not before, used=None)
    checkpoint = kept(first)
    assert checkpoint.status.version == ("podfit.dev/v1" if before else "v3")
    second.restore(checkpoint, NOW + 3 * DAY)
    for old, new in zip(target(first), target(second), strict=True):
        assert old * 0.999 <= new <= old * 1.12, "never less"


@pytest.mark.parametrize(
    ("old", "new"), [(CPU_BUCKETS, FINE_CPU_BUCKETS), (FINE_MEMORY_BUCKETS, MEMORY_BUCKETS)], ids=["cpu", "memory"]
)
def test_no_weight_is_lost_between_buckets(old: Buckets, new: Buckets) -> None:
    weights = {index: index + 1 for index in range(old.count)}
    found = rebucketed(weights, old, new)
    assert sum(found.values()) == sum(weights.values())
    assert set(found) <= set(range(new.count))
    assert all(buckets.count < 256 for buckets in (old, new)), "indices are counted in bytes (Bank.percentiles)"


def test_a_bucket_that_there_is_not_is_refused_before_it_is_converted() -> None:
    found, checkpoint = known(fine=True, used=None), kept(known(fine=False, used=(300, MB)))
    checkpoint.status.cpu_histogram.bucket_weights["200"] = 1
    with pytest.raises(ValueError, match=r"bucket 200, out of range \[0,175\]"):
        found.restore(checkpoint, NOW + 3 * DAY)


def test_vpa_with_fine_buckets_is_not_as_upstream() -> None:
    assert read(RecommenderOptions, {"fine-buckets": True}).recommender().flags.fine_buckets
    with pytest.raises(UsageError, match="--fine-buckets and --upstream-compatible: give one"):
        read(RecommenderOptions, {"fine-buckets": True, "upstream-compatible": True}).recommender()
