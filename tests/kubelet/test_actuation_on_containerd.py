"""Actuation with real containers: what containerd and the kernel hold after a resize, and in which order
it came about. Runs on this machine's cgroup version, and in the guest of cgroup v2 (tests/guest/test_actuation.py).
"""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.node.v1.types import RuntimeClass
from podfit.decide.cgroup import conversion as decide
from podfit.decide.lifecycle.facts import LinuxResources
from podfit.kubelet.cgroup.protocol import CgroupConfig
from podfit.kubelet.runtime.errors import CRIError
from support.real_node import (
    MI,
    STAY,
    RealNode,
    condition,
    container,
    failed,
    identity,
    needs,
    real_node,
    settled,
    short_id,
    status,
)

pytestmark = [pytest.mark.node, pytest.mark.asyncio(loop_scope="module")]

SMALL = needs("50m", "32Mi", limit_cpu="100m", limit_memory="64Mi")
HOLD = f"(head -c 41943040 /dev/zero; sleep 3600) | tail -c 41943040 & {STAY}"
"""40 MiB of anonymous memory, which nothing can reclaim."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def node(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealNode]:
    async with real_node(tmp_path_factory.mktemp("node")) as real:
        yield real


Start = Callable[..., Awaitable[Pod]]


@pytest_asyncio.fixture(loop_scope="module")
async def start(node: RealNode) -> AsyncIterator[Start]:
    """Pods that are gone when the test ends: a guest has one CPU to give away."""
    started: list[str] = []

    async def begin(name: str, *containers: object, **spec: object) -> Pod:
        started.append(name)
        return await node.runs(name, *containers, **spec)  # type: ignore[arg-type]  # keywords of several types

    yield begin
    for name in started:
        await node.delete(name)


@pytest.mark.row("R-123", "R-124", "R-127", "R-130", "R-137")
async def test_cpu_and_memory_change_while_the_container_runs(node: RealNode, start: Start) -> None:
    pod = await start("live", container("c1", SMALL), container("c2", SMALL))
    before = identity(pod, "c1"), identity(pod, "c2")
    await node.resize("live", c1=needs("100m", "48Mi", limit_cpu="200m", limit_memory="96Mi"))
    pod = await node.until(settled, "live")
    held = node.holds(pod, "c1")
    assert (held.cpu.quota, held.cpu.period, held.memory_limit) == (20_000, 100_000, 96 * MI)
    assert node.requests(pod, "c1", 100)
    assert (node.holds(pod, "c2").cpu.quota, node.holds(pod, "c2").memory_limit) == (10_000, 64 * MI)
    assert (identity(pod, "c1"), identity(pod, "c2")) == before
    updates = node.calls.about(f"update {short_id(status(pod, 'c1'))}")
    assert [line.partition(" memory=")[2] for line in updates] == [
        f"{96 * MI} quota=10000 shares=51",
        f"{96 * MI} quota=20000 shares=102",
    ], "memory first, with the CPU as it was"


@pytest.mark.row("R-128", "R-129")
async def test_a_request_changes_no_limit_and_a_limit_no_request(node: RealNode, start: Start) -> None:
    await start("each", container("c1", SMALL))
    await node.resize("each", c1=needs("80m", "48Mi", limit_cpu="100m", limit_memory="64Mi"))
    pod = await node.until(settled, "each")
    held = node.holds(pod, "c1")
    assert node.requests(pod, "c1", 80)
    assert (held.cpu.quota, held.memory_limit) == (10_000, 64 * MI)
    await node.resize("each", c1=needs("80m", "48Mi", limit_cpu="300m", limit_memory="128Mi"))
    pod = await node.until(settled, "each")
    held = node.holds(pod, "c1")
    assert node.requests(pod, "c1", 80)
    assert (held.cpu.quota, held.memory_limit) == (30_000, 128 * MI)


@pytest.mark.row("R-125", "R-126", "R-127")
async def test_a_restart_happens_once_and_only_where_the_policy_asks(node: RealNode, start: Start) -> None:
    pod = await start("policy", container("c1", SMALL, restart_for=("memory",)), container("c2", SMALL))
    neighbour, first = identity(pod, "c2"), identity(pod, "c1")
    await node.resize("policy", c1=needs("50m", "32Mi", limit_cpu="200m", limit_memory="64Mi"))
    pod = await node.until(settled, "policy")
    assert identity(pod, "c1") == first
    await node.resize("policy", c1=needs("50m", "32Mi", limit_cpu="300m", limit_memory="96Mi"))
    pod = await node.until(settled, "policy")
    assert status(pod, "c1").restart_count == 1
    assert identity(pod, "c1")[0] != first[0]
    held = node.holds(pod, "c1")
    assert (held.cpu.quota, held.memory_limit) == (30_000, 96 * MI)
    assert identity(pod, "c2") == neighbour


def _kinds(node: RealNode, pod: Pod, resource: str) -> list[str]:
    """Who was told about this resource, in order: `pod` or a container's name. Repetitions are one."""
    names = {short_id(status(pod, container.name)): container.name for container in pod.spec.containers}
    said: list[str] = []
    for line in node.calls.about(pod.metadata.uid, *names):
        who = next((name for id_, name in names.items() if id_ in line), "pod")
        if (who != "pod" or f" {resource}=" in line) and said[-1:] != [who]:
            said.append(who)
    return said


