"""Pod-level resources with real containers (R-155 to R-160), on this machine's cgroup version and in the guest."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from support.real_node import MI, RealNode, condition, container, failed, identity, needs, real_node, settled, status

pytestmark = [pytest.mark.node, pytest.mark.asyncio(loop_scope="module")]

HOLD = "(head -c 41943040 /dev/zero; sleep 3600) | tail -c 41943040"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def node(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealNode]:
    async with real_node(tmp_path_factory.mktemp("node")) as real:
        yield real


def both(cpu: str, memory: str) -> dict[str, dict[str, str]]:
    return needs(cpu, memory, limit_cpu=cpu, limit_memory=memory)


@pytest.mark.row("R-155", "R-158", "R-159")
async def test_containers_without_limits_follow_the_pods(node: RealNode) -> None:
    pod = await node.runs(
        "level",
        container("c0", needs("100m", "50Mi"), restart_for=("memory",)),
        container("c1", restart_for=("cpu", "memory")),
        resources=both("200m", "100Mi"),
    )
    quiet = identity(pod, "c0")
    for name in ("c0", "c1"):
        held = node.holds(pod, name)
        assert (held.cpu.quota, held.memory_limit) == (20_000, 100 * MI)
    await node.resize("level", both("300m", "100Mi"))
    pod = await node.until(settled, "level")
    assert identity(pod, "c0") == quiet
    assert status(pod, "c1").restart_count == 1
    assert pod.status.qos_class == "Guaranteed"
    for name in ("c0", "c1"):
        assert node.holds(pod, name).cpu.quota == 30_000
    assert node.pod_holds(pod).quota == 30_000
    assert pod.status.allocated_resources["cpu"].milli() == 300
    assert pod.status.resources is not None
    assert pod.status.resources.limits["cpu"].milli() == 300
    await node.delete("level")


@pytest.mark.row("R-156", "R-157")
async def test_a_container_with_its_own_limit_is_left_alone(node: RealNode) -> None:
    own = needs("50m", "32Mi", limit_cpu="100m", limit_memory="64Mi")
    pod = await node.runs(
        "own",
        container("c0", own, restart_for=("cpu", "memory")),
        resources=needs("100m", "64Mi", limit_cpu="200m", limit_memory="128Mi"),
    )
    before, held = identity(pod, "c0"), node.holds(pod, "c0")
    await node.resize("own", needs("100m", "64Mi", limit_cpu="300m", limit_memory="160Mi"))
    pod = await node.until(settled, "own")
    assert (node.pod_holds(pod).quota, node.pod_holds(pod).memory) == (30_000, 160 * MI)
    await node.resize("own", needs("150m", "64Mi", limit_cpu="300m", limit_memory="160Mi"))
    pod = await node.until(settled, "own")
    assert node.pod_requests(pod, 150)
    assert (node.pod_holds(pod).quota, node.pod_holds(pod).memory) == (30_000, 160 * MI)
    now = node.holds(pod, "c0")
    assert (identity(pod, "c0"), now.cpu, now.memory_limit) == (before, held.cpu, held.memory_limit)
    await node.delete("own")


@pytest.mark.row("R-160")
async def test_a_pod_limit_below_usage_is_an_error_that_changes_nothing(node: RealNode) -> None:
    own = needs("50m", "16Mi", limit_cpu="100m", limit_memory="32Mi")
    resources = needs("100m", "40Mi", limit_cpu="200m", limit_memory="128Mi")
    pod = await node.runs(
        "tight", container("c0", own), container("c1", needs("20m", "16Mi"), script=HOLD), resources=resources
    )
    await node.uses(pod, "c1", 40 * MI)
    await node.resize("tight", needs("100m", "40Mi", limit_cpu="200m", limit_memory="40Mi"))
    pod = await node.until(failed, "tight")
    found = condition(pod, "PodResizeInProgress")
    assert found is not None
    assert f"attempting to set pod memory limit ({40 * MI}) below current usage (" in found.message
    assert node.pod_holds(pod).memory == 128 * MI
    await node.delete("tight")
