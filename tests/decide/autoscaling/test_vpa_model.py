"""The rules of the model one by one; whole histories are in test_vpa_histories."""

import math
from typing import Any

import numpy as np
import pytest

from podfit.api.autoscaling_k8s.v1 import PodResourcePolicy
from podfit.api.meta.codec import convert, decode, encode
from podfit.core.selectors import Requirement, Selector, from_map
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.estimate import multiplier, steps
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.model import LARGEST
from podfit.decide.autoscaling.tracked import PodKey, VpaKey

DAY, NOW = 86_400.0, 1_770_000_000.0
VPA, POD = VpaKey("ns", "v"), PodKey("ns", "p")
MI = 1024 * 1024


def state(*containers: str, policy: dict[str, Any] | None = None, **gates: bool) -> ClusterState:
    found = ClusterState(gates=Gates(**gates))
    read = convert({"containerPolicies": [policy]}, PodResourcePolicy) if policy else None
    found.set_vpa(VPA, from_map({"app": "a"}), read)
    found.set_pod(POD, {"app": "a"}, containers or ("c",), NOW)
    return found


def memory(state: ClusterState, amount: float, time: float, container: str = "c") -> bool:
    slot = state.slot(POD, container)
    assert slot is not None
    return bool(state.model.add_memory(np.array([slot]), np.array([float(amount)]), np.array([time]))[0])


def cpu(state: ClusterState, millicores: float, time: float, container: str = "c") -> bool:
    slot = state.slot(POD, container)
    assert slot is not None
    return bool(state.model.add_cpu(np.array([slot]), np.array([float(millicores)]), np.array([time]))[0])


def oom(state: ClusterState, requested: int, time: float) -> bool:
    slot = state.slot(POD, "c")
    assert slot is not None
    return state.model.add_oom(slot, requested, time)


def peak(state: ClusterState, container: str = "c") -> float:
    slot = state.slot(POD, container)
    table = state.model.containers
    return float(max(table.usage_peak[slot], table.oom_peak[slot]))


def targets(state: ClusterState) -> dict[str, tuple[str, str]]:
    every = state.recommend({VPA: {}})[VPA].container_recommendations
    return {
        resources.container_name: (str(resources.target.get("cpu")), str(resources.target.get("memory")))
        for resources in every
    }


@pytest.mark.row("V-021")
def test_samples_that_are_not_new_are_refused() -> None:
    found = state()
    assert [cpu(found, *sample) for sample in ((5, NOW), (5, NOW), (5, NOW - 1), (-1, NOW + 1), (5, NOW + 1))] == [
        True, False, False, False, True,
    ]  # fmt: skip
    assert [memory(found, *sample) for sample in ((5, NOW), (5, NOW), (5, NOW - 1), (-1, NOW + 1))] == [
        True, True, False, False,
    ]  # fmt: skip


@pytest.mark.row("V-021", "V-022", "V-023")
def test_a_batch_is_as_its_samples_one_after_the_other() -> None:
    random = np.random.default_rng(7)
    apart, together = state("c", "d"), state("c", "d")
    names = random.choice(["c", "d"], 300).tolist()
    times = NOW + np.sort(random.integers(0, 3 * int(DAY), 300)) - random.integers(0, 2, 300) * 20_000.0
    amounts = random.integers(-1, 10**9, 300).astype(float)
    for add in ("add_cpu", "add_memory"):
        slots = np.array([together.slot(POD, name) for name in names], dtype=np.intp)
        at_once = getattr(together.model, add)(slots, amounts, times)
        in_turn = [
            getattr(apart.model, add)(slots[n : n + 1], amounts[n : n + 1], times[n : n + 1])[0] for n in range(300)
        ]
        assert at_once.tolist() == in_turn
        assert 0 < sum(in_turn) < 300
    for name in ("last_cpu", "last_memory", "window_end", "usage_peak"):
        assert (getattr(apart.model.containers, name) == getattr(together.model.containers, name)).all()
    for bank in ("cpu", "memory"):
        one, other = getattr(apart.model.aggregates, bank), getattr(together.model.aggregates, bank)
        assert one.weights == pytest.approx(other.weights, rel=1e-9)


@pytest.mark.row("V-022", "V-023")
def test_a_window_keeps_its_largest_value() -> None:
    found = state()
    total = found.model.aggregates.memory.total
    memory(found, 100 * MI, NOW)
    first = total.sum()
    for amount, expected in ((50, 100), (300, 300), (200, 300)):
        memory(found, amount * MI, NOW + amount)
        assert peak(found) == expected * MI
        assert total.sum() == pytest.approx(first)
    memory(found, 10 * MI, NOW + DAY)
    assert peak(found) == 10 * MI
    assert total.sum() == pytest.approx(3 * first)  # a day later a sample weighs twice as much


def test_a_first_reading_of_nothing_does_not_close_the_window() -> None:
    """Upstream takes no larger value for a whole interval then."""
    found = state()
    memory(found, 0, NOW)
    memory(found, 900 * MI, NOW + 60)
    assert peak(found) == 900 * MI
    (part,) = [merged for _, merged in found.merged(found.members([VPA]))]
    assert part.memory.percentiles([0.9])[0, 0] > 900 * MI


