"""One kind in two versions: what is written in one is read in the other, and nothing is lost."""

import asyncio
import json
from typing import Any

import pytest

from podfit.api.autoscaling.conversion import to_v1, to_v2
from podfit.api.autoscaling.v1 import types as v1
from podfit.api.autoscaling.v2 import types as v2
from podfit.api.defaults import apply_defaults
from podfit.api.meta.codec import convert, to_dict
from support.golden import cases, needs
from support.replay import Replay, comparable, differences
from support.server import Server, document

FIRST, SECOND = (f"/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers" for version in ("v1", "v2"))
REF = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
MERGE = "application/merge-patch+json"
METRICS: list[dict[str, Any]] = [
    {
        "type": "Pods",
        "pods": {
            "metric": {"name": "m", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "AverageValue", "averageValue": "10"},
        },
    },
    {
        "type": "Object",
        "object": {"describedObject": REF, "metric": {"name": "o"}, "target": {"type": "Value", "value": "5"}},
    },
    {
        "type": "External",
        "external": {"metric": {"name": "e"}, "target": {"type": "AverageValue", "averageValue": "3"}},
    },
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "memory",
            "container": "c",
            "target": {"type": "AverageValue", "averageValue": "1Gi"},
        },
    },
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
]


async def send(server: Server, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
    answer = await server.ask(method, path, b"" if body is None else json.dumps(body).encode(), content_type=kind)
    return document(await answer.read()) | {"http": answer.status}


def test_nothing_is_lost_on_the_way_to_the_first_version_and_back() -> None:
    status = {
        "desiredReplicas": 2,
        "currentReplicas": 1,
        "conditions": [{"type": "AbleToScale", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "currentMetrics": [
            {"type": "Pods", "pods": {"metric": {"name": "m"}, "current": {"averageValue": "7"}}},
            {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 40}}},
        ],
    }
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 9, "tolerance": "100m"}}
    spec = {"scaleTargetRef": REF, "maxReplicas": 5, "metrics": METRICS, "behavior": behavior}
    whole = apply_defaults(
        convert({"metadata": {"name": "h"}, "spec": spec, "status": status}, v2.HorizontalPodAutoscaler)
    )
    first = to_v1(whole)
    assert first.spec.target_cpu_utilization_percentage == 50
    assert first.status.current_cpu_utilization_percentage == 40
    assert to_dict(to_v2(first)) == to_dict(whole)


@pytest.mark.parametrize("text", ["x", "[7]", '{"a": 1}', "null"])
def test_an_annotation_that_makes_no_sense_carries_nothing(text: str) -> None:
    annotations = {f"autoscaling.alpha.kubernetes.io/{name}": text for name in ("metrics", "behavior", "conditions")}
    spec = {"scaleTargetRef": REF, "maxReplicas": 5, "targetCPUUtilizationPercentage": 70}
    first = convert({"metadata": {"annotations": annotations}, "spec": spec}, v1.HorizontalPodAutoscaler)
    second = to_v2(first)
    assert (len(second.spec.metrics), second.metadata.annotations) == (1, {})


async def test_each_version_reads_what_the_other_wrote(server: Server) -> None:
    spec = {"scaleTargetRef": REF, "maxReplicas": 3, "targetCPUUtilizationPercentage": 60}
    made = await send(server, "POST", FIRST, {"metadata": {"name": "h"}, "spec": spec})
    assert (made["http"], made["apiVersion"], made["spec"]["minReplicas"]) == (201, "autoscaling/v1", 1)
    seen = await send(server, "GET", f"{SECOND}/h")
    assert seen["spec"]["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 60}
    patched = await send(server, "PATCH", f"{SECOND}/h", {"spec": {"metrics": METRICS}}, MERGE)
    assert patched["http"] == 200
    first = await send(server, "GET", f"{FIRST}/h")
    assert first["spec"]["targetCPUUtilizationPercentage"] == 50
    assert first["metadata"]["resourceVersion"] == patched["metadata"]["resourceVersion"]
    await send(server, "PATCH", f"{FIRST}/h", {"spec": {"maxReplicas": 9}}, MERGE)
    second = await send(server, "GET", f"{SECOND}/h")
    assert second["spec"]["maxReplicas"] == 9
    assert sorted(metric["type"] for metric in second["spec"]["metrics"]) == sorted(
        metric["type"] for metric in METRICS
    )
    listed = await send(server, "GET", FIRST)
    assert (listed["kind"], listed["apiVersion"], len(listed["items"])) == (
        "HorizontalPodAutoscalerList",
        "autoscaling/v1",
        1,
    )


async def test_a_watch_of_one_version_sees_writes_of_the_other(server: Server) -> None:
    watching = await server.ask("GET", f"{FIRST}?watch=1")
    assert not isinstance(watching.body, bytes)
    lines = aiter(watching.body)
    spec = {"scaleTargetRef": REF, "maxReplicas": 3}
    await send(server, "POST", SECOND, {"metadata": {"name": "h"}, "spec": spec})
    event = document(await asyncio.wait_for(anext(lines), 5))
    assert (event["type"], event["object"]["apiVersion"]) == ("ADDED", "autoscaling/v1")
    assert event["object"]["spec"]["targetCPUUtilizationPercentage"] == 80


async def test_a_refusal_of_the_first_version_is_that_of_the_second(server: Server) -> None:
    refused = await send(server, "POST", FIRST, {"metadata": {"name": "h"}, "spec": {"scaleTargetRef": REF}})
    assert refused["http"] == 422
    assert refused["details"]["causes"][0]["field"] == "spec.maxReplicas"


@needs("api/defaulting.json")
async def test_the_second_version_is_read_as_the_first_as_recorded(server: Server) -> None:
    case = next(case for case in cases("api/defaulting.json") if case["id"] == "hpa-v2-read-as-v1")
    replay = Replay(server)
    await replay.prepare(case)
    got = document(await (await replay.send(case["request"])).read())
    expected = replay.expected(case)["body"]
    assert not list(differences(comparable(expected), comparable(got)))
