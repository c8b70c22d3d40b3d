"""README's autoscaler on a real node, as a new user types it: real containers, real usage, minutes of real time."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.eventually import eventually
from support.up import PODFIT, Up, run

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.node,
    pytest.mark.kubectl,
    pytest.mark.xdist_group("node"),
    pytest.mark.timeout(420),
]
README = (Path(__file__).parents[2] / "README.md").read_text()
FIVE_MINUTES = 300.0


def manifest() -> str:
    """What README applies: a Deployment and its VPA."""
    section = README.partition("Let an autoscaler do it.")[2]
    return section.partition("<<'EOF'\n")[2].partition("EOF\n")[0]


def pods(up: Up) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(up.ok("get", "pods", "-o", "json"))["items"]
    return found


def container(up: Up) -> tuple[dict[str, Any], dict[str, Any]]:
    """Spec and status of the only pod's."""
    (pod,) = pods(up)
    return pod["spec"]["containers"][0], pod["status"]["containerStatuses"][0]


def gives_what_is_asked_for(pod: dict[str, Any]) -> bool:
    asked, given = pod["spec"]["containers"][0], pod["status"]["containerStatuses"][0]
    return bool(asked["resources"]["requests"]["cpu"] == given["resources"]["requests"]["cpu"])


def test_vpa_raises_a_busy_container_in_place_within_five_minutes(
    cluster_dir: Up, figure: Callable[[str, object], None]
) -> None:
    """README's autoscaler as a new user types it, on a node with containerd: from `podfit up` to a pod that was resized
    in place, without a restart, it takes less than five minutes.
    """
    up, began = cluster_dir, time.monotonic()
    up.start()
    applied = up.kubectl("apply", "-f", "-", stdin=manifest())
    assert applied.code == 0, applied.err
    eventually(
        lambda: [pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in pods(up)],
        lambda requests: requests not in ([], ["10m"]),
        within=FIVE_MINUTES,
        what="the pod is resized",
        told=up.log,
        every=1,
    )
    (pod,) = pods(up)
    up.pod_when(pod["metadata"]["name"], gives_what_is_asked_for, "gave what is asked for")
    figure("seconds from podfit up to the resize", round(time.monotonic() - began))
    spec, status = container(up)
    assert status["restartCount"] == 0
    assert int(spec["resources"]["requests"]["cpu"].removesuffix("m")) > 50, "it used its limit of 100m"
    why = run(PODFIT, "why", "vpa/busy", "--kubeconfig", str(up.kubeconfig))
    assert "deployment" in why.out.lower()
    said = run(PODFIT, "recommend", "deployment/busy", "--kubeconfig", str(up.kubeconfig))
    assert said.code == 0
    assert "VPA" in said.out
