"""Memory set aside on NUMA nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.api.core.v1.pods.types import Pod
from podfit.core.features import DEFAULT_GATES
from podfit.decide.cgroup.container_resources import Machine
from podfit.decide.managers.memory import Bank, Block, MemoryState, NoNode, assign, release
from podfit.decide.resize import verdict as verdicts
from podfit.decide.resize.neighbours import NOBODY
from support.placed import placed
from support.pods import amounts, container, pod, sidecar

GI = 1 << 30
TWO = MemoryState(banks={0: Bank(2 * GI, GI), 1: Bank(3 * GI)})


def asks(memory: str, name: str = "web") -> Pod:
    all_of_it = {"cpu": "100m", "memory": memory}
    return placed(pod(container("c1", all_of_it, all_of_it), name=name))


def test_memory_comes_from_the_first_node_that_has_it_and_goes_back() -> None:
    first = assign(asks("1Gi"), TWO, DEFAULT_GATES)
    assert isinstance(first, MemoryState)
    assert first.assigned == {"web": {"c1": Block(0, GI)}}
    second = assign(asks("2Gi", "big"), first, DEFAULT_GATES)
    assert isinstance(second, MemoryState)
    assert second.assigned["big"] == {"c1": Block(1, 2 * GI)}
    assert (second.free(0), second.free(1)) == (0, GI)
    assert assign(asks("2Gi", "more"), second, DEFAULT_GATES) == NoNode()
    assert assign(asks("5Gi"), second, DEFAULT_GATES) is second, "a block never changes"
    assert release("big", second) == first
    assert release("stranger", first) is first


def test_a_burstable_pod_has_nothing_set_aside() -> None:
    assert assign(placed(pod(container("c1", {"memory": "9Gi"}))), TWO, DEFAULT_GATES) is TWO


def test_what_an_init_container_held_is_used_again() -> None:
    def of(memory: str) -> dict[str, str]:
        return {"cpu": "100m", "memory": memory}

    init = (container("i1", of("2Gi"), of("2Gi")), sidecar("s1", of("1Gi"), of("1Gi")))
    state = assign(placed(pod(container("c1", of("2Gi"), of("2Gi")), init=init)), TWO, DEFAULT_GATES)
    assert isinstance(state, MemoryState)
    assert state.assigned["web"]["s1"] == Block(0, GI)
    assert state.assigned["web"]["c1"] == Block(1, 2 * GI)
    assert state.assigned["web"]["i1"] == Block(1, 0)


@pytest.mark.row("R-114")
def test_a_pod_that_no_node_can_hold_is_rejected_in_upstreams_words() -> None:
    node = verdicts.NodeView(
        allocatable=amounts({"cpu": "4", "memory": "9Gi"}), machine=Machine(memory=9 * GI), memory=TWO
    )
    verdict = verdicts.admit(asks("4Gi"), node, NOBODY)
    assert isinstance(verdict, verdicts.Deferred)
    assert verdict.reason == "UnexpectedAdmissionError"
    assert verdict.message == (
        "Allocate failed due to [memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough "
        "memory is available, which is unexpected"
    )


SIZES = tuple(asks(memory, name) for name, memory in (("a", "512Mi"), ("b", "1Gi"), ("c", "2Gi"), ("d", "3Gi")))


@given(st.lists(st.tuples(st.sampled_from(SIZES), st.booleans()), max_size=20))
def test_no_node_promises_more_than_it_has(story: list[tuple[Pod, bool]]) -> None:
    state = TWO
    for one, comes in story:
        outcome = assign(one, state, DEFAULT_GATES) if comes else release(one.metadata.uid, state)
        state = outcome if isinstance(outcome, MemoryState) else state
        assert all(state.free(node) >= 0 for node in state.banks)
    for one in SIZES:
        state = release(one.metadata.uid, state)
    assert state == TWO