@pytest.mark.row("V-024")
def test_memory_that_ran_out_is_bumped_once_for_each_request() -> None:
    found = state()
    memory(found, 200 * MI, NOW)
    oom(found, 300 * MI, NOW + 1)
    assert peak(found) == 400 * MI  # 100 MiB is more than 20 %
    oom(found, 300 * MI, NOW + 2)
    assert peak(found) == 400 * MI
    oom(found, 1000 * MI, NOW + 3)
    assert peak(found) == 1200 * MI


@pytest.mark.row("V-025")
def test_an_old_oom_is_refused_and_never_moves_the_clock_back() -> None:
    found = state()
    memory(found, 200 * MI, NOW)
    assert not oom(found, 300 * MI, NOW - DAY - 1)
    assert oom(found, 300 * MI, NOW - DAY)
    assert not memory(found, 1, NOW - 1)


@pytest.mark.row("V-028")
def test_overrides_of_a_vpa_hold_with_their_gate_and_as_long_as_they_are_given() -> None:
    own = {"containerName": "*", "oomBumpUpRatio": "3", "oomMinBumpUp": "0", "memoryAggregationIntervalSeconds": 60}
    for gate, expected in ((True, 3000), (False, 1200)):
        found = state(policy=own, per_vpa_config=gate)
        oom(found, 1000 * MI, NOW)
        assert peak(found) == expected * MI
    found = state(policy=own, per_vpa_config=True)
    found.set_vpa(VPA, from_map({"app": "a"}), None)
    oom(found, 1000 * MI, NOW)
    assert peak(found) == 1200 * MI


@pytest.mark.row("V-026")
def test_replicas_share_and_other_labels_do_not() -> None:
    found = state()
    for name, labels in (("q", {"app": "a"}), ("r", {"app": "a", "v": "2"}), ("s", {"app": "b"})):
        found.set_pod(PodKey("ns", name), labels, ["c"], NOW)
    found.set_pod(PodKey("other", "p"), {"app": "a"}, ["c"], NOW)
    members = found.members([VPA])
    assert members.names == [(VPA, "c")]
    assert len(members.rows) == 2
    assert found.model.aggregates.slots.used.sum() == 4
    assert found.model.containers.slots.used.sum() == 5


@pytest.mark.row("V-026")
def test_selectors_without_a_value_find_their_pods_too() -> None:
    found = state()
    other = VpaKey("ns", "w")
    found.set_vpa(other, Selector((Requirement("app", "Exists"),)), None)
    assert found.members([other]).names == [(other, "c")]
    found.set_pod(PodKey("ns", "q"), {"x": "y"}, ["d"], NOW)
    assert found.members([other]).names == [(other, "c")]
    found.set_vpa(other, Selector((Requirement("app", "DoesNotExist"),)), None)
    assert found.members([other]).names == [(other, "d")]


@pytest.mark.row("V-029", "V-031")
def test_containers_without_samples_share_the_minimum_of_the_pod() -> None:
    assert targets(state()) == {"c": ("25m", "250Mi")}
    assert targets(state("c", "d")) == {"c": ("12m", "125Mi"), "d": ("12m", "125Mi")}


@pytest.mark.row("V-032")
def test_a_policy_leaves_containers_and_resources_out() -> None:
    assert targets(state("c", "d", policy={"containerName": "d", "mode": "Off"})) == {"c": ("25m", "250Mi")}
    assert targets(state(policy={"containerName": "*", "controlledResources": ["cpu"]})) == {"c": ("25m", "None")}
    assert targets(state(policy={"containerName": "*", "controlledResources": []})) == {"c": ("None", "None")}


@pytest.mark.row("V-030")
def test_confidence_moves_the_bounds() -> None:
    half, none = np.array([0.5]), np.array([0.0])
    assert multiplier("upper", half)[0] == 3
    assert multiplier("lower", half)[0] == pytest.approx(0.996, abs=1e-4)
    assert (multiplier("upper", none)[0], multiplier("lower", none)[0]) == (math.inf, 0)
    found = state()
    for minute in range(720):
        cpu(found, 1000, NOW + 60 * minute)
    (estimates,) = [estimate for _, estimate in found.estimates(found.members([VPA]))]
    assert estimates.confidence_cpu[0] == pytest.approx(0.5, rel=2e-3)
    found = state()
    cpu(found, 1000, NOW)
    (estimates,) = [estimate for _, estimate in found.estimates(found.members([VPA]))]
    assert estimates.cpu["upper"].floor[0] == LARGEST


