"""CapacityBuffers: how many pods one stands for."""

from typing import Any

import pytest

from podfit.api.core.v1.pods.templates import PodTemplateSpec
from podfit.api.meta.codec import convert
from podfit.decide.capacity.buffers import MOST_CHUNKS, CapacityBuffer, chunks

TEMPLATE = convert(
    {
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]
        }
    },
    PodTemplateSpec,
)
POD, SCALE = {"podTemplateRef": {"name": "t"}}, {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "d"}}


def buffer(**spec: Any) -> CapacityBuffer:
    return convert({"metadata": {"name": "b", "namespace": "shop", "uid": "u"}, "spec": spec}, CapacityBuffer)


@pytest.mark.parametrize(
    ("spec", "replicas", "number"),
    [
        ({**POD, "replicas": 3}, None, 3),
        ({**POD, "replicas": 0}, None, 0),
        ({**POD, "limits": {"cpu": "2", "memory": "3Gi"}}, None, 3),
        ({**POD, "replicas": 9, "limits": {"cpu": "2"}}, None, 4),
        ({**SCALE, "percentage": 20}, 10, 2),
        ({**SCALE, "percentage": 1}, 10, 1),
        ({**SCALE, "percentage": 20, "replicas": 5}, 10, 5),
        ({**SCALE, "percentage": 20}, 0, 0),
    ],
)
def test_capacity_a_buffer_stands_for_so_many_pods(spec: dict[str, Any], replicas: int | None, number: int) -> None:
    answer = chunks(buffer(**spec), TEMPLATE, replicas)
    assert (len(answer.pods), answer.problem) == (number, "")
    assert len({pod.metadata.uid for pod in answer.pods}) == number
    assert all(pod.spec.containers == TEMPLATE.spec.containers for pod in answer.pods)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"replicas": 1}, "one of podTemplateRef and scalableRef"),
        ({**POD, **SCALE, "replicas": 1}, "one of podTemplateRef and scalableRef"),
        (POD, "no replicas, percentage or limits"),
        ({**POD, "replicas": 1, "provisioningStrategy": "other"}, "the strategy other is not known"),
    ],
)
def test_capacity_a_buffer_that_says_nothing_stands_for_nothing(spec: dict[str, Any], problem: str) -> None:
    answer = chunks(buffer(**spec), TEMPLATE, None)
    assert answer.pods == ()
    assert problem in answer.problem


def test_capacity_a_buffer_is_bounded_and_needs_what_it_refers_to() -> None:
    answer = chunks(buffer(**POD, replicas=10**9), TEMPLATE, None)
    assert (len(answer.pods), answer.problem) == (MOST_CHUNKS, f"it asks for {10**9} chunks, and {MOST_CHUNKS} count")
    assert "not there" in chunks(buffer(**POD, replicas=1), None, None).problem
