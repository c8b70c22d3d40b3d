"""Deployments with a VPA on a real node: what grows, what asks for too much, and what runs out of memory, in place.

Memory runs out in the pod's own cgroup only, under its limit.
"""

import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from random import Random
from typing import Any

import pytest

from podfit.core.quantity import Quantity
from podfit.kubelet.cgroup.detect import detect
from podfit.process.layout import DataDir
from podfit.process.node_runtime import cgroup_layout
from support.machine import Snapshot
from support.up import PODFIT, Up, run
from support.vpa_processes import deployment, logs, vpa, vpa_processes

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node"), pytest.mark.timeout(120)]
MI = 1 << 20
PAGE = 4096
IDLE = "trap 'exit 0' TERM; while :; do sleep 1; done"


def grows(pieces: int, pause: float) -> str:
    """So many times 4 MiB, in the shell that is the container's first process."""
    piece = r'eval "v$i=\$(head -c 4194304 /dev/zero | tr \"\\0\" a)"'
    return f"i=0; while [ $i -lt {pieces} ]; do {piece}; i=$((i+1)); sleep {pause}; done; {IDLE}"


def sizes(cpu: str, memory: str, most: str) -> dict[str, Any]:
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": most}}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    before = Snapshot.take()
    cluster = Up(tmp_path_factory.mktemp("vpa"))
    cluster.start("--no-vpa")
    with vpa_processes(cluster):
        yield cluster
    cluster.down()
    assert Snapshot.take().since(before) == {}


class Workload:
    """The only pod of a Deployment, as it is now."""

    def __init__(self, up: Up, name: str) -> None:
        self._up, self._name = up, name
        self.uid = self.pod()["metadata"]["uid"]

    def pod(self) -> dict[str, Any]:
        end = time.monotonic() + 30
        while not (found := json.loads(self._up.ok("get", "pods", "-l", f"app={self._name}", "-o", "json"))["items"]):
            assert time.monotonic() < end
            time.sleep(0.1)
        return dict(found[0])

    def until(self, holds: Callable[[dict[str, Any]], bool], seconds: float) -> dict[str, Any]:
        """The status of its container, once that holds; never another pod's."""
        end = time.monotonic() + seconds
        while True:
            pod = self.pod()
            assert pod["metadata"]["uid"] == self.uid, "not evicted"
            statuses = pod["status"].get("containerStatuses")
            if statuses and holds(statuses[0]):
                return dict(statuses[0])
            assert time.monotonic() < end, json.dumps(pod["status"], indent=1) + logs(self._up)
            time.sleep(0.2)

    def kernel(self) -> tuple[int, int]:
        """Bytes that the kernel counts of its container, and those that it allows."""
        pod = self.pod()
        layout = cgroup_layout(DataDir(self._up.root))
        identity = pod["status"]["containerStatuses"][0]["containerID"].partition("://")[2]
        path = layout.container(self.uid, pod["status"]["qosClass"], identity)
        values = detect(layout).cgroups.read_container(path)
        assert values.memory_usage is not None
        assert values.memory_limit is not None
        return values.memory_usage, values.memory_limit


def limit(status: dict[str, Any]) -> int:
    """Bytes of memory that its status says."""
    return Quantity.parse(status.get("resources", {}).get("limits", {}).get("memory", "0")).value()


def is_running(status: dict[str, Any]) -> bool:
    return "running" in status["state"]


def seconds_between(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


def forget(up: Up, name: str) -> None:
    up.ok("delete", f"deployment/{name}", f"vpa/{name}", "--wait=true")
    up.ok("wait", "--for=delete", "pod", "-l", f"app={name}", "--timeout=30s")


def test_vpa_raises_an_oom_killed_container_before_its_backoff_is_over(up: Up) -> None:
    up.apply(deployment("oom", grows(30, 0.01), sizes("50m", "64Mi", "64Mi")), vpa("oom"))
    workload = Workload(up, "oom")
    raised = workload.until(lambda status: is_running(status) and limit(status) > 128 * MI, 30)
    time.sleep(2)  # what would be killed is, by now
    now = workload.until(is_running, 1)
    why = run(PODFIT, "why", "vpa/oom", "--kubeconfig", str(up.kubeconfig))
    forget(up, "oom")
    assert now["restartCount"] == raised["restartCount"] <= 2
    killed = raised["lastState"]["terminated"]
    assert killed["reason"] == "OOMKilled"
    if raised["restartCount"] == 2:
        assert seconds_between(killed["finishedAt"], raised["state"]["running"]["startedAt"]) < 10
    assert "memory" in why.out


def grow_and_shrink(up: Up, pieces: int, pause: float) -> tuple[int, int]:
    """Bytes that the kernel allows: one container grows beyond its first limit, the other needs next to nothing."""
    up.apply(deployment("grows", grows(pieces, pause), sizes("50m", "40Mi", "150Mi")), vpa("grows"))
    up.apply(deployment("idles", IDLE, sizes("1", "600Mi", "600Mi")), vpa("idles"))
    growing, idle = Workload(up, "grows"), Workload(up, "idles")
    first = growing.until(is_running, 20), idle.until(is_running, 20)
    end = time.monotonic() + 90
    while growing.kernel()[0] < pieces * 4 * MI or idle.kernel()[1] > 100 * MI:
        last = growing.until(is_running, 1), idle.until(is_running, 1)
        assert [status["restartCount"] for status in last] == [0, 0]
        assert time.monotonic() < end, logs(up)
        time.sleep(0.5)
    last = growing.until(is_running, 1), idle.until(is_running, 1)
    allowed = growing.kernel()[1], idle.kernel()[1]
    forget(up, "grows")
    forget(up, "idles")
    assert [status["restartCount"] for status in last] == [0, 0]
    assert [status["containerID"] for status in last] == [status["containerID"] for status in first]
    said = limit(last[0]), limit(last[1])
    assert all(0 <= most - kernel < PAGE for most, kernel in zip(said, allowed, strict=True)), (said, allowed)
    return allowed


def test_vpa_lets_one_grow_and_takes_from_another_in_place(up: Up) -> None:
    grown, shrunk = grow_and_shrink(up, 39, 0.6)
    assert grown > 156 * MI
    assert shrunk < 100 * MI


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_vpa_grows_and_shrinks_many_times(up: Up, figure: Callable[[str, object], None]) -> None:
    """On a node with containerd, six times: a Deployment whose memory grows to 1 to 2.4 times its limit at a random
    pace, and one that asks for far too much. Both end at what their VPAs recommend, resized in place, not restarted.
    """
    dice = Random(17)
    found = [grow_and_shrink(up, dice.randint(39, 90), dice.uniform(0.5, 2.0)) for _ in range(6)]
    figure("MiB that the kernel allows, grown", " ".join(str(grown // MI) for grown, _ in found))
    figure("shrunk from 600", " ".join(str(shrunk // MI) for _, shrunk in found))
