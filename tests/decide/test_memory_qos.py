"""What of a memory request reaches the kernel of cgroup v2."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.decide.cgroup.container_resources import Machine, container_resources
from podfit.decide.cgroup.memory_qos import PAGE, Kept, MemoryQoS
from podfit.decide.cgroup.pod_cgroup import pod_config, pod_kept
from support.placed import placed
from support.pods import container, pod

GI, MI = 1 << 30, 1 << 20
QOS = MemoryQoS(allocatable=8 * GI)
TIERED = MemoryQoS(allocatable=8 * GI, reserve=True)
SIZES = st.integers(min_value=0, max_value=8 * GI)


@pytest.mark.parametrize(
    ("request_", "limit", "high"),
    [
        (100 * MI, 200 * MI, 190 * MI),
        (100 * MI, 100 * MI, None),
        (0, 0, None),
        (0, 100 * MI, 90 * MI),
        (100 * MI, 0, (100 * MI + int(0.9 * (8 * GI - 100 * MI))) // PAGE * PAGE),
        (4096, 4097, None),
        (8 * GI, 0, None),
    ],
)
def test_high_lies_between_request_and_limit(request_: int, limit: int, high: int | None) -> None:
    assert QOS.high(request_, limit) == high


def test_the_factor_says_where() -> None:
    assert MemoryQoS(allocatable=GI, factor=0.5).high(100 * MI, 200 * MI) == 150 * MI


@given(request=SIZES, limit=SIZES, factor=st.floats(min_value=0.01, max_value=1))
def test_high_is_whole_pages_above_the_request_and_within_the_limit(request: int, limit: int, factor: float) -> None:
    high = MemoryQoS(allocatable=8 * GI, factor=factor).high(request, limit)
    if high is not None and (not limit or request <= limit):
        assert high % PAGE == 0
        assert request < high <= (limit or 8 * GI)


@pytest.mark.parametrize(
    ("qos", "kept"), [("Guaranteed", Kept(min=MI)), ("Burstable", Kept(low=MI)), ("BestEffort", Kept())]
)
def test_what_is_kept_follows_the_class_and_the_policy(qos: str, kept: Kept) -> None:
    assert TIERED.kept(qos, MI) == kept
    assert QOS.kept(qos, MI) == Kept()


def test_tiers_pass_on_what_their_pods_keep() -> None:
    burstable = placed(pod(container("c1", {"memory": "100Mi"}), container("c2", {"memory": "20Mi"})))
    guaranteed = placed(pod(container("c1", {"cpu": "1", "memory": "64Mi"}, {"cpu": "1", "memory": "64Mi"})))
    active = [burstable, guaranteed, placed(pod(container("c1")))]
    assert TIERED.tiers(active) == {"Guaranteed": Kept(min=184 * MI), "Burstable": Kept(low=120 * MI)}
    assert QOS.tiers(active) == {"Guaranteed": Kept(), "Burstable": Kept()}


def test_a_container_is_told_through_unified() -> None:
    web = placed(pod(container("c1", {"memory": "100Mi"}, {"memory": "200Mi"})))
    machine = Machine(memory=8 * GI, cgroup="v2", memory_qos=TIERED)
    unified = container_resources(web, web.spec.containers[0], machine).unified
    assert unified == {
        "memory.oom.group": "1",
        "memory.min": "0",
        "memory.low": str(100 * MI),
        "memory.high": str(190 * MI),
    }
    assert pod_kept(web, machine) == Kept(low=100 * MI)


def test_a_container_resized_to_request_equal_limit_loses_its_high() -> None:
    """Otherwise it would stay throttled at what it had."""
    web = placed(pod(container("c1", {"memory": "200Mi"}, {"memory": "200Mi"})))
    machine = Machine(memory=8 * GI, cgroup="v2", memory_qos=QOS)
    assert container_resources(web, web.spec.containers[0], machine).unified["memory.high"] == "max"


def test_without_the_gate_or_on_v1_nothing_is_said() -> None:
    web = placed(pod(container("c1", {"memory": "100Mi"}, {"memory": "200Mi"})))
    for machine in (Machine(memory=8 * GI, cgroup="v2"), Machine(memory=8 * GI)):
        assert "memory.high" not in container_resources(web, web.spec.containers[0], machine).unified
        assert pod_kept(web, machine) is None
    assert pod_config(web, Machine(memory=8 * GI)).memory == 200 * MI
