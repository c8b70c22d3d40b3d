"""What a status says of resources."""

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.cgroup.container_resources import Machine
from podfit.decide.cgroup.pod_cgroup import PodValues, pod_config
from podfit.decide.pod.allocated import PodResources
from podfit.decide.resize.reported_status import Enforced, container_resources, enforced, pod_allocated, pod_resources
from support.placed import placed, resized
from support.pods import container, needs, pod

MI = 1 << 20
MACHINE = Machine(memory=8 << 30)
SMALL = needs({"cpu": "100m", "memory": "64Mi"}, {"cpu": "200m", "memory": "128Mi"})
LARGE = needs({"cpu": "200m", "memory": "128Mi"}, {"cpu": "400m", "memory": "256Mi"})
REAL = Enforced(cpu_request=100, cpu_limit=200, memory_limit=128 * MI)


def test_runtime_values() -> None:
    assert enforced(shares=102, quota=20_000, period=100_000, memory_limit=128 * MI) == REAL
    assert enforced(shares=0, quota=-1, period=0, memory_limit=-1) == Enforced()


def test_settled_container_reads_as_allocated() -> None:
    report = container_resources(SMALL, REAL, SMALL, None)
    assert report == SMALL
    assert str(report.limits["memory"]) == "128Mi"


@pytest.mark.row("R-093", "R-152")
def test_container_in_progress_reads_as_it_is() -> None:
    assert container_resources(LARGE, REAL, SMALL, SMALL) == SMALL


@pytest.mark.row("R-147")
def test_least_values_are_not_told_from_each_other() -> None:
    tiny = needs({"cpu": "1m"}, {"cpu": "5m"})
    assert container_resources(tiny, Enforced(cpu_request=2, cpu_limit=10), tiny, None) == tiny


@pytest.mark.row("R-148")
def test_silent_runtime_is_replaced_by_the_record() -> None:
    assert container_resources(LARGE, None, SMALL, None) == SMALL


def test_what_is_not_reported_stays_as_it_was() -> None:
    assert container_resources(LARGE, Enforced(cpu_request=200, cpu_limit=400), LARGE, SMALL).limits == {
        "cpu": LARGE.limits["cpu"],
        "memory": SMALL.limits["memory"],
    }


@pytest.mark.row("R-149", "R-150")
def test_other_names_are_as_allocated_and_nothing_is_invented() -> None:
    disk = needs({"ephemeral-storage": "1Gi", "cpu": "100m"})
    assert container_resources(disk, REAL, disk, None) == disk
    assert container_resources(needs(), REAL, needs(), None) == needs()


def settled(web: Pod) -> PodValues:
    config = pod_config(web, MACHINE)
    return PodValues(shares=config.shares, quota=config.quota, period=config.period, memory=config.memory)


@pytest.mark.row("R-159", "R-162")
def test_pod_totals() -> None:
    web = placed(pod(container("c1", {"cpu": "100m", "memory": "64Mi"}, {"cpu": "200m", "memory": "128Mi"})))
    larger = resized(web, c1=LARGE)
    assert pod_resources(web, PodResources({"c1": SMALL}), settled(web), MACHINE, None) == SMALL
    assert pod_resources(larger, PodResources({"c1": SMALL}), settled(web), MACHINE, SMALL) == SMALL
    assert pod_resources(larger, PodResources({"c1": LARGE}), settled(larger), MACHINE, SMALL) == LARGE
    assert pod_resources(larger, PodResources({"c1": SMALL}), None, MACHINE, SMALL) == LARGE
    assert pod_allocated(larger, MACHINE) == LARGE.requests


def test_a_coarse_weight_that_is_still_the_old_size_reads_as_that() -> None:
    """While a resize is under way: 100m has weight 4, which alone would read as 79m."""
    web = placed(pod(container("c1", {"cpu": "100m", "memory": "64Mi"}, {"cpu": "200m", "memory": "128Mi"})))
    old = pod_config(web, MACHINE)
    now = PodValues(shares=79, weight=4, quota=old.quota, period=old.period, memory=old.memory)
    assert pod_resources(resized(web, c1=LARGE), PodResources({"c1": SMALL}), now, MACHINE, SMALL) == SMALL


def test_coarse_weight_reads_as_the_allocation() -> None:
    web = placed(pod(container("c1", {"cpu": "200m"})))
    now = PodValues(shares=185, weight=8, quota=None, period=100_000, memory=None)
    assert pod_resources(web, PodResources(), now, MACHINE, None) == needs({"cpu": "200m"})


def test_partly_limited_pod_keeps_its_limits_in_the_report() -> None:
    web = placed(pod(container("c1", {"cpu": "100m"}, {"cpu": "200m"}), container("c2", {"cpu": "100m"})))
    now = PodValues(shares=204, quota=None, period=100_000, memory=None)
    assert pod_resources(web, PodResources(), now, MACHINE, None) == needs({"cpu": "200m"}, {"cpu": "200m"})
