"""A burst through the whole kubelet, by counters that a test says: record, allocation, runtime, status; and kills."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from kubelet.harness import Node, container
from kubelet.node_api import Document
from podfit.api.core.v1.pods.burst import CEILING
from podfit.decide.autoscaling.burst import Sample
from podfit.decide.pod.resize_state import BURST
from podfit.kubelet.bursts.rule import SECONDS
from support.bursts import ceiling

SMALL = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}}
WHOLE = {"requests": {"cpu": "200m", "memory": "128Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}}


class Counted:
    """Counters of a container that uses `share` of its CPU limit, throttled when that is all of it."""

    def __init__(self, node: Node) -> None:
        self.node, self.share, self.closed = node, 0.1, 0
        self._cpu, self._periods, self._throttled, self._at = 0.0, 0, 0, node.clock.monotonic()

    def read(self, _limit: int | None) -> Sample:
        now = self.node.clock.monotonic()
        passed, self._at = now - self._at, now
        held = self.node.state().get("resources", {}).get("limits", {}).get("cpu", "200m")
        limit = float(held[:-1]) / 1000 if held.endswith("m") else float(held)
        self._cpu += passed * self.share * limit
        self._periods += 3
        self._throttled += 3 * (self.share >= 1)
        return Sample(cpu=self._cpu, periods=self._periods, throttled=self._throttled, memory=1)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    made = Node(tmp_path / "kubelet")
    made.config = replace(made.config, bursts=True)
    made.restarted()
    await made.start()
    yield made
    await made.kubelet.stop(stop_pods=True)


@pytest.fixture
def counted(node: Node, monkeypatch: pytest.MonkeyPatch) -> Counted:
    found = Counted(node)
    monkeypatch.setattr(node.cgroups, "counters", lambda _path: found)
    return found


async def granted(node: Node, resources: Document, *, qos: str = "Burstable", text: str = "") -> None:
    node.add(containers=[{**container("c1"), "resources": resources}], qos=qos)
    await node.runs()
    grant(node, text or ceiling(c1={"cpu": ("200m", "2")}))
    await node.rest()


def the_pod(node: Node) -> Document:
    found = node.api.get("pods", "web")
    assert found is not None
    return found


def grant(node: Node, text: str | None) -> None:
    pod = the_pod(node)
    annotations = {} if text is None else {CEILING: text}
    node.api.put("pods", {**pod, "metadata": {**pod["metadata"], "annotations": annotations}})


def limit(node: Node) -> str:
    return str(node.state()["resources"]["limits"]["cpu"])


def told(node: Node) -> Document:
    return next((said for said in node.api.status("web").get("conditions", []) if said["type"] == BURST), {})


async def looks(node: Node, number: int) -> None:
    for _ in range(number):
        await node.advance(SECONDS)


async def test_a_burst_goes_to_the_ceiling_and_is_told(node: Node, counted: Counted) -> None:
    await granted(node, SMALL)
    await looks(node, 6)
    assert limit(node) == "200m"
    counted.share = 1.0
    await looks(node, 3)
    assert limit(node) == "600m"
    assert told(node)["message"] == "c1: cpu limit 200m to 600m, since CPU is throttled at its limit of 200m"
    await looks(node, 12)
    assert limit(node) == "2"
    assert the_pod(node)["spec"]["containers"][0]["resources"] == SMALL
    assert node.state()["restartCount"] == 0


async def test_the_spec_counts_as_soon_as_it_says_something_else(node: Node, counted: Counted) -> None:
    await granted(node, SMALL)
    counted.share = 1.0
    await looks(node, 3)
    assert limit(node) == "600m"
    counted.share = 0.1
    other = {**SMALL, "limits": {"cpu": "300m", "memory": "128Mi"}}
    node.api.change("web", containers=[{**the_pod(node)["spec"]["containers"][0], "resources": other}])
    await looks(node, 2)
    assert limit(node) == "300m"
    assert told(node) == {}


async def test_without_the_ceiling_it_is_over(node: Node, counted: Counted) -> None:
    await granted(node, SMALL)
    counted.share = 1.0
    await looks(node, 4)
    grant(node, None)
    await looks(node, 2)
    assert limit(node) == "200m"
    assert told(node) == {}
    assert counted.closed == 1


async def test_a_guaranteed_pod_bursts_only_where_the_node_has_room(node: Node, counted: Counted) -> None:
    """Of 4 cores others request 3: 600m are there for it, and 1800m are not."""
    node.add("other", containers=[{**container("c1"), "resources": {"requests": {"cpu": "3", "memory": "1Gi"}}}])
    await granted(node, WHOLE, qos="Guaranteed")
    counted.share = 1.0
    await looks(node, 40)
    assert limit(node) == "600m"
    assert node.state()["resources"]["requests"]["cpu"] == "600m"
    assert told(node)["status"] == "True"


async def test_a_node_that_was_not_told_to_moves_nothing(node: Node, counted: Counted) -> None:
    """Where the API server is not podfit's, whoever may patch a pod writes what it likes there."""
    await node.kubelet.stop(stop_pods=True)
    node.config = replace(node.config, bursts=False)
    node.restarted()
    await node.start()
    await granted(node, SMALL, text=ceiling(c1={"cpu": ("200m", "64")}))
    counted.share = 1.0
    await looks(node, 12)
    assert limit(node) == "200m"


@pytest.mark.parametrize("moment", range(0, 60, 10))
async def test_a_kubelet_killed_at_any_moment_converges(node: Node, counted: Counted, moment: int) -> None:
    """So many turns of the loop after the look that moves the limit: record, allocation, kernel, runtime, status."""
    await granted(node, SMALL)
    await looks(node, 2)
    counted.share = 1.0
    await looks(node, 1)
    advancing = asyncio.create_task(node.clock.advance(SECONDS))
    for _ in range(moment):
        await asyncio.sleep(0)
    await node.kubelet.stop(stop_pods=False)
    await advancing
    await node.crash()
    counted.share = 0.5
    await node.start()
    await looks(node, 8)
    assert limit(node) in ("200m", "600m")
    assert bool(told(node)) == (limit(node) == "600m")
    assert not [said for said in node.api.status("web")["conditions"] if said["type"].startswith("PodResize")]
    counted.share = 1.0
    await looks(node, 30)
    assert limit(node) == "2"
    assert node.state()["restartCount"] == 0
