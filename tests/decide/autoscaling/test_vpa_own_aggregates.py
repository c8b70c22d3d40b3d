"""Samples by slice and of pods as a whole: counted beside those of all pods, bounded, and kept in checkpoints."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from podfit.api.autoscaling_k8s.v1 import ContainerResourcePolicy
from podfit.core.selectors import from_map
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.gates import NO_GATES, Gates
from podfit.decide.autoscaling.model import NOBODY
from podfit.decide.autoscaling.own_aggregates import MOST_SAVED, MOST_VPAS, SAVED_AT_ONCE
from podfit.decide.autoscaling.scope import WORKLOAD, Rules, Scope
from podfit.decide.autoscaling.slices import MOST_SLICES
from podfit.decide.autoscaling.status import Estimated
from podfit.decide.autoscaling.tracked import PodKey, VpaKey

NOW = datetime(2026, 11, 27, tzinfo=UTC)
AT = NOW.timestamp()
MI = 1 << 20
KEY = VpaKey("shop", "web")
BY_POD = Rules(Scope("pod"))


def state(number: int, *, rules: Rules = BY_POD, vpas: int = 1, gates: Gates = NO_GATES) -> ClusterState:
    """Pods web-0, web-1, ... of one label, each with the container app."""
    made = ClusterState(gates=gates)
    for place in range(vpas):
        made.set_vpa(VpaKey("shop", f"web{place or ''}"), from_map({"app": "web"}), None, rules, AT)
    for place in range(number):
        made.set_pod(PodKey("shop", f"web-{place}"), {"app": "web"}, ("app",), AT, f"n{place % 7}")
    return made


def use(made: ClusterState, name: str, cpu: int, *, minutes: int = 60, memory: int = 100) -> None:
    for minute in range(minutes):
        made.add_sample(PodKey("shop", name), "app", AT + 60 * minute, cpu=cpu, memory=memory * MI)


def target(found: dict[str, Estimated], name: str, resource: str = "cpu") -> int:
    (one,) = found[name].recommendation.container_recommendations
    return one.target[resource].milli() // (1000 * MI if resource == "memory" else 1)


def test_vpa_samples_count_for_all_pods_and_for_their_slice() -> None:
    made = state(2)
    use(made, "web-0", 1000, memory=900)
    use(made, "web-1", 100)
    found = made.found_by_slice(KEY, {})
    assert 1000 < target(found, "web-0") < 1300
    assert 100 < target(found, "web-1") < 160
    assert 900 < target(found, "web-0", "memory") < 1200
    assert target(found, "web-1", "memory") == 250, "the pod's minimum"
    every = made.found({KEY: {}})[KEY].recommendation.container_recommendations[0].target["cpu"].milli()
    assert 1000 < every < 1300, "of both pods"


def test_vpa_slices_by_node_and_by_label() -> None:
    by_node = state(14, rules=Rules(Scope("node")))
    use(by_node, "web-0", 1000)
    use(by_node, "web-8", 100)
    found = by_node.found_by_slice(KEY, {})
    assert sorted(found) == [f"n{number}" for number in range(7)]
    assert target(found, "n0") > 1000 > 160 > target(found, "n1")
    by_label = state(0, rules=Rules(Scope("label", "tier")))
    by_label.set_pod(PodKey("shop", "a"), {"app": "web", "tier": "gold"}, ("app",), AT)
    by_label.set_pod(PodKey("shop", "b"), {"app": "web"}, ("app",), AT)
    assert list(by_label.found_by_slice(KEY, {})) == ["gold"]


def test_vpa_container_that_ran_out_of_memory_raises_its_slice_alone() -> None:
    made = state(2)
    use(made, "web-0", 100)
    use(made, "web-1", 100)
    slot = made.slot(PodKey("shop", "web-0"), "app")
    assert slot is not None
    made.model.add_oom(slot, 2000 * MI, AT + 3600)
    found = made.found_by_slice(KEY, {})
    assert target(found, "web-0", "memory") > 2000
    assert target(found, "web-1", "memory") == 250


def test_vpa_pod_moves_with_its_label_and_its_past_stays() -> None:
    made = state(0, rules=Rules(Scope("label", "tier")))
    key = PodKey("shop", "web-0")
    made.set_pod(key, {"app": "web", "tier": "a"}, ("app",), AT)
    use(made, "web-0", 1000)
    made.set_pod(key, {"app": "web", "tier": "b"}, ("app",), AT)
    for minute in range(60, 120):
        made.add_sample(key, "app", AT + 60 * minute, cpu=100, memory=MI)
    found = made.found_by_slice(KEY, {})
    assert target(found, "a") > 1000
    assert target(found, "b") < 160
    made.remove_pod(key)
    assert made.model.containers.slots.used.sum() == 0
    assert sorted(made.found_by_slice(KEY, {})) == ["a", "b"]


def test_vpa_that_asks_for_nothing_more_leaves_nothing() -> None:
    made = state(20)
    before = int(made.model.aggregates.slots.used.sum()), int(made.model.containers.slots.used.sum())
    assert before == (21, 40)
    made.set_vpa(KEY, from_map({"app": "web"}), None, Rules(), AT)
    assert made.found_by_slice(KEY, {}) == {}
    assert (int(made.model.aggregates.slots.used.sum()), int(made.model.containers.slots.used.sum())) == (1, 20)
    made.set_vpa(KEY, from_map({"app": "web"}), None, Rules(Scope("node")), AT)
    assert len(made.found_by_slice(KEY, {})) == 7
    made.remove_vpa(KEY)
    assert (int(made.model.aggregates.slots.used.sum()), int(made.model.containers.slots.used.sum())) == (1, 20)
    use(made, "web-0", 100)


def test_vpa_slices_of_hostile_sizes_are_bounded() -> None:
    """Ten thousand pods, each a slice, of a hundred VPAs: rows for 500 of four VPAs."""
    made = state(10_000, vpas=100)
    assert int(made.model.aggregates.slots.used.sum()) <= 1 + MOST_VPAS * MOST_SLICES
    assert int(made.model.containers.slots.used.sum()) <= 10_000 + MOST_VPAS * MOST_SLICES
    assert len(made.found_by_slice(KEY, {})) == MOST_SLICES
    assert made.own.left(KEY) == 10_000 - MOST_SLICES
    assert made.own.left(VpaKey("shop", "web99")) == 0
    saved = dict(made.checkpoints([KEY], AT))
    assert len(saved[KEY]) == 1 + SAVED_AT_ONCE


def test_vpa_checkpoints_of_slices_with_many_containers_are_bounded() -> None:
    """A pod of a hundred containers whose label changes again and again."""
    made, containers = state(0, rules=Rules(Scope("label", "tier"))), tuple(f"c{number}" for number in range(100))
    for number in range(MOST_SLICES):
        made.set_pod(PodKey("shop", "a"), {"app": "web", "tier": f"t{number}"}, containers, AT)
    passes = range(2 * MOST_SLICES // SAVED_AT_ONCE)
    saved = [kept for _ in passes for _, every in made.checkpoints([KEY], AT) for kept in every]
    names = {checkpoint.metadata.name for checkpoint in saved if checkpoint.metadata.annotations}
    assert len(names) == MOST_SAVED


def test_vpa_slice_whose_pods_are_gone_makes_room_for_one_that_waits() -> None:
    made = state(MOST_SLICES + 1)
    last = f"web-{MOST_SLICES}"
    assert last not in made.found_by_slice(KEY, {})
    made.remove_pod(PodKey("shop", "web-3"))
    assert "web-3" in made.found_by_slice(KEY, {}), "its pod may come again"
    made.forget_ended(AT)
    found = made.found_by_slice(KEY, {})
    assert last in found
    assert "web-3" not in found
    assert made.own.left(KEY) == 0
    use(made, last, 1000)
    assert target(made.found_by_slice(KEY, {}), last) > 1000


def test_vpa_slices_come_back_from_checkpoints_and_only_where_they_are_asked_for() -> None:
    made = state(60)
    use(made, "web-0", 1000)
    saved = [one for _ in range(2) for every in dict(made.checkpoints([KEY], AT + 3600)).values() for one in every]
    assert len({one.metadata.name for one in saved}) == 1 + 60, "all in two passes"
    again = state(60)
    for checkpoint in {one.metadata.name: one for one in saved}.values():
        again.restore(checkpoint, AT + 3600)
    assert target(again.found_by_slice(KEY, {}), "web-0") == target(made.found_by_slice(KEY, {}), "web-0")
    (of_slice,) = [one for one in saved if one.metadata.annotations.get("podfit.dev/slice") == "web-0"][:1]
    assert of_slice.status.version == "podfit.dev/slice-v3", "which upstream refuses"
    assert again.own.knows(of_slice)
    for rules in (Rules(), Rules(Scope("node"))):
        other = state(60, rules=rules)
        with pytest.raises(ValueError, match="has no aggregation pod"):
            other.restore(of_slice, AT + 3600)
        assert not other.own.knows(of_slice)
    ahead = replace(of_slice, status=replace(of_slice.status, last_sample_start="2099-01-01T00:00:00Z"))
    with pytest.raises(ValueError, match="yet to come"):
        state(60).restore(ahead, AT + 3600)


AS_POLICY = ContainerResourcePolicy(container_name="", mode="Auto")
SCOPES = (Rules(), Rules(Scope("pod")), Rules(Scope("node")), Rules(Scope("label", "tier")), Rules(WORKLOAD, AS_POLICY))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 4)), max_size=40))
def test_vpa_whatever_happens_no_slot_is_lost_or_shared(steps: list[tuple[int, int, int]]) -> None:
    """Pods and VPAs come, change and go: each follower is one pod's, and ends with it."""
    made, seen, there = ClusterState(), set[PodKey](), set[VpaKey]()
    for number, (what, which, how) in enumerate(steps):
        pod_key, vpa_key = PodKey("shop", f"web-{which}"), VpaKey("shop", f"web{which}")
        if what <= 2:
            labels = {"app": "web", **({"tier": f"t{how}"} if how else {})}
            made.set_pod(pod_key, labels, ("app", "side")[: 1 + how % 2], AT + number, f"n{how}")
            seen.add(pod_key)
        elif what == 3 and pod_key in seen:
            made.remove_pod(pod_key)
            seen.remove(pod_key)
        elif what == 4:
            made.set_vpa(vpa_key, from_map({"app": "web"}), None, SCOPES[how], AT + number)
            there.add(vpa_key)
        elif vpa_key in there:
            made.remove_vpa(vpa_key)
            there.remove(vpa_key)
        made.add_sample(pod_key, "app", AT + 60 * number, cpu=100, memory=MI)
        table, used = made.model.containers, made.model.containers.slots.used
        chains = [chain for key in seen for chain in _chains(made, key)]
        slots = [slot for chain in chains for slot in chain]
        assert len(set(slots)) == len(slots) == int(used.sum()), "each belongs to one pod"
        assert all(used[slot] for slot in slots)
        assert all(len(chain) <= 1 + 2 * MOST_VPAS for chain in chains)
        assert made.model.aggregates.slots.used[table.aggregate[slots]].all()
    for key in seen:
        made.remove_pod(key)
    for vpa_key in there:
        made.remove_vpa(vpa_key)
    assert not made.model.containers.slots.used.any()
    made.forget_ended(AT + 30 * 86_400)
    assert not made.model.aggregates.slots.used.any()


def _chains(made: ClusterState, key: PodKey) -> Iterator[list[int]]:
    """The slots of a pod, each with those that follow it."""
    heads = [*made._pods[key].slots, *([whole] if (whole := made.own.whole(key)) is not None else [])]
    for head in heads:
        chain, slot = [head], int(made.model.containers.follower[head])
        while slot != NOBODY:
            chain.append(slot)
            slot = int(made.model.containers.follower[slot])
        yield chain
