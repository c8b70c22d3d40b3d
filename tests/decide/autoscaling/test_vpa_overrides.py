"""Percentiles and minima of a VPA's own: what its policy says of a container goes before the flags."""

from typing import Any

import pytest

from podfit.api.autoscaling_k8s.v1 import PodResourcePolicy, RecommendedContainerResources, VerticalPodAutoscaler
from podfit.api.meta.codec import convert
from podfit.core.selectors import from_map
from podfit.decide.autoscaling.cluster_state import ClusterState
from podfit.decide.autoscaling.estimate import steps
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.policies import controlled_resources, is_off, policy_of, sized_resources
from podfit.decide.autoscaling.tracked import PodKey, VpaKey
from podfit.decide.autoscaling.validation import validate

VPA, POD, NOW = VpaKey("ns", "v"), PodKey("ns", "p"), 1_770_000_000.0
MI = 1024 * 1024
ON, OFF = Gates(per_vpa_config=True), Gates()


def known(policy: dict[str, Any] | None, gates: Gates = ON, *, upstream_compatible: bool = False) -> ClusterState:
    """Of containers `app` and `side`, which used 1 to 100 % of a core in turn and as many tens of MiB."""
    found = ClusterState(gates=gates, upstream_compatible=upstream_compatible)
    read = convert({"containerPolicies": [{"containerName": "app", **policy}]}, PodResourcePolicy) if policy else None
    found.set_vpa(VPA, from_map({"app": "a"}), read)
    found.set_pod(POD, {"app": "a"}, ["app", "side"], NOW)
    for number in range(1, 101):
        for container in ("app", "side"):
            used = {"cpu": number * 10, "memory": number * 10 * MI}
            found.add_sample(POD, container, NOW + number * 86_400 / 100, **used)
    return found


def sizes(state: ClusterState) -> dict[str, RecommendedContainerResources]:
    return {
        recommendation.container_name: recommendation
        for recommendation in state.recommend({VPA: {}})[VPA].container_recommendations
    }


def cpu(resources: RecommendedContainerResources) -> list[int]:
    return [amounts["cpu"].milli() for amounts in (resources.lower_bound, resources.target, resources.upper_bound)]


@pytest.mark.parametrize(
    ("share", "expected"), [("0.25", (250, 450)), ("0.5", (500, 720)), ("900m", (900, 1150)), ("1", (1000, 1260))]
)
def test_vpa_takes_the_percentile_of_its_own(share: str, expected: tuple[int, int]) -> None:
    lower, target, upper = cpu(sizes(known({"targetCPUPercentile": share}))["app"])
    assert expected[0] <= target <= expected[1]
    assert lower <= target <= upper


def test_vpa_leaves_other_containers_and_resources_at_the_flags() -> None:
    plain, own = sizes(known(None)), sizes(known({"targetCPUPercentile": "0.5"}))
    assert own["side"] == plain["side"]
    assert own["app"].target["memory"] == plain["app"].target["memory"]
    assert own["app"].target["cpu"] < plain["app"].target["cpu"]
    assert own["app"].upper_bound == plain["app"].upper_bound


def test_vpa_widens_bounds_that_would_not_hold_the_target() -> None:
    def with_a_peak(policy: dict[str, Any] | None) -> RecommendedContainerResources:
        found = known(policy)
        found.add_sample(POD, "app", NOW + 90_000, cpu=5000, memory=None)
        return sizes(found)["app"]

    plain, high, low = (
        with_a_peak(policy) for policy in (None, {"targetCPUPercentile": "1"}, {"targetCPUPercentile": "0.1"})
    )
    assert high.target["cpu"].milli() > 5000
    assert high.upper_bound["cpu"] > plain.upper_bound["cpu"]
    assert high.lower_bound == plain.lower_bound
    assert low.lower_bound["cpu"] < plain.lower_bound["cpu"]


@pytest.mark.parametrize(("gates", "compatible"), [(OFF, False), (ON, True)], ids=["gate off", "as upstream"])
def test_vpa_percentiles_count_with_their_gate_and_not_as_upstream(gates: Gates, compatible: bool) -> None:
    plain = sizes(known(None))
    assert sizes(known({"targetCPUPercentile": "0.1"}, gates, upstream_compatible=compatible)) == plain


