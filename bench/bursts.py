"""What the burst rule costs a node: the share of a core for so many containers that may burst and do not.

    python bench/bursts.py [--containers 100] [--seconds 10]

It makes so many cgroups, without processes, and has the kubelet's own rule look at them at its
own pace. Goal: at most 1 % of a core for 100. Needs root.
"""

import argparse
import asyncio
import time
from typing import Any
from uuid import uuid4

from measure import judge, machine

from podfit.api.core.v1.pods.burst import CEILING
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.core.features import FeatureGates
from podfit.kubelet.actuation.actuator import LivePod
from podfit.kubelet.bursts.record import BurstRecord
from podfit.kubelet.bursts.rule import SECONDS, BurstRule
from podfit.kubelet.cgroup.detect import detect
from podfit.kubelet.cgroup.protocol import CgroupConfig, Cgroups, Layout
from podfit.kubelet.disk.writer import DiskWriter
from podfit.net.system import SystemClock

GOAL = 1.0  # percent of a core
CEILINGS = '{"c": {"floor": {"cpu": "500m", "memory": "64Mi"}, "ceiling": {"cpu": "2", "memory": "256Mi"}}}'


class Node:
    """Stands for the informer, the pods and the allocations of a kubelet."""

    def __init__(self, pods: list[Pod]) -> None:
        self.pods, self.moved = pods, 0

    def add_handler(self, *, add: Any, update: Any, delete: Any) -> None:
        for pod in self.pods:
            add(pod)

    def live(self, uid: str) -> LivePod:
        return LivePod(sandbox_id="s", containers={"c": "c"})

    def allocated(self, pod: Pod) -> Pod:
        return pod

    def changed(self, _pod: Pod) -> None:
        self.moved += 1


def made(cgroups: Cgroups, number: int) -> list[Pod]:
    pods = []
    for _ in range(number):
        uid = str(uuid4())
        path = cgroups.layout.container(uid, "Burstable", "c")
        cgroups.create(path, CgroupConfig(cpu_quota=50_000, memory_limit=64 << 20))
        resources = {"requests": {"cpu": "100m"}, "limits": {"cpu": "500m", "memory": "64Mi"}}
        metadata = {"name": uid, "namespace": "default", "uid": uid, "annotations": {CEILING: CEILINGS}}
        spec = {"containers": [{"name": "c", "image": "i", "resources": resources}]}
        pods.append(convert({"metadata": metadata, "spec": spec, "status": {"qosClass": "Burstable"}}, Pod))
    return pods


async def cost(cgroups: Cgroups, number: int, seconds: float) -> float:
    """Percent of a core."""
    clock, gates = SystemClock(), FeatureGates()
    node: Any = Node(made(cgroups, number))
    record = BurstRecord(None, DiskWriter(clock), clock, gates)
    rule = BurstRule(
        record, node, node, node, cgroups, clock=clock, gates=gates, emit=lambda *_: None, changed=node.changed
    )
    running = asyncio.create_task(rule.run())
    await asyncio.sleep(2 * SECONDS)
    cpu, began = time.process_time(), time.monotonic()
    await asyncio.sleep(seconds)
    used, passed = time.process_time() - cpu, time.monotonic() - began
    running.cancel()
    await asyncio.wait([running])
    assert node.moved == 0, "nothing runs in these containers"
    return 100 * used / passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--containers", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    cgroups = detect(Layout(f"/podfit-bench-{uuid4().hex[:10]}")).cgroups
    print(machine())
    try:
        found = asyncio.run(cost(cgroups, options.containers, options.seconds))
    finally:
        cgroups.remove(cgroups.layout.prefix)
    goal = GOAL * options.containers / 100
    shown = f"{options.containers} containers, {1 / SECONDS:.0f} looks a second: {found:.2f} % of a core"
    print(f"{shown}, goal {goal:.2f} %: {judge(found, goal)}")
    return int(found > goal)


if __name__ == "__main__":
    raise SystemExit(main())
