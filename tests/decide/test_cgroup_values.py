"""What containers, pods, tiers and sandboxes are given."""

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.cgroup.container_resources import Machine, container_resources, oom_score_adj
from podfit.decide.cgroup.pod_cgroup import (
    PodConfig,
    burstable_cpu,
    pod_config,
    sandbox_resources,
    sandbox_update,
    spare_processes,
    tier_shares,
)
from support.placed import placed
from support.pods import amounts, container, needs, pod, sidecar

GI, MI = 1 << 30, 1 << 20
MACHINE = Machine(memory=8 * GI)
V2 = Machine(memory=8 * GI, cgroup="v2")
LIMITS = {"cpu": "200m", "memory": "128Mi"}


@pytest.mark.parametrize(
    ("given", "config"),
    [
        (pod(container("c1")), PodConfig(shares=2)),
        (pod(container("c1", LIMITS, LIMITS)), PodConfig(shares=204, quota=20_000, memory=128 * MI)),
        (pod(container("c1", {"cpu": "100m"}, LIMITS), container("c2", {"cpu": "50m"})), PodConfig(shares=153)),
        (
            pod(container("c1", {"cpu": "100m"}, LIMITS), container("c2", {}, {"memory": "64Mi"})),
            PodConfig(shares=102, memory=192 * MI),
        ),
        (
            pod(
                container("c1", {"cpu": "50m"}, LIMITS),
                init=(container("i1", {"cpu": "200m"}), sidecar("s1", {}, LIMITS)),
            ),
            PodConfig(shares=204),
        ),
        (
            pod(container("c1", {"cpu": "50m"}, LIMITS), init=(sidecar("s1", {"cpu": "10m"}, LIMITS), container("i1"))),
            PodConfig(shares=61, quota=40_000, memory=256 * MI),
        ),
        (
            pod(container("c1", {"cpu": "50m"}), resources=needs({"cpu": "100m"}, LIMITS)),
            PodConfig(shares=102, quota=20_000, memory=128 * MI),
        ),
        (
            pod(container("c1", {"cpu": "1m"}, {"cpu": "1m", "memory": "16Mi"})),
            PodConfig(shares=2, quota=1000, memory=16 * MI),
        ),
    ],
)
def test_pod_config(given: Pod, config: PodConfig) -> None:
    assert pod_config(placed(given), MACHINE) == config


def test_no_cfs_quota_when_it_is_off() -> None:
    machine = Machine(memory=GI, cfs_quota=False)
    web = placed(pod(container("c1", LIMITS, LIMITS)))
    assert pod_config(web, machine).quota is None
    assert container_resources(web, web.spec.containers[0], machine).cpu_quota == 0


def test_tiers() -> None:
    burstable, guaranteed = pod(container("c1", {"cpu": "100m"})), pod(container("c1", LIMITS, LIMITS))
    active = [placed(burstable), placed(burstable), placed(guaranteed), placed(pod(container("c1")))]
    assert tier_shares(sum(map(burstable_cpu, active))) == {"Burstable": 204, "BestEffort": 2}


def test_container_values() -> None:
    web = placed(pod(container("c1", {"cpu": "100m"}, LIMITS), container("c2", None, {"cpu": "1"}), container("c3")))
    first, second, third = (container_resources(web, container, MACHINE) for container in web.spec.containers)
    assert (first.cpu_shares, first.cpu_quota, first.cpu_period, first.memory_limit) == (102, 20_000, 100_000, 128 * MI)
    assert (second.cpu_shares, second.cpu_quota) == (1024, 100_000)
    assert (third.cpu_shares, third.cpu_quota, third.memory_limit) == (2, 0, 0)
    assert first.unified == {}
    assert container_resources(web, web.spec.containers[0], V2).unified == {"memory.oom.group": "1"}


def test_container_inherits_the_pods_limit() -> None:
    web = placed(pod(container("c1"), resources=needs(None, LIMITS)))
    values = container_resources(web, web.spec.containers[0], MACHINE)
    assert (values.cpu_quota, values.memory_limit) == (20_000, 128 * MI)


def test_hugepages_and_swap() -> None:
    machine = Machine(memory=8 * GI, cgroup="v2", page_sizes=("2MB", "1GB"), swap=GI, swap_controller=True)
    limits = {"memory": "2Gi", "hugepages-2Mi": "4Mi"}
    web = placed(pod(container("c1", {"memory": "1Gi"}, limits), container("c2")))
    first, second = (container_resources(web, container, machine) for container in web.spec.containers)
    assert first.hugepages == {"2MB": 4 * MI, "1GB": 0}
    assert first.unified["memory.swap.max"] == str(128 * MI)  # an eighth of the memory, an eighth of the swap
    assert second.unified["memory.swap.max"] == "0"


NODE_CRITICAL = 2_000_001_000


@pytest.mark.parametrize(
    ("given", "score"),
    [
        (pod(container("c1")), 1000),
        (pod(container("c1", LIMITS, LIMITS)), -997),
        (pod(container("c1", {"cpu": "1"}), priority=NODE_CRITICAL), -997),
        (pod(container("c1", {"cpu": "1"})), 999),
        (pod(container("c1", {"memory": "4Gi"})), 500),
        (pod(container("c1", {"memory": "8Gi"})), 3),
        (pod(container("c1", {"memory": "1Gi"}), container("c2"), resources=needs({"memory": "3Gi"})), 750),
    ],
)
@pytest.mark.row("R-185")
def test_oom_score_adj(given: Pod, score: int) -> None:
    web = placed(given)
    assert oom_score_adj(web, web.spec.containers[0], 8 * GI) == score


@pytest.mark.row("R-185")
def test_sidecar_outlives_the_containers_it_serves() -> None:
    web = placed(pod(container("c1", {"memory": "4Gi"}), init=(sidecar("s1", {"memory": "1Gi"}),)))
    assert oom_score_adj(web, web.spec.init_containers[0], 8 * GI) == 500


def test_sandbox() -> None:
    extra = amounts({"cpu": "100m", "memory": "16Mi"})
    web = placed(pod(container("c1", {"cpu": "100m"}, LIMITS), overhead=extra))
    made = sandbox_resources(web, MACHINE)
    assert (made.resources.cpu_shares, made.resources.cpu_quota, made.resources.memory_limit) == (102, 20_000, 128 * MI)
    assert made.overhead is not None
    assert (made.overhead.cpu_shares, made.overhead.cpu_quota, made.overhead.memory_limit) == (102, 10_000, 16 * MI)
    told = sandbox_update(web, pod_config(web, MACHINE), MACHINE).resources
    assert (told.cpu_shares, told.cpu_quota, told.memory_limit) == (102, 20_000, 128 * MI)
    assert sandbox_resources(placed(pod(container("c1"))), MACHINE).overhead is None


@pytest.mark.parametrize(("machine", "most"), [(32768, 8192), (7, 1), (3, 1), (0, None)])
def test_borrowers_have_a_quarter_of_the_process_numbers(machine: int, most: int | None) -> None:
    assert spare_processes(Machine(memory=GI, processes=machine)) == most
