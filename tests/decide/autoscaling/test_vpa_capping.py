"""Recommendations within policies and LimitRanges, as recorded, and where podfit does better than what was recorded."""

from typing import Any

import pytest

from podfit.api.autoscaling_k8s.v1 import PodResourcePolicy, RecommendedPodResources
from podfit.api.core.v1.limits.types import LimitRange
from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.api.meta.codec import convert
from podfit.core.quantity import Quantity
from podfit.decide.autoscaling.capping import cap_to_policy, whole_cores
from podfit.decide.autoscaling.limit_range_capping import Processed, for_pod
from podfit.decide.autoscaling.limit_ranges import effective, proportional_limits
from support.golden import Case
from support.vpa_golden import replay

Amounts = dict[str, dict[str, Quantity]]
FIELDS = ("target", "lowerBound", "upperBound", "uncappedTarget")


def read(document: Any, kind: Any) -> Any:
    return None if document is None else convert(document, kind)


def amounts(given: dict[str, str]) -> dict[str, Quantity]:
    return {name: Quantity.parse(text) for name, text in given.items()}


def processed(case: Case) -> Processed:
    return for_pod(
        convert(case["pod"], Pod),
        read(case["recommendation"], RecommendedPodResources),
        read(case["resourcePolicy"], PodResourcePolicy),
        [convert(limit_range, LimitRange) for limit_range in case.get("limit_ranges") or ()],
    )


def as_recorded(result: Case | None) -> dict[str, Amounts] | None:
    if result is None:
        return None
    return {
        recommendation["containerName"]: {field: amounts(recommendation.get(field) or {}) for field in FIELDS}
        for recommendation in result.get("containerRecommendations") or ()
    }


def as_found(resources: RecommendedPodResources | None) -> dict[str, dict[str, ResourceList]] | None:
    if resources is None:
        return None
    return {
        recommendation.container_name: dict(
            zip(
                FIELDS,
                (
                    recommendation.target,
                    recommendation.lower_bound,
                    recommendation.upper_bound,
                    recommendation.uncapped_target,
                ),
                strict=True,
            )
        )
        for recommendation in resources.container_recommendations
    }


def without_what_was_not_recommended(case: Case, recorded: dict[str, Amounts]) -> dict[str, Amounts]:
    """Upstream writes an amount for a resource that a recommendation does not have; podfit leaves it absent."""
    given = as_recorded(case["recommendation"]) or {}
    return {
        name: {
            field: {
                resource: amount
                for resource, amount in amounts.items()
                if name not in given or resource in given[name][field]
            }
            for field, amounts in fields.items()
        }
        for name, fields in recorded.items()
    }


def around_the_target(recorded: dict[str, Amounts]) -> dict[str, Amounts]:
    """Upstream scales target and bounds apart; podfit keeps the bounds around the target."""
    for fields in recorded.values():
        for name, target in fields["target"].items():
            if name in fields["lowerBound"]:
                fields["lowerBound"][name] = min(fields["lowerBound"][name], target)
            if name in fields["upperBound"]:
                fields["upperBound"][name] = max(fields["upperBound"][name], target)
    return recorded


@pytest.mark.row("V-033")
@replay("capping", lambda case: case["kind"] == "recommender post-processor")
def test_vpa_policies_cap_as_recorded(case: Case) -> None:
    found = cap_to_policy(
        convert(case["recommendation"], RecommendedPodResources),
        read(case["resourcePolicy"], PodResourcePolicy),
        amounts(case.get("global_max_allowed") or {}),
    )
    assert as_found(found) == as_recorded(case["result"])


