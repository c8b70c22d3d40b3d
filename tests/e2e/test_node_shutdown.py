"""A node that goes down with time for its pods: in order, with upstream's status, whoever takes it down."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from podfit.process.node.cluster_node import BOOTED
from support.eventually import process_ended
from support.up import Up, manifest, running

pytestmark = [pytest.mark.kubectl]

TIME = ("--shutdown-grace-period", "20s", "--shutdown-grace-period-critical-pods", "5s")
SLOW = ["sh", "-c", "trap 'sleep 2; exit 0' TERM; while :; do sleep 3600 & wait $!; done"]


def pods() -> list[dict[str, Any]]:
    slow = {"name": "app", "command": SLOW}
    vital = manifest("vital", slow, terminationGracePeriodSeconds=10, priorityClassName="system-node-critical")
    return [manifest("plain", slow, terminationGracePeriodSeconds=10), vital]


def ended(up: Up, name: str) -> tuple[str, str]:
    """When its container ended and what its status says, of a cluster that runs again."""
    status = up.get("pod", name)["status"]
    assert status["phase"] == "Failed"
    finished = status["containerStatuses"][0]["state"]["terminated"]["finishedAt"]
    return finished, f"{status['reason']}: {status['message']}"


def shown(up: Up) -> None:
    told = [ended(up, name) for name in ("plain", "vital")]
    assert told[0][0] < told[1][0], "the critical one ended later"
    text = "Terminated: Pod was terminated in response to imminent node shutdown."
    assert [message for _, message in told] == [text, text]
    assert "Shutdown manager detected shutdown event" in up.ok("get", "events", "-A")


@pytest.mark.node
@pytest.mark.xdist_group("node")
def test_down_lets_pods_end_in_order(cluster_dir: Up) -> None:
    cluster_dir.start(*TIME)
    cluster_dir.apply(*pods())
    for name in ("plain", "vital"):
        cluster_dir.pod_when(name, running, "ran")
    assert "status is now: NodeReady" in cluster_dir.ok("describe", "nodes")
    answer = cluster_dir.down()
    assert answer.code == 0, answer.err
    cluster_dir.start()
    shown(cluster_dir)


@pytest.mark.skipif(BOOTED.exists(), reason="systemd runs here and does not say that it stops the machine")
def test_so_does_a_machine_that_goes_down(tmp_path: Path) -> None:
    up = Up(tmp_path / "data")
    try:
        up.start(*TIME, node="simulated")
        up.apply(*pods())
        for name in ("plain", "vital"):
            up.pod_when(name, running, "ran")
        process = up.state()["pid"]
        os.kill(process, signal.SIGTERM)
        process_ended(process, within=40, told=up.log)
        up.start(node="simulated")
        for name in ("plain", "vital"):
            assert up.get("pod", name)["status"]["reason"] == "Terminated"
    finally:
        up.down()
