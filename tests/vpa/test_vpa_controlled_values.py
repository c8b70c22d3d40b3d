"""Values controlled per resource: `podfit.dev/controlled-values` says whose limits follow the requests."""

from typing import Any

import pytest

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.decide.autoscaling.gates import Gates
from podfit.decide.autoscaling.limit_range_capping import for_pod
from podfit.decide.autoscaling.patches import recommended_resources
from podfit.decide.autoscaling.policies import CONTROLLED_VALUES, LONGEST_TEXT
from podfit.decide.autoscaling.validation import validate

OWN = {"requests": {"cpu": "100m", "memory": "100Mi"}, "limits": {"cpu": "200m", "memory": "200Mi"}}


def pod() -> Pod:
    return convert({"spec": {"containers": [{"name": "app", "image": "i", "resources": OWN}]}}, Pod)


def vpa(text: str | None, *, values: str | None = None, cpu: str = "150m") -> VerticalPodAutoscaler:
    target = {"cpu": cpu, "memory": "150Mi"}
    recommendation = {"containerName": "app", "target": target, "lowerBound": target, "upperBound": target}
    policy: dict[str, Any] = {"containerName": "*", **({"controlledValues": values} if values else {})}
    document = {
        "metadata": {"name": "web", "annotations": {} if text is None else {CONTROLLED_VALUES: text}},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "resourcePolicy": {"containerPolicies": [policy]},
        },
        "status": {"recommendation": {"containerRecommendations": [recommendation]}},
    }
    return convert(document, VerticalPodAutoscaler)


@pytest.mark.parametrize(
    ("text", "values", "limits"),
    [
        (None, None, {"cpu": "300m", "memory": "300Mi"}),
        (None, "RequestsOnly", {}),
        ("cpu=RequestsOnly", None, {"memory": "300Mi"}),
        ("memory=RequestsOnly", None, {"cpu": "300m"}),
        ("memory=RequestsAndLimits", "RequestsOnly", {"memory": "300Mi"}),
        ("app:cpu=RequestsOnly, cpu=RequestsAndLimits", None, {"memory": "300Mi"}),
        ("other:cpu=RequestsOnly", None, {"cpu": "300m", "memory": "300Mi"}),
        ("cpu=Nothing", None, {"cpu": "300m", "memory": "300Mi"}),
    ],
)
def test_vpa_limits_follow_by_resource(text: str | None, values: str | None, limits: dict[str, str]) -> None:
    found = recommended_resources(pod(), vpa(text, values=values), ())["app"]
    assert {name: str(amount) for name, amount in found.requests.items()} == {"cpu": "150m", "memory": "150Mi"}
    assert {name: str(amount) for name, amount in found.limits.items()} == limits
    assert not found.notes


def test_vpa_request_stays_below_a_limit_that_does_not_follow() -> None:
    fixed = vpa("cpu=RequestsOnly", cpu="500m")
    found = recommended_resources(pod(), fixed, ())["app"]
    assert str(found.requests["cpu"]) == "200m"
    assert found.notes == ("cpu capped to container limit",)
    processed = for_pod(pod(), fixed.status.recommendation, None, (), fixed.metadata.annotations)
    assert processed.notes == {"app": ("cpu capped to container limit",)}


@pytest.mark.parametrize(
    "text", ["cpu", "gpu=RequestsOnly", "cpu=LimitsOnly", ":cpu=RequestsOnly", "x" * (LONGEST_TEXT + 1)]
)
def test_vpa_with_values_that_cannot_be_read_is_refused(text: str) -> None:
    (error,) = validate(vpa(text), None, Gates())
    assert "must be like memory=RequestsOnly" in str(error)
    assert not validate(vpa("memory=RequestsOnly,app:cpu=RequestsAndLimits"), None, Gates())
