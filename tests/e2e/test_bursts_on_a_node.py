"""Bursts as a user turns them on: kubectl annotates a VPA, and seconds later its busy pod has more."""

import json
from typing import Any

import pytest

from e2e.test_vpa_on_a_node import manifest, pods
from podfit.api.core.v1.pods.burst import CEILING
from podfit.decide.pod.resize_state import BURST
from support.eventually import eventually
from support.up import PODFIT, Up, run

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.node,
    pytest.mark.kubectl,
    pytest.mark.xdist_group("node"),
    pytest.mark.timeout(420),
]


def limits(up: Up) -> tuple[dict[str, str], dict[str, str]]:
    """As the spec says, and as the node does."""
    (pod,) = pods(up)
    statuses = pod["status"].get("containerStatuses") or [{}]
    return (pod["spec"]["containers"][0]["resources"]["limits"], statuses[0].get("resources", {}).get("limits", {}))


def test_a_busy_pod_bursts_and_its_spec_follows(cluster_dir: Up) -> None:
    """README's busy Deployment with its VPA annotated: the limit of 100m becomes the ceiling of 200m, in the kernel and
    then in the spec, without a restart; `podfit plan --burst` says that the ceiling is held.
    """
    up = cluster_dir
    up.start()
    applied = up.kubectl("apply", "-f", "-", stdin=manifest())
    assert applied.code == 0, applied.err
    eventually(
        lambda: pods(up),
        lambda there: len(there) == 1 and there[0]["status"]["phase"] == "Running",
        within=60,
        what="the pod runs",
        told=up.log,
        every=0.5,
    )
    up.ok("annotate", "vpa/busy", "podfit.dev/burst=enabled")
    eventually(
        lambda: limits(up),
        lambda both: both[0].get("cpu") == both[1].get("cpu") == "200m",
        within=60,
        what="kernel and spec are at the ceiling",
        told=up.log,
        every=0.2,
    )
    (pod,) = pods(up)
    ranges: dict[str, Any] = json.loads(pod["metadata"]["annotations"][CEILING])
    assert [between["floor"]["cpu"] for between in ranges.values()] == ["100m"]
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    planned = run(PODFIT, "plan", "deployment/busy", "--burst", "--kubeconfig", str(up.kubeconfig))
    assert planned.code == 0, planned.out
    assert "held" in planned.out
    events = json.loads(up.ok("get", "events", "-o", "json"))["items"]
    assert "LimitsMoved" in {event["reason"] for event in events}
    eventually(
        lambda: [said["type"] for pod in pods(up) for said in pod["status"]["conditions"]],
        lambda types: BURST not in types,
        within=30,
        what="spec and node agree, so nothing is said any more",
        told=up.log,
        every=0.5,
    )