def small(policy: dict[str, Any] | None, *, upstream_compatible: bool = False) -> ClusterState:
    found = ClusterState(upstream_compatible=upstream_compatible)
    read = convert({"containerPolicies": [{"containerName": "c", **policy}]}, PodResourcePolicy) if policy else None
    found.set_vpa(VPA, from_map({"app": "a"}), read)
    found.set_pod(POD, {"app": "a"}, ["c"], NOW)
    found.add_sample(POD, "c", NOW, cpu=1, memory=20 * MI)
    return found


@pytest.mark.parametrize(
    ("policy", "compatible", "expected"),
    [
        (None, False, (25, 250)),
        ({"minAllowed": {"memory": "16Mi"}}, False, (25, 34)),
        ({"minAllowed": {"memory": "32Mi", "cpu": "5m"}}, False, (11, 34)),
        ({"minAllowed": {"memory": "0", "cpu": "0"}}, False, (25, 250)),
        ({"minAllowed": {"memory": "300Mi", "cpu": "30m"}}, False, (30, 300)),
        ({"minAllowed": {"memory": "16Mi"}}, True, (25, 250)),
    ],
)
def test_vpa_goes_below_the_minimum_of_a_pod_where_its_policy_allows_it(
    policy: dict[str, Any] | None, compatible: bool, expected: tuple[int, int]
) -> None:
    target = sizes(small(policy, upstream_compatible=compatible))["c"].target
    assert (target["cpu"].milli(), target["memory"].value() // MI) == expected


def test_vpa_says_which_minimum_and_which_percentile_counts() -> None:
    found = known({"targetCPUPercentile": "0.5", "minAllowed": {"memory": "16Mi"}})
    ((_, estimates),) = found.estimates(found.members([VPA]))
    cpu, memory = (
        {step.name: step.reason for step in steps(estimates, name, "target", 0)} for name in ("cpu", "memory")
    )
    assert cpu["percentile"] == "50 % of 100 CPU samples were not above it"
    assert memory["minimum"] == f"minAllowed, which is below its share of the pod's minimum is {16 * MI}"


@pytest.mark.parametrize(
    ("share", "gates", "expected"),
    [
        ("0.95", ON, []),
        ("1", ON, []),
        ("0", ON, ["FieldValueInvalid"]),
        ("1.01", ON, ["FieldValueInvalid"]),
        ("-0.5", ON, ["FieldValueInvalid"]),
        ("0.95", OFF, ["FieldValueForbidden"]),
    ],
)
def test_vpa_percentiles_are_shares_of_one(share: str, gates: Gates, expected: list[str]) -> None:
    policy = {"containerName": "*", "targetMemoryPercentile": share}
    spec = {"targetRef": {"kind": "Deployment", "name": "d"}, "resourcePolicy": {"containerPolicies": [policy]}}
    errors = validate(convert({"spec": spec}, VerticalPodAutoscaler), None, gates)
    assert [error.cause()["reason"] for error in errors] == expected
    assert {error.field for error in errors} <= {"spec.resourcePolicy.containerPolicies[0].targetMemoryPercentile"}


@pytest.mark.parametrize(
    ("entries", "sized"),
    [
        ((), {"cpu", "memory"}),
        (({"containerName": "*", "mode": "Off"},), set[str]()),
        (({"containerName": "a", "controlledResources": ["cpu"]},), {"cpu", "memory"}),
        (({"containerName": "*", "controlledResources": ["cpu"]},), {"cpu"}),
        (
            ({"containerName": "*", "mode": "Off"}, {"containerName": "a", "controlledResources": ["memory"]}),
            {"memory"},
        ),
        (({"containerName": "*"}, {"containerName": "*", "controlledResources": ["cpu"]}), {"cpu"}),
        (
            (
                {"containerName": "*", "mode": "Off"},
                {"containerName": "a", "mode": "Off"},
                {"containerName": "a", "controlledResources": ["cpu"]},
            ),
            set[str](),
        ),
    ],
)
def test_vpa_what_is_sized_of_any_container_is_what_policies_say_of_each(entries: Any, sized: set[str]) -> None:
    """Of entries for one container the first counts, of those for every one the last, as wherever a policy is read."""
    policy = convert({"containerPolicies": entries}, PodResourcePolicy)
    assert sized_resources(policy) == sized
    each = (policy_of(policy, name) for name in ("a", "b"))
    assert sized == {name for entry in each if not is_off(entry) for name in controlled_resources(entry)}