@pytest.mark.row("V-060", "V-061", "V-062", "V-063")
@replay("capping", lambda case: case["kind"] == "pod-level processor" and "upstream_panic" not in case)
def test_vpa_recommendations_for_a_pod_are_as_recorded(case: Case) -> None:
    found, recorded = processed(case), as_recorded(case["result"])
    if recorded is not None:
        recorded = without_what_was_not_recommended(case, recorded)
        limited = effective([convert(limit_range, LimitRange) for limit_range in case.get("limit_ranges") or ()], "Pod")
        recorded = around_the_target(recorded) if limited else recorded
    assert as_found(found.recommendation) == recorded
    notes = {name: sorted(annotation) for name, annotation in (case.get("annotations") or {}).items() if annotation}
    assert {name: sorted(note) for name, note in found.notes.items()} == notes


@replay("capping", lambda case: "upstream_panic" in case)
def test_vpa_pods_with_absent_lists_are_scaled_where_upstream_ends(case: Case) -> None:
    found = as_found(processed(case).recommendation) or {}
    given = as_recorded(case["recommendation"]) or {}
    assert found
    for name, fields in found.items():
        for field in ("lowerBound", "upperBound"):
            assert fields[field].keys() == given.get(name, {field: {}})[field].keys()
        for amounts in fields.values():
            assert all(amount > Quantity(0) for amount in amounts.values())


@pytest.mark.row("V-060")
@pytest.mark.parametrize(
    ("own", "requests", "default", "limits", "notes"),
    [
        ({"requests": {"cpu": "100m"}, "limits": {"cpu": "100m"}}, {"cpu": "333m"}, {}, {"cpu": "333m"}, 1),
        ({"requests": {"cpu": "3"}, "limits": {"cpu": "10"}}, {"cpu": "1"}, {}, {"cpu": "3333m"}, 1),
        ({"limits": {"memory": "1Gi"}}, {"memory": "2Gi"}, {}, {"memory": "2Gi"}, 1),
        ({"requests": {"cpu": "1"}}, {"cpu": "2"}, {"cpu": "3"}, {"cpu": "6"}, 1),
        ({"requests": {"cpu": "1"}}, {"cpu": "2"}, {}, {}, 0),
        ({"requests": {"memory": "1"}, "limits": {"memory": "4Ei"}}, {"memory": "4Ei"}, {},
         {"memory": str(2**63 - 1)}, 2),
    ],
)  # fmt: skip
def test_limits_follow_requests(
    own: dict[str, Any], requests: dict[str, str], default: dict[str, str], limits: dict[str, str], notes: int
) -> None:
    found = proportional_limits(convert(own, ResourceRequirements), amounts(requests), amounts(default))
    assert found.amounts == amounts(limits)
    assert len(found.notes) == notes


@pytest.mark.row("V-034")
@pytest.mark.parametrize(("value", "expected"), [("true", "2"), ("True", "1100m"), ("", "1100m")])
def test_whole_cores_are_for_containers_that_an_annotation_names(value: str, expected: str) -> None:
    given = {"containerRecommendations": [{"containerName": "c", "target": {"cpu": "1100m", "memory": "1"}}]}
    note = {"vpa-post-processor.kubernetes.io/c_integerCPU": value}
    (found,) = whole_cores(convert(given, RecommendedPodResources), note).container_recommendations
    assert found.target == amounts({"cpu": expected, "memory": "1"})


@pytest.mark.row("V-063")
def test_several_limit_ranges_are_one_of_the_tightest() -> None:
    def limit_range(name: str, **item: Any) -> LimitRange:
        return convert({"metadata": {"name": name}, "spec": {"limits": [{"type": "Container"} | item]}}, LimitRange)

    every = [
        limit_range("b", max={"cpu": "2"}, min={"cpu": "10m"}),
        limit_range("a", max={"cpu": "4", "memory": "1Gi"}, default={"memory": "1Gi"}),
        limit_range("c", min={"cpu": "20m"}),
    ]
    found = effective(every, "Container")
    assert found is not None
    assert found.max == amounts({"cpu": "2", "memory": "1Gi"})
    assert found.min == amounts({"cpu": "20m"})
    assert found.default == amounts({"memory": "1Gi"})
    assert effective(every, "Pod") is None
