"""Guarded memory shrink with real containers (docs/shrink.md): what can be reclaimed is, and nobody is killed."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.resize.guarded_shrink import ANNOTATION, margin
from support.real_node import MI, STAY, RealNode, condition, container, failed, identity, needs, real_node, settled

pytestmark = [pytest.mark.guest, pytest.mark.node, pytest.mark.asyncio(loop_scope="module")]

GUARDED = {ANNOTATION: "guarded"}
CACHE = f"dd if=/dev/zero of=/file bs=1M count=80; sync; {STAY}"
"""80 MiB of file cache: all of it can be reclaimed."""
ANONYMOUS = f"(head -c 41943040 /dev/zero; sleep 3600) | tail -c 41943040 & {STAY}"
"""40 MiB that nothing can reclaim."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def node(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealNode]:
    async with real_node(tmp_path_factory.mktemp("node")) as real:
        yield real


def sized(memory: str) -> dict[str, dict[str, str]]:
    return needs("50m", "16Mi", limit_cpu="100m", limit_memory=memory)


def high(path: str) -> str:
    return Path(f"/sys/fs/cgroup{path}/memory.high").read_text().strip()


def highs(node: RealNode, pod: Pod) -> list[str]:
    return [high(node.container_path(pod, "c1")), high(node.pod_path(pod))]


@pytest.mark.row("R-145")
async def test_file_cache_is_reclaimed_and_the_limit_follows(node: RealNode) -> None:
    pod = await node.runs("cache", container("c1", sized("128Mi"), script=CACHE), annotations=GUARDED)
    before = identity(pod, "c1")
    assert await node.uses(pod, "c1", 80 * MI) > 40 * MI
    await node.resize("cache", c1=sized("40Mi"))
    pod = await node.until(settled, "cache")
    held = node.holds(pod, "c1")
    assert held.memory_limit == node.pod_holds(pod).memory == 40 * MI
    assert held.memory_usage is not None
    assert held.memory_usage <= 40 * MI - margin(40 * MI) + MI
    assert identity(pod, "c1") == before
    assert highs(node, pod) == ["max", "max"]
    await node.delete("cache")


@pytest.mark.row("R-143", "R-144")
async def test_anonymous_memory_is_left_alone_and_said(node: RealNode) -> None:
    pod = await node.runs("anon", container("c1", sized("128Mi"), script=ANONYMOUS), annotations=GUARDED)
    before = identity(pod, "c1")
    await node.uses(pod, "c1", 40 * MI)
    await node.resize("anon", c1=sized("24Mi"))
    pod = await node.until(failed, "anon")
    found = condition(pod, "PodResizeInProgress")
    assert found is not None
    assert f'container "c1" memory limit ({24 * MI}) below current usage (' in found.message
    assert "guarded shrink stopped, nothing more was reclaimed" in found.message
    held = node.holds(pod, "c1")
    assert (held.memory_limit, node.pod_holds(pod).memory) == (128 * MI, 128 * MI)
    await node.resize("anon", c1=sized("64Mi"))
    pod = await node.until(settled, "anon")
    assert node.holds(pod, "c1").memory_limit == 64 * MI
    assert identity(pod, "c1") == before, "nobody was killed"
    assert highs(node, pod) == ["max", "max"]
    await node.delete("anon")


async def test_a_pod_limit_is_guarded_too(node: RealNode) -> None:
    level = needs("50m", "16Mi", limit_cpu="100m", limit_memory="128Mi")
    pod = await node.runs(
        "level", container("c1", needs("20m", "8Mi"), script=CACHE), annotations=GUARDED, resources=level
    )
    before = identity(pod, "c1")
    await node.uses(pod, "c1", 80 * MI)
    await node.resize("level", needs("50m", "16Mi", limit_cpu="100m", limit_memory="40Mi"))
    pod = await node.until(settled, "level")
    assert node.holds(pod, "c1").memory_limit == node.pod_holds(pod).memory == 40 * MI
    assert identity(pod, "c1") == before
    assert highs(node, pod) == ["max", "max"]
    await node.delete("level")
