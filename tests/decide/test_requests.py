"""What a pod counts for, against tables and against a slow restatement of the formula."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podfit.api.core.v1.pods.containers import Container
from podfit.api.core.v1.pods.types import Pod, PodCondition, PodStatus
from podfit.core.features import FeatureGates
from podfit.core.quantity import Quantity
from podfit.decide.pod.requests import pod_limits, pod_requests
from support.pods import amounts, container, infeasible, needs, pod, running, sidecar, with_status

CPU_100 = {"cpu": "100m"}


def status(actual: str, allocated: str, *conditions: PodCondition) -> PodStatus:
    report = running("a", needs({"cpu": actual}, {"cpu": actual}), {"cpu": allocated})
    return PodStatus(container_statuses=(report,), conditions=conditions)


@pytest.mark.parametrize(
    ("actual", "allocated", "expected"),
    [("50m", "50m", "100m"), ("150m", "50m", "150m"), ("50m", "200m", "200m")],
    ids=["pending growth counts (R-078)", "not yet shrunk (R-080)", "shrink allocated but not actual"],
)
def test_the_largest_of_desired_allocated_and_actual_counts(actual: str, allocated: str, expected: str) -> None:
    given_pod = pod(container("a", CPU_100), status=status(actual, allocated))
    assert pod_requests(given_pod, use_status=True) == amounts({"cpu": expected})
    assert pod_requests(given_pod) == amounts(CPU_100)


def test_infeasible_growth_does_not_count() -> None:
    """R-079."""
    given_pod = pod(container("a", CPU_100, CPU_100), status=status("50m", "60m", infeasible()))
    assert pod_requests(given_pod, use_status=True) == amounts({"cpu": "60m"})
    assert pod_limits(given_pod, use_status=True) == amounts({"cpu": "50m"})


def test_pq5_infeasible_of_an_older_generation_is_not_believed() -> None:
    given_pod = pod(container("a", CPU_100), generation=3, status=status("50m", "50m", infeasible(2)))
    assert pod_requests(given_pod, use_status=True) == amounts(CPU_100)


def test_a_container_without_reported_resources_counts_at_its_spec() -> None:
    given_pod = pod(container("a", CPU_100), status=PodStatus(container_statuses=(running("a", None, {"cpu": "1"}),)))
    assert pod_requests(given_pod, use_status=True) == amounts(CPU_100)


def test_sidecar_status_counts_and_that_of_plain_init_containers_does_not() -> None:
    """R-084."""
    given_pod = pod(
        container("a", {"cpu": "10m"}),
        init=(sidecar("s", CPU_100), container("i", {"cpu": "200m"})),
        status=PodStatus(
            init_container_statuses=(
                running("s", needs({"cpu": "150m"}), {"cpu": "150m"}),
                running("i", needs({"cpu": "900m"}), {"cpu": "900m"}),
            )
        ),
    )
    assert pod_requests(given_pod, use_status=True) == amounts({"cpu": "350m"})


def test_pod_level_values_replace_the_aggregate_only_where_they_are_given() -> None:
    """R-085."""
    given_pod = pod(container("a", {"cpu": "100m", "memory": "64Mi"}), resources=needs({"cpu": "300m"}, {"cpu": "1"}))
    assert pod_requests(given_pod) == amounts({"cpu": "300m", "memory": "64Mi"})
    assert pod_requests(given_pod, pod_level=False) == amounts({"cpu": "100m", "memory": "64Mi"})
    off = FeatureGates({"PodLevelResources": False, "InPlacePodLevelResourcesVerticalScaling": False})
    assert pod_requests(given_pod, gates=off)["cpu"] == Quantity.parse("100m")
    assert pod_limits(given_pod) == amounts({"cpu": "1"})


def test_pod_level_status_follows_the_same_rule() -> None:
    given_pod = pod(container("a", CPU_100), resources=needs({"cpu": "300m"}))
    shrinking = with_status(given_pod, resources=needs({"cpu": "500m"}), allocated_resources=amounts({"cpu": "400m"}))
    assert pod_requests(shrinking, use_status=True) == amounts({"cpu": "500m"})
    growing = with_status(
        given_pod,
        resources=needs({"cpu": "200m"}),
        allocated_resources=amounts({"cpu": "200m"}),
        conditions=(infeasible(),),
    )
    assert pod_requests(growing, use_status=True) == amounts({"cpu": "200m"})


@pytest.mark.row("R-163", "R-086")
def test_overhead_is_added_once() -> None:
    """R-086: upstream charges it twice for pods with pod-level requests."""
    given_pod = pod(
        container("a", CPU_100),
        resources=needs({"cpu": "300m"}, {"cpu": "300m"}),
        overhead=amounts({"cpu": "50m"}),
        status=PodStatus(
            resources=needs({"cpu": "350m"}, {"cpu": "350m"}), allocated_resources=amounts({"cpu": "350m"})
        ),
    )
    assert pod_requests(given_pod, use_status=True) == amounts({"cpu": "350m"})
    assert pod_limits(given_pod, use_status=True) == amounts({"cpu": "350m"})
    assert pod_requests(given_pod, overhead=False) == amounts({"cpu": "300m"})


def test_overhead_bounds_only_what_has_a_limit() -> None:
    given_pod = pod(container("a", limits={"cpu": "1"}), overhead=amounts({"cpu": "50m", "memory": "8Mi"}))
    assert pod_limits(given_pod) == amounts({"cpu": "1050m"})


sizes = st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/gpu"]), st.integers(0, 50), max_size=3)


@st.composite
def containers(draw: st.DrawFn, index: int, *, initial: bool) -> Container:
    build = sidecar if initial and draw(st.booleans()) else container
    chosen = {name: str(amount) for name, amount in draw(sizes).items()}
    return build(f"{'i' if initial else 'c'}{index}", chosen)


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    regular = tuple(draw(containers(index, initial=False)) for index in range(draw(st.integers(1, 3))))
    init = tuple(draw(containers(index, initial=True)) for index in range(draw(st.integers(0, 4))))
    return pod(*regular, init=init)


def hungriest_moment(given_pod: Pod, name: str) -> int:
    """Lives the pod's life: each plain init container beside the sidecars before it, then everything together."""

    def ask(given: Container) -> int:
        return given.resources.requests.get(name, Quantity(0)).value()

    started: list[Container] = []
    moments = []
    for init in given_pod.spec.init_containers:
        moments.append(sum(map(ask, [*started, init])))
        if init.restart_policy == "Always":
            started.append(init)
    return max([*moments, sum(map(ask, [*started, *given_pod.spec.containers]))])


@given(pods())
def test_requests_are_those_of_the_hungriest_moment(given_pod: Pod) -> None:
    counted = pod_requests(given_pod)
    named = {
        name
        for container in (*given_pod.spec.containers, *given_pod.spec.init_containers)
        for name in container.resources.requests
    }
    assert counted == {name: Quantity.of(hungriest_moment(given_pod, name)) for name in named}


@given(pods(), st.integers(0, 50), st.integers(0, 50))
def test_status_never_lowers_what_a_feasible_pod_counts_for(given_pod: Pod, actual: int, allocated: int) -> None:
    reports = tuple(
        running(container.name, needs({"cpu": str(actual)}), {"cpu": str(allocated)})
        for container in given_pod.spec.containers
    )
    counted = pod_requests(with_status(given_pod, container_statuses=reports), use_status=True)
    assert all(counted[name] >= amount for name, amount in pod_requests(given_pod).items())
