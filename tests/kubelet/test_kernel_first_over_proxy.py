"""Kernel first before a real containerd that refuses, hangs, answers late or changes what it is asked for: a proxy of
the CRI stands between the two.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

from podfit.api.core.v1.pods.types import Pod
from podfit.kubelet.runtime.cri import runtime_v1_pb2 as pb
from support.cri_proxy import CriProxy
from support.eventually import eventually_async
from support.real_node import MI, SECONDS, RealNode, condition, container, failed, needs, real_node, settled, status

pytestmark = [pytest.mark.node, pytest.mark.asyncio(loop_scope="module")]

SMALL = needs("50m", "32Mi", limit_cpu="100m", limit_memory="64Mi")
LARGE = needs("100m", "48Mi", limit_cpu="200m", limit_memory="96Mi")
LARGER = needs("100m", "48Mi", limit_cpu="300m", limit_memory="96Mi")


@pytest.fixture(scope="module")
def proxy() -> CriProxy:
    return CriProxy()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def node(tmp_path_factory: pytest.TempPathFactory, proxy: CriProxy) -> AsyncIterator[RealNode]:
    async with real_node(tmp_path_factory.mktemp("node"), proxy=proxy, kernel_first=True) as real:
        yield real


async def holds(node: RealNode, pod: Pod, quota: int, memory: int) -> None:
    async def held() -> tuple[int | None, int | None]:
        now = node.holds(pod, "c1")
        return now.cpu.quota, now.memory_limit

    await eventually_async(held, lambda now: now == (quota, memory), within=SECONDS, what=f"{quota}, {memory} hold")


def cpu(pod: Pod) -> str:
    """The CPU limit that the status tells."""
    resources = status(pod, "c1").resources
    assert resources is not None
    return str(resources.limits["cpu"])


async def test_it_refuses(node: RealNode, proxy: CriProxy) -> None:
    pod = await node.runs("refused", container("c1", SMALL))
    proxy.refusal = "no, says the runtime"
    await node.resize("refused", c1=LARGE)
    said = await node.until(failed, "refused")
    found = condition(said, "PodResizeInProgress")
    assert found is not None
    assert found.message == "no, says the runtime"
    await holds(node, pod, 10_000, 64 * MI)
    proxy.refusal = ""
    await node.until(settled, "refused")
    await holds(node, pod, 20_000, 96 * MI)
    await node.delete("refused")


@pytest.mark.parametrize("when", ["hangs", "is late"])
async def test_it_does_not_answer_yet(node: RealNode, proxy: CriProxy, when: str) -> None:
    """Growth holds; the status says that the resize is in progress until the answer has come."""
    pod = await node.runs("waits", container("c1", SMALL))
    held = proxy.open if when == "hangs" else proxy.answers
    held.clear()
    await node.resize("waits", c1=LARGE)
    await holds(node, pod, 20_000, 96 * MI)
    waiting = await node.until(lambda pod: condition(pod, "PodResizeInProgress") is not None, "waits")
    assert cpu(waiting) == "100m"
    held.set()
    assert cpu(await node.until(settled, "waits")) == "200m"
    await holds(node, pod, 20_000, 96 * MI)
    await node.delete("waits")


async def test_the_kubelet_dies_while_it_hangs_and_it_refuses_the_next(node: RealNode, proxy: CriProxy) -> None:
    """What the dead kubelet has raised goes back."""
    pod = await node.runs("died", container("c1", SMALL))
    proxy.open.clear()
    await node.resize("died", c1=LARGE)
    await holds(node, pod, 20_000, 96 * MI)
    await node.kubelet.stop(stop_pods=False)
    proxy.refusal = "no, says the runtime"
    proxy.open.set()
    node.kubelet = node.new_kubelet()
    await node.kubelet.start()
    await node.until(failed, "died")
    await holds(node, pod, 10_000, 64 * MI)
    proxy.refusal = ""
    pod = await node.until(settled, "died")
    await holds(node, pod, 20_000, 96 * MI)
    assert status(pod, "c1").restart_count == 0
    await node.delete("died")


async def test_it_changes_what_it_is_asked_for(node: RealNode, proxy: CriProxy) -> None:
    """As a plugin (NRI) does that gives a tenth less: what it sets holds, and growth of that is its alone."""

    def less(resources: pb.LinuxContainerResources) -> None:
        resources.cpu_quota -= resources.cpu_quota // 10

    proxy.changes = less
    pod = await node.runs("changed", container("c1", SMALL))
    await holds(node, pod, 9_000, 64 * MI)
    asked = proxy.updates
    proxy.open.clear()
    await node.resize("changed", c1=LARGE)
    await eventually_async(_updates(proxy), lambda seen: seen > asked, within=SECONDS, what="the runtime is asked")
    await holds(node, pod, 9_000, 96 * MI)
    proxy.open.set()
    await node.until(settled, "changed")
    await holds(node, pod, 18_000, 96 * MI)
    asked = proxy.updates
    proxy.open.clear()
    await node.resize("changed", c1=LARGER)
    await eventually_async(_updates(proxy), lambda seen: seen > asked, within=SECONDS, what="the runtime is asked")
    await holds(node, pod, 18_000, 96 * MI)
    proxy.open.set()
    await node.until(settled, "changed")
    await holds(node, pod, 27_000, 96 * MI)
    proxy.changes = lambda _: None
    await node.delete("changed")


def _updates(proxy: CriProxy) -> Callable[[], Awaitable[int]]:
    async def seen() -> int:
        return proxy.updates

    return seen