@pytest.mark.row("R-131", "R-132", "R-133")
async def test_the_pod_grows_first_and_shrinks_last(node: RealNode, start: Start) -> None:
    pod = await start("order", container("c1", SMALL), container("c2", SMALL))

    async def change(quota1: str, quota2: str) -> list[str]:
        node.calls.said.clear()
        one = needs("50m", "32Mi", limit_cpu=quota1, limit_memory="64Mi")
        two = needs("50m", "32Mi", limit_cpu=quota2, limit_memory="64Mi")
        await node.resize("order", c1=one, c2=two)
        after = await node.until(settled, "order")
        quotas = int(quota1[:-1]) * 100, int(quota2[:-1]) * 100
        assert (node.holds(after, "c1").cpu.quota, node.holds(after, "c2").cpu.quota) == quotas
        assert node.pod_holds(after).quota == sum(quotas)
        return _kinds(node, pod, "quota")

    assert await change("200m", "200m") == ["pod", "c1", "c2"]
    assert await change("400m", "100m") == ["pod", "c2", "c1"], "within the pod what shrinks comes first"
    assert await change("100m", "150m") == ["c1", "c2", "pod"]


@pytest.mark.row("R-134", "R-135", "R-136")
async def test_the_pod_cgroup_follows_its_containers(node: RealNode, start: Start) -> None:
    sidecar = container("side", needs("20m", "16Mi", limit_cpu="50m", limit_memory="32Mi"), restartPolicy="Always")
    costly = {"metadata": {"name": "costly"}, "handler": "h", "overhead": {"podFixed": {"cpu": "10m"}}}
    await node.server.client.create(convert(costly, RuntimeClass))
    pod = await start(
        "sum",
        container("c1", SMALL),
        container("c2", needs("30m", "16Mi")),
        initContainers=[sidecar],
        runtimeClassName="costly",
    )
    assert (node.pod_holds(pod).memory, node.pod_holds(pod).quota) == (None, None), "c2 has no limits"
    assert node.pod_requests(pod, 50 + 30 + 20 + 10)
    await node.resize("sum", c2=needs("60m", "16Mi", limit_cpu="100m", limit_memory="64Mi"))
    pod = await node.until(settled, "sum")
    assert node.pod_requests(pod, 50 + 60 + 20 + 10)
    assert node.pod_holds(pod).memory == (64 + 64 + 32) * MI
    assert node.pod_holds(pod).quota == 10_000 + 10_000 + 5_000 + 1_000


