"""What horizontal autoscalers hold back of a recommendation, and how that is said."""

import pytest

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscalerStatus
from podfit.api.meta.codec import convert
from podfit.decide.autoscaling.nodes_and_autoscalers import HELD, held_resources, without_held
from podfit.decide.autoscaling.targets import NamedTarget

NOW = "2026-01-01T00:00:00Z"


def autoscaler(name: str, *resources: str) -> HorizontalPodAutoscaler:
    target = {"type": "Utilization", "averageUtilization": 80}
    metrics = [{"type": "Resource", "resource": {"name": resource, "target": target}} for resource in resources]
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": ref, "maxReplicas": 5, "metrics": metrics}
    return convert({"metadata": {"name": name, "namespace": "shop"}, "spec": spec}, HorizontalPodAutoscaler)


@pytest.mark.parametrize(
    ("autoscalers", "told"),
    [
        ([autoscaler("a", "cpu")], "HorizontalPodAutoscaler a scales on cpu, which is therefore not recommended"),
        (
            [autoscaler("b", "cpu", "cpu"), autoscaler("a", "cpu")],
            "HorizontalPodAutoscalers a, b scale on cpu, which is therefore not recommended",
        ),
    ],
)
def test_every_autoscaler_of_a_resource_is_named(autoscalers: list[HorizontalPodAutoscaler], told: str) -> None:
    held = held_resources(autoscalers)[NamedTarget("shop", "Deployment", "web")]
    status = without_held(VerticalPodAutoscalerStatus(), held, NOW)
    assert [(condition.type, condition.message) for condition in status.conditions] == [(HELD, told)]
