"""The gate MemoryQoS with real containers: the kernel's memory.min, memory.low and memory.high."""

from pathlib import Path

import pytest

from podfit.core.features import FeatureGates
from podfit.decide.cgroup.memory_qos import MemoryQoS
from podfit.kubelet.node.machine import memory_bytes
from support.real_node import MI, container, needs, real_node, settled

pytestmark = [pytest.mark.guest, pytest.mark.node]


async def test_requests_reach_the_kernel_and_follow_a_resize(tmp_path: Path) -> None:
    qos = MemoryQoS(allocatable=memory_bytes(), reserve=True)
    gates = FeatureGates({"MemoryQoS": True})
    async with real_node(tmp_path, gates=gates, memory_qos=qos) as node:

        def held(path: str) -> list[str]:
            folder = Path(f"/sys/fs/cgroup{path}")
            return [(folder / f"memory.{name}").read_text().strip() for name in ("min", "low", "high")]

        pod = await node.runs("burst", container("c1", needs("50m", "32Mi", limit_cpu="100m", limit_memory="64Mi")))
        path = node.container_path(pod, "c1")
        high = qos.high(32 * MI, 64 * MI)
        assert held(path) == ["0", str(32 * MI), str(high)]
        assert held(node.pod_path(pod)) == ["0", str(32 * MI), "max"]
        assert held(node.cgroups.layout.qos("Burstable")) == ["0", str(32 * MI), "max"]
        assert held(node.cgroups.layout.root)[0] == str(32 * MI)

        await node.resize("burst", c1=needs("50m", "48Mi", limit_cpu="100m", limit_memory="96Mi"))
        await node.until(settled, "burst")
        assert held(path) == ["0", str(48 * MI), str(qos.high(48 * MI, 96 * MI))]
        assert held(node.pod_path(pod))[1] == str(32 * MI), "the pod's is not refreshed by a resize, as upstream"
        await node.resize("burst", c1=needs("50m", "96Mi", limit_cpu="100m", limit_memory="96Mi"))
        await node.until(settled, "burst")
        assert held(path) == ["0", str(96 * MI), "max"]

        whole = needs("50m", "32Mi", limit_cpu="50m", limit_memory="32Mi")
        pod = await node.runs("sure", container("c1", whole))
        assert held(node.container_path(pod, "c1")) == [str(32 * MI), "0", "max"]
        assert held(node.pod_path(pod)) == [str(32 * MI), "0", "max"]
        assert held(node.cgroups.layout.root)[0] == str(128 * MI)
