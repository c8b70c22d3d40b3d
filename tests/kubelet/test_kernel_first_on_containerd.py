"""Kernel first with real containers: growth is enforced while containerd has not answered, and goes back where it
refuses. Runs on this machine's cgroup version, and in the guest of cgroup v2 (tests/guest/test_kernel_first.py).
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from podfit.api.core.v1.pods.types import Pod
from podfit.kubelet.runtime.errors import CRIError
from support.eventually import eventually_async
from support.real_node import MI, SECONDS, RealNode, condition, container, failed, needs, real_node, settled, status

pytestmark = [pytest.mark.node, pytest.mark.asyncio(loop_scope="module")]

SMALL = needs("50m", "32Mi", limit_cpu="100m", limit_memory="64Mi")
LARGE = needs("100m", "48Mi", limit_cpu="200m", limit_memory="96Mi")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def node(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealNode]:
    async with real_node(tmp_path_factory.mktemp("node"), kernel_first=True) as real:
        yield real


def limits(node: RealNode, pod: Pod) -> tuple[int | None, int | None]:
    held = node.holds(pod, "c1")
    return held.cpu.quota, held.memory_limit


def size(pod: Pod) -> str:
    """The memory limit that the status tells."""
    resources = status(pod, "c1").resources
    assert resources is not None
    return str(resources.limits["memory"])


async def becomes(node: RealNode, pod: Pod, wanted: tuple[int, int]) -> None:
    async def held() -> tuple[int | None, int | None]:
        return limits(node, pod)

    await eventually_async(held, lambda now: now == wanted, within=SECONDS, what=f"the kernel holds {wanted}")


async def test_growth_holds_before_the_runtime_has_answered(node: RealNode) -> None:
    pod = await node.runs("late", container("c1", SMALL))
    node.faults.open.clear()
    await node.resize("late", c1=LARGE)
    await becomes(node, pod, (20_000, 96 * MI))
    waiting = await node.pod("late")
    assert waiting is not None
    assert condition(waiting, "PodResizeInProgress") is not None
    assert size(waiting) == "64Mi"
    node.faults.open.set()
    pod = await node.until(settled, "late")
    assert limits(node, pod) == (20_000, 96 * MI)
    assert node.requests(pod, "c1", 100)
    assert size(pod) == "96Mi"
    await node.delete("late")


async def test_what_the_runtime_refuses_goes_back(node: RealNode) -> None:
    pod = await node.runs("refused", container("c1", SMALL))
    node.faults.refusal = CRIError("not today")
    await node.resize("refused", c1=LARGE)
    said = await node.until(failed, "refused")
    found = condition(said, "PodResizeInProgress")
    assert found is not None
    assert found.message == "not today"
    assert limits(node, pod) == (10_000, 64 * MI)
    node.faults.refusal = None
    pod = await node.until(settled, "refused")
    assert limits(node, pod) == (20_000, 96 * MI)
    await node.delete("refused")


async def test_a_kubelet_that_died_in_between_asks_the_runtime_again(node: RealNode) -> None:
    pod = await node.runs("died", container("c1", SMALL))
    node.faults.open.clear()
    await node.resize("died", c1=LARGE)
    await becomes(node, pod, (20_000, 96 * MI))
    await node.kubelet.stop(stop_pods=False)
    node.calls.said.clear()
    node.faults.open.set()
    node.kubelet = node.new_kubelet()
    await node.kubelet.start()
    pod = await node.until(settled, "died")
    assert limits(node, pod) == (20_000, 96 * MI)
    assert any(f"memory={96 * MI}" in line for line in node.calls.about("update"))
    assert status(pod, "c1").restart_count == 0
    await node.delete("died")
