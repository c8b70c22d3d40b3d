"""An HPA while its pods are resized: kubernetes#142155."""

from typing import Any

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.decide.autoscaling.horizontal.model import Sample, Settings, Tolerance
from podfit.decide.autoscaling.horizontal.replicas import Target, by_utilization


def pod(number: int, wished: str, granted: dict[str, Any]) -> Pod:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": wished}}}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2000-01-01T00:00:00Z"}
    status = {
        "phase": "Running",
        "startTime": "2000-01-01T00:00:00Z",
        "conditions": [ready],
        "containerStatuses": [{"name": "c", "image": "i", **granted}],
    }
    return codec.convert(
        {"metadata": {"name": f"web-{number}"}, "spec": {"containers": [container]}, "status": status}, Pod
    )


def proposed(wished: str, granted: dict[str, Any], *, compatible: bool) -> int:
    """Of 4 pods that use 80m each, for a target of 80 %."""
    target = Target(
        pods=[pod(number, wished, granted) for number in range(4)],
        current=4,
        tolerance=Tolerance(),
        settings=Settings(upstream_compatible=compatible),
        now=2e9,
    )
    samples = {f"web-{number}": Sample(80, 2e9, 15) for number in range(4)}
    return by_utilization(target, samples, "cpu", 80).replicas


HELD: dict[str, Any] = {"resources": {"requests": {"cpu": "100m"}}}


@pytest.mark.parametrize(("wished", "upstream"), [("200m", 2), ("50m", 8)])
def test_hpa_keeps_its_replicas_while_a_resize_is_not_granted(wished: str, upstream: int) -> None:
    assert proposed(wished, HELD, compatible=False) == 4
    assert proposed(wished, HELD, compatible=True) == upstream


def test_hpa_counts_what_is_granted_from_then_on() -> None:
    assert proposed("200m", {"resources": {"requests": {"cpu": "200m"}}}, compatible=False) == 2
    assert proposed("200m", {"allocatedResources": {"cpu": "100m"}}, compatible=False) == 4


def test_hpa_divides_by_the_spec_where_the_node_tells_nothing() -> None:
    assert proposed("200m", {}, compatible=False) == 2
