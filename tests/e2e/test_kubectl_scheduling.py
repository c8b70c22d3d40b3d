"""What kubectl shows of scheduling: why a pod waits, who went for it, and the numbers of both sides."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.up import Up, running

pytestmark = [pytest.mark.kubectl, pytest.mark.xdist_group("kubectl-scheduling")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    up = Up(tmp_path_factory.mktemp("scheduling"))
    up.start(node="simulated")
    yield up
    assert up.down().code == 0


def pod(name: str, milli: int, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox:1.36", "resources": {"requests": {"cpu": f"{milli}m"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container], **spec},
    }


def listed(server: Up, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(server.ok("get", kind, "-o", "json"))["items"]
    return found


def test_a_pod_of_higher_priority_gets_the_room_of_a_lower_one(server: Up) -> None:
    server.apply(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "hi"}, "value": 1000}
    )
    node = listed(server, "nodes")[0]
    share = int(node["status"]["allocatable"]["cpu"]) * 600
    server.apply(pod("low", share))
    server.pod_when("low", running, "ran")
    server.apply(pod("same", share))
    waiting = server.pod_when("same", lambda pod: pod["status"].get("conditions"), "waited")
    assert waiting["status"]["conditions"][0]["message"] == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
        "0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )
    server.apply(pod("high", share, priorityClassName="hi"))
    server.pod_when("high", running, "ran")
    assert server.kubectl("get", "pod", "low").code == 1
    uid = server.get("pod", "high")["metadata"]["uid"]
    told = [event["message"] for event in listed(server, "events") if event["reason"] == "Preempted"]
    assert told == [f"Preempted by pod {uid} on node {node['metadata']['name']}"]


def test_the_numbers_of_node_and_scheduler_are_a_get_away(server: Up) -> None:
    server.apply(pod("counted", 10))
    server.pod_when("counted", running, "ran")
    node = listed(server, "nodes")[0]["metadata"]["name"]
    shown = server.ok("get", "--raw", f"/api/v1/nodes/{node}/proxy/metrics")
    for state in ("desired", "allocated", "actual"):
        of = 'container="c",namespace="default",pod="counted",requirement="requests",resource="cpu"'
        assert f'podfit_container_resource{{{of},state="{state}"}} 0.01\n' in shown
    control_plane = server.ok("get", "--raw", "/metrics")
    assert 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"}' in control_plane
    assert "\napiserver_request_total{" in control_plane