@pytest.mark.row("R-143", "R-144", "R-145")
async def test_a_memory_limit_below_usage_is_an_error_that_changes_nothing(node: RealNode, start: Start) -> None:
    large = needs("50m", "32Mi", limit_cpu="100m", limit_memory="128Mi")
    pod = await start("holds", container("c1", large, script=HOLD))
    before = identity(pod, "c1")
    await node.uses(pod, "c1", 40 * MI)
    wanted = needs("50m", "32Mi", limit_cpu="200m", limit_memory="36Mi")
    await node.resize("holds", c1=wanted)
    pod = await node.until(failed, "holds")
    found = condition(pod, "PodResizeInProgress")
    assert found is not None
    assert f'container "c1" memory limit ({36 * MI}) below current usage (' in found.message
    assert condition(pod, "PodResizePending") is None
    assert status(pod, "c1").allocated_resources["memory"] == pod.spec.containers[0].resources.requests["memory"]
    held = node.holds(pod, "c1")
    assert (held.cpu.quota, held.memory_limit, node.pod_holds(pod).memory) == (10_000, 128 * MI, 128 * MI)
    await node.resize("holds", c1=needs("50m", "32Mi", limit_cpu="200m", limit_memory="96Mi"))
    pod = await node.until(settled, "holds")
    held = node.holds(pod, "c1")
    assert (held.cpu.quota, held.memory_limit, node.pod_holds(pod).memory) == (20_000, 96 * MI, 96 * MI)
    assert identity(pod, "c1") == before


async def test_without_the_check_v1_refuses_and_v2_kills(node: RealNode, start: Start) -> None:
    """Why the kubelet looks before it lowers a limit."""
    pod = await start("dies", container("c1", needs(limit_memory="128Mi"), script=HOLD), restartPolicy="Never")
    await node.uses(pod, "c1", 40 * MI)
    below = LinuxResources(memory_limit=20 * MI)
    if node.cgroups.version == "v1":
        with pytest.raises(CRIError, match="memory limit"):
            await node.runtime.update_container_resources(short_id(status(pod, "c1")), below)
        assert node.holds(pod, "c1").memory_limit == 128 * MI
        return
    await node.runtime.update_container_resources(short_id(status(pod, "c1")), below)
    path = f"/sys/fs/cgroup{node.container_path(pod, 'c1')}"
    ended = await node.until(lambda pod: pod.status.phase == "Failed", "dies")
    terminated = status(ended, "c1").state.terminated
    assert terminated is not None, path
    assert terminated.exit_code == 137


MILLI = (0, 1, 2, 5, 10, 50, 100, 200, 250, 300, 500, 800, 1000, 1500, 2000, 4000, 256_000)


@pytest.mark.row("R-183")
async def test_the_kernel_holds_what_the_tables_say(node: RealNode) -> None:
    path = node.cgroups.layout.pod("table", "Burstable")
    node.cgroups.create(path, CgroupConfig(cpu_shares=2))
    for milli in MILLI:
        shares, quota = decide.shares_from_milli(milli), decide.quota_from_milli(milli)
        node.cgroups.set_cpu_shares(path, shares)
        node.cgroups.set_cpu_limit(path, quota=quota or -1, period=100_000)
        cpu = node.cgroups.read_cpu(path)
        assert cpu.quota == (quota or None)
        if node.cgroups.version == "v1":
            assert cpu.shares == shares
        else:
            assert cpu.weight == decide.weight_from_shares_linear(shares)
    node.cgroups.remove(path)


@pytest.mark.row("R-184")
async def test_a_containers_weight_is_right_by_either_conversion(node: RealNode, start: Start) -> None:
    pod = await start("weights", container("c1", needs("1m")))
    for milli in MILLI[1:]:
        shares = decide.shares_from_milli(milli)
        await node.runtime.update_container_resources(short_id(status(pod, "c1")), LinuxResources(cpu_shares=shares))
        assert node.requests(pod, "c1", milli), node.holds(pod, "c1")