def test_every_step_tells_its_value_and_its_reason() -> None:
    found = state()
    for minute in range(60):
        cpu(found, 100, NOW + 60 * minute)
    (estimates,) = [estimate for _, estimate in found.estimates(found.members([VPA]))]
    told = [(step.name, step.value, step.reason) for step in steps(estimates, "cpu", "upper", 0)]
    assert told == [
        ("percentile", 110, "95 % of 60 CPU samples were not above it"),
        ("margin", 126, "15 % on top"),
        ("confidence", 3201, "times 25.4 at a confidence of 0.041"),
        ("minimum", 3201, "its share of the pod's minimum is 25"),
    ]
    told = [(step.name, step.value, step.reason) for step in steps(estimates, "memory", "target", 0)]
    assert told == [
        ("percentile", 0, "no samples of memory"),
        ("margin", 0, "15 % on top"),
        ("minimum", 250 * MI, "raised to its share of the pod's minimum"),
    ]


@pytest.mark.row("V-035")
def test_aggregates_end_eight_days_after_their_last_sample() -> None:
    found = state("c", "d")
    cpu(found, 5, NOW + DAY)
    expired = found.model.aggregates.expired
    assert expired(NOW + 8 * DAY - 1).sum() == 0
    assert expired(NOW + 8 * DAY).sum() == 1
    assert expired(NOW + 9 * DAY).sum() == 2


@pytest.mark.row("V-036")
def test_what_was_learnt_of_pods_that_are_gone_ends_when_it_has_expired() -> None:
    found = state("c", "idle")
    assert cpu(found, 100, NOW)
    assert found.pods_of(VPA) == 1
    assert found.forget_ended(NOW + 9 * DAY) == 0  # its pod lives: what is known of it is all there is
    found.remove_pod(POD)
    assert found.pods_of(VPA) == 0
    assert found.forget_ended(NOW + 7 * DAY) == 1
    assert [
        recommendation.container_name for recommendation in found.recommend({VPA: {}})[VPA].container_recommendations
    ] == ["c"]
    assert found.forget_ended(NOW + 8 * DAY) == 1
    assert found.recommend({VPA: {}})[VPA].container_recommendations == ()
    found.set_pod(POD, {"app": "a"}, ["c"], NOW + 8 * DAY)
    assert found.pods_of(VPA) == 1
    assert cpu(found, 200, NOW + 8 * DAY)
    assert found.found({VPA: {}})[VPA].unknown == {("c", "memory")}


def test_a_checkpoint_comes_back_without_the_peak_of_the_running_window() -> None:
    found = state()
    cpu(found, 500, NOW)
    memory(found, 400 * MI, NOW)
    memory(found, 700 * MI, NOW + DAY)
    ((_, (saved,)),) = found.checkpoints([VPA], NOW + DAY + 60)
    assert saved.metadata.name == "v-c"
    again = ClusterState()
    again.set_vpa(VPA, from_map({"app": "a"}), None)
    again.restore(decode(encode(saved), type(saved)), NOW + DAY + 60)
    (part,) = [merged for _, merged in again.merged(again.members([VPA]))]
    assert 400 * MI < part.memory.percentiles([1.0])[0, 0] < 450 * MI
    assert (part.count[0], part.first[0], part.last[0]) == (1, NOW, NOW)
    assert 500 < part.cpu.percentiles([1.0])[0, 0] * 1000 < 530


def test_what_was_restored_stays_while_the_target_cannot_be_read() -> None:
    """Upstream drops it when the selector changes."""
    found = state()
    cpu(found, 900, NOW)
    ((_, (saved,)),) = found.checkpoints([VPA], NOW)
    again = ClusterState()
    again.set_vpa(VPA, from_map({"app": "a"}), None)
    again.restore(saved, NOW)
    before = targets(again)
    again.set_vpa(VPA, from_map({"nothing": "matches"}), None)
    assert targets(again) == before != {"c": ("25m", "250Mi")}
    again.remove_vpa(VPA)
    assert not again.model.aggregates.slots.used.any()


@pytest.mark.row("V-037")
@pytest.mark.parametrize("change", [{"version": "v2"}, {"cpuHistogram": {"bucketWeights": {"900": 1}}}])
def test_a_checkpoint_that_cannot_be_used_is_refused(change: dict[str, Any]) -> None:
    found = state()
    cpu(found, 900, NOW)
    ((_, (saved,)),) = found.checkpoints([VPA], NOW)
    document = convert({"spec": {"vpaObjectName": "v", "containerName": "c"}}, type(saved))
    wrong = convert({"metadata": {"namespace": "ns"}, "spec": {"vpaObjectName": "v", "containerName": "c"},
                     "status": {"version": "v3"} | change}, type(document))  # fmt: skip
    used = found.model.aggregates.slots.used.sum()
    with pytest.raises(ValueError, match=r"unsupported checkpoint version 'v2'|bucket 900"):
        found.restore(wrong, NOW)
    assert found.model.aggregates.slots.used.sum() == used


def test_pods_come_and_go_and_their_places_are_used_again() -> None:
    found = state()
    for round_ in range(100):
        found.set_pod(PodKey("ns", f"q{round_}"), {"app": "a"}, ["c", "d"], NOW)
        found.remove_pod(PodKey("ns", f"q{round_}"))
    assert found.model.containers.slots.used.sum() == 1
    assert found.model.containers.slots.capacity < 20
    found.set_pod(POD, {"app": "a"}, ["d"], NOW)
    assert found.slot(POD, "c") is None
    assert found.slot(POD, "d") is not None
