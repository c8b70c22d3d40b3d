"""CPUs of one's own: the sets, how they are packed, and who gets them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.api.core.v1.pods.types import Pod
from podfit.core.features import DEFAULT_GATES, FeatureGates
from podfit.decide.cgroup.container_resources import Machine, container_resources
from podfit.decide.cgroup.pod_cgroup import PodValues, pod_config
from podfit.decide.managers import cpu as cpusets
from podfit.decide.managers.cpu import (
    BadCpuSet,
    CpuLocation,
    CpuState,
    TooFew,
    assign,
    flat,
    parse,
    release,
    show,
    take,
)
from podfit.decide.resize import verdict as verdicts
from podfit.decide.resize.neighbours import NOBODY
from support.placed import placed, resized
from support.pods import amounts, container, needs, pod, sidecar

# Two sockets of two cores of two threads: CPU n and n + 4 are one core, the even cores are on socket 0.
SERVER = {cpu: CpuLocation(core=cpu % 4, socket=cpu % 2) for cpu in range(8)}
WHOLE = {"cpu": "2", "memory": "64Mi"}


def guaranteed(cpu: str, name: str = "web", uid: str = "") -> Pod:
    needs_all = {"cpu": cpu, "memory": "64Mi"}
    return placed(pod(container("c1", needs_all, needs_all), name=name), uid=uid)


def given_cpus(state: CpuState | TooFew, uid: str = "web", name: str = "c1") -> str | None:
    assert isinstance(state, CpuState)
    cpus = state.of(uid, name)
    return None if cpus is None else show(cpus)


@pytest.mark.parametrize(("text", "cpus"), [("", set()), ("0", {0}), ("0-2,7", {0, 1, 2, 7}), ("3,1-2", {1, 2, 3})])
def test_sets_are_read(text: str, cpus: set[int]) -> None:
    assert parse(text) == cpus


@pytest.mark.parametrize("text", ["1.3", "2-1", "-1", "a", "1,b"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(BadCpuSet):
        parse(text)


@given(st.frozensets(st.integers(0, 200)))
def test_what_is_written_reads_the_same(cpus: frozenset[int]) -> None:
    assert parse(show(cpus)) == cpus


@pytest.mark.parametrize(
    ("free", "count", "taken"),
    [
        ("0-7", 4, "0,2,4,6"),  # a whole socket
        ("0-7", 2, "0,4"),  # a whole core
        ("1-7", 1, "4"),  # the thread whose core is broken already
        ("1-7", 4, "1,3,5,7"),  # the socket that is still whole
        ("0-7", 5, "0-2,4,6"),
        ("2,5", 2, "2,5"),
    ],
)
def test_cpus_are_packed(free: str, count: int, taken: str) -> None:
    assert take(SERVER, parse(free), count) == parse(taken)


@given(st.frozensets(st.integers(0, 7)), st.integers(0, 9))
def test_as_many_as_asked_for_of_what_is_free_or_nothing(free: frozenset[int], count: int) -> None:
    taken = take(SERVER, free, count)
    if count > len(free):
        assert taken is None
    else:
        assert taken is not None
        assert len(taken) == count
        assert taken <= free


@pytest.mark.parametrize(
    ("asks", "count"),
    [
        (guaranteed("2"), 2),
        (guaranteed("2000m"), 2),
        (guaranteed("1500m"), 0),
        (guaranteed("500m"), 0),
        (placed(pod(container("c1", WHOLE))), 0),
        (placed(pod(container("c1", WHOLE, WHOLE), resources=needs(WHOLE, WHOLE))), 0),
    ],
)
def test_whole_cpus_of_guaranteed_pods_are_exclusive(asks: Pod, count: int) -> None:
    assert cpusets.exclusive_count(asks, asks.spec.containers[0], DEFAULT_GATES) == count


def test_an_assignment_leaves_the_pool_and_comes_back() -> None:
    fresh = CpuState.fresh(flat(4), parse("0"))
    state = assign(guaranteed("2"), fresh, DEFAULT_GATES)
    assert given_cpus(state) == "1-2"
    assert isinstance(state, CpuState)
    assert show(state.shared) == "0,3"
    assert assign(guaranteed("2"), state, DEFAULT_GATES) is state, "an assignment never changes"
    assert assign(guaranteed("2", "other"), state, DEFAULT_GATES) == TooFew(2, 1)
    assert release("web", state) == fresh
    assert release("stranger", state) is state


def test_the_reserved_cpus_are_never_given_away() -> None:
    assert assign(guaranteed("4"), CpuState.fresh(flat(4), parse("0")), DEFAULT_GATES) == TooFew(4, 3)


def test_init_containers_pass_their_cpus_on_and_sidecars_keep_theirs() -> None:
    one = {"cpu": "1", "memory": "64Mi"}
    asks = placed(pod(container("c1", WHOLE, WHOLE), init=(container("i1", WHOLE, WHOLE), sidecar("s1", one, one))))
    state = assign(asks, CpuState.fresh(flat(5), parse("0")), DEFAULT_GATES)
    assert given_cpus(state, name="i1") == "1-2"
    assert given_cpus(state, name="s1") == "1"
    assert given_cpus(state, name="c1") == "2-3"
    assert isinstance(state, CpuState)
    assert show(state.shared) == "0,4"


def test_after_a_loss_containers_get_what_they_run_on() -> None:
    lost = CpuState(topology=flat(4), reserved=parse("0"), shared=parse("0-3"), seen={"b": {"c1": parse("1")}})
    first = assign(guaranteed("1", "a"), lost, DEFAULT_GATES)
    assert given_cpus(first, "a") == "2"
    assert isinstance(first, CpuState)
    assert given_cpus(assign(guaranteed("1", "b"), first, DEFAULT_GATES), "b") == "1"
    assert given_cpus(assign(guaranteed("2", "b"), lost, DEFAULT_GATES), "b") == "1-2", "another size, other CPUs"


def view(state: CpuState) -> verdicts.NodeView:
    room = amounts({"cpu": "4", "memory": "8Gi"})
    return verdicts.NodeView(allocatable=room, machine=Machine(memory=8 << 30), cpu_manager="static", cpus=state)


def test_a_pod_without_cpus_of_its_own_to_be_had_is_rejected_in_upstreams_words() -> None:
    node = view(CpuState.fresh(flat(4), parse("0")))
    node = verdicts.occupied(guaranteed("2"), node)
    verdict = verdicts.admit(guaranteed("2", "other"), node, NOBODY)
    assert isinstance(verdict, verdicts.Deferred)
    assert verdict.reason == "UnexpectedAdmissionError"
    assert verdict.message == (
        "Allocate failed due to not enough cpus available to satisfy request: requested=2, available=1, which is "
        "unexpected"
    )
    assert verdicts.admit(guaranteed("1500m", "other"), node, NOBODY) == verdicts.Fits()
    assert verdicts.occupied(guaranteed("1500m", "other"), node) is node


def test_with_the_gate_a_pod_grows_on_the_cpus_that_it_has() -> None:
    """1.36 lifts the prohibition and no more: the set of CPUs stays that of the start."""
    gates = FeatureGates({"InPlacePodVerticalScalingExclusiveCPUs": True})
    node = view(CpuState.fresh(flat(4), parse("0")))
    small = guaranteed("1")
    node = verdicts.occupied(
        small,
        verdicts.NodeView(
            allocatable=node.allocatable,
            machine=Machine(memory=8 << 30, gates=gates),
            cpu_manager="static",
            cpus=node.cpus,
        ),
    )
    big = resized(small, c1=needs(WHOLE, WHOLE))
    assert verdicts.resize(big, small, node, NOBODY) == verdicts.Fits()
    assert verdicts.occupied(big, node).cpus is node.cpus


@pytest.mark.parametrize(
    ("asks", "gates", "quota"),
    [
        (guaranteed("2"), DEFAULT_GATES, -1),
        (guaranteed("1500m"), DEFAULT_GATES, 150_000),
        (guaranteed("2"), FeatureGates({"DisableCPUQuotaWithExclusiveCPUs": False}), 200_000),
    ],
)
def test_no_quota_for_who_has_cpus_alone(asks: Pod, gates: FeatureGates, quota: int) -> None:
    machine = Machine(memory=8 << 30, static_cpus=True, gates=gates)
    assert container_resources(asks, asks.spec.containers[0], machine).cpu_quota == quota
    assert pod_config(asks, machine).quota == quota
    without = Machine(memory=8 << 30, gates=gates)
    assert container_resources(asks, asks.spec.containers[0], without).cpu_quota > 0


def test_a_pod_quota_is_taken_away_when_a_container_gets_cpus_alone() -> None:
    config = pod_config(guaranteed("2"), Machine(memory=8 << 30, static_cpus=True))
    limited = PodValues(shares=2048, quota=150_000, period=100_000, memory=None)
    assert limited.limit_change(config, "cpu") > 0
    assert PodValues(shares=2048, quota=None, period=100_000, memory=None).limit_change(config, "cpu") == 0


PODS = tuple(guaranteed(cpu, name) for name, cpu in (("a", "1"), ("b", "2"), ("c", "3"), ("d", "1500m"), ("e", "2")))


@given(st.lists(st.tuples(st.sampled_from(PODS), st.booleans()), max_size=30))
def test_cpus_are_neither_shared_twice_nor_lost(story: list[tuple[Pod, bool]]) -> None:
    """Whatever comes and goes: what is assigned is apart, and with the pool it is the whole machine."""
    state = CpuState.fresh(SERVER, parse("0,4"))
    for asks, comes in story:
        outcome = assign(asks, state, DEFAULT_GATES) if comes else release(asks.metadata.uid, state)
        state = outcome if isinstance(outcome, CpuState) else state
        owned = [cpus for containers in state.assigned.values() for cpus in containers.values()]
        assert sum(map(len, owned)) + len(state.shared) == len(SERVER)
        assert state.shared.union(*owned) == frozenset(SERVER)
        assert state.reserved <= state.shared
