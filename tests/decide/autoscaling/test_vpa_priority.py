"""Which pods an updater changes, and in which order, as recorded."""

from datetime import timedelta
from typing import Any

import pytest

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.core.times import parse_time
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.limit_range_capping import for_pod
from podfit.decide.autoscaling.priority import Priority, Thresholds, accepted, admitted, observed, priority
from support.golden import Case
from support.vpa_golden import replay

BY = Thresholds()
NOW = parse_time("2026-05-01T12:00:00Z")


@pytest.mark.row("V-081", "V-082", "V-083", "V-084")
@replay("updater_priority")
def test_vpa_pods_have_the_recorded_priority_and_order(case: Case) -> None:
    vpa, gates = convert(case["vpa"], VerticalPodAutoscaler), Gates.of(case["feature_gates"])
    now, queue = parse_time(case["now"]), list[tuple[tuple[bool, float], str]]()
    for given in case["pods"]:
        pod = convert(given["pod"], Pod)
        processed = for_pod(pod, vpa.status.recommendation, vpa.spec.resource_policy, ()).recommendation
        found = priority(pod, vpa, processed, gates, BY)
        assert found.outside_range == given["outside_recommended_range"]
        assert found.scale_up == given["scale_up"]
        assert found.difference == pytest.approx(given["resource_diff"], rel=1e-9)
        assert accepted(pod, found, now, BY, upstream_compatible=True) == given["accepted"]
        if given["accepted"] and admitted(pod, vpa, processed):
            queue.append((found.order, pod.metadata.name))
    assert [name for _, name in sorted(queue, key=lambda ranked: ranked[0])] == case["update_order"]


def pod(**fields: Any) -> Pod:
    return convert({"metadata": {"name": "p"}, "status": {"startTime": "2026-05-01T00:00:00Z"}} | fields, Pod)


@pytest.mark.row("V-082")
@pytest.mark.parametrize(
    ("found", "age", "expected"),
    [
        (Priority(outside_range=True, difference=0.01), timedelta(0), True),
        (Priority(difference=0.1), timedelta(0), True),
        (Priority(difference=0.1), timedelta(minutes=-1), False),
        (Priority(difference=0.09), timedelta(0), False),
        (Priority(quick_oom=True, difference=0.01), timedelta(hours=-11), True),
        (Priority(quick_oom=True), timedelta(0), False),
        (Priority(outside_range=True), timedelta(0), False),
    ],
)
def test_when_a_pod_is_changed(found: Priority, age: timedelta, expected: bool) -> None:
    assert accepted(pod(), found, NOW + age, BY) is expected


def test_upstream_changes_a_pod_that_would_not_change() -> None:
    assert accepted(pod(), Priority(outside_range=True), NOW, BY, upstream_compatible=True)


@pytest.mark.parametrize(("text", "expected"), [("a, b", {"a", "b"}), ("", set()), ("Bad Name,,", None), (None, None)])
def test_the_containers_that_were_observed(text: str | None, expected: set[str] | None) -> None:
    notes = {} if text is None else {"vpaObservedContainers": text}
    assert observed(pod(metadata={"annotations": notes})) == expected
