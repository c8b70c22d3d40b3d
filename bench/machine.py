"""The node machine by itself: what a resize costs on a node with few and with many pods.

    python bench/machine.py [--resizes 500]

One resize is the step that grants it and the one that takes its new status in. The goal is 0.3 ms on a node of 1,000
pods: what a step costs must not grow with the node.
"""

import argparse
import time
from datetime import UTC, datetime

import msgspec
from measure import judge, machine, percentile, table
from msgspec.structs import replace

from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import Quantity
from podfit.decide.cgroup.container_resources import Machine
from podfit.decide.node import events as on
from podfit.decide.node.machine import step
from podfit.decide.node.settled import settled_status
from podfit.decide.node.state import NodeState
from podfit.decide.resize.verdict import NodeView

SIZES = (50, 110, 1000)
GOAL = 0.3
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pod(number: int, milli: int) -> Pod:
    resources = {"requests": {"cpu": f"{milli}m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "64Mi"}}
    document = {
        "metadata": {"name": f"p{number}", "namespace": "default", "uid": f"uid-{number}", "generation": milli},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i", "resources": resources}]},
        "status": {"phase": "Running", "qosClass": "Burstable"},
    }
    return msgspec.convert(document, Pod, dec_hook=lambda kind, text: kind.parse(text))


def running(new: Pod) -> Pod:
    statuses = tuple(
        ContainerStatus(
            name=container.name, resources=container.resources, allocated_resources=container.resources.requests
        )
        for container in new.spec.containers
    )
    return replace(new, status=replace(new.status, container_statuses=statuses))


def measured(pods: int, resizes: int) -> tuple[float, list[float]]:
    """Milliseconds for all pods to be added one by one, and for each resize."""
    allocatable = {"cpu": Quantity.of(pods), "memory": Quantity.of_bytes(pods << 30)}
    state = NodeState(view=NodeView(allocatable=allocatable, machine=Machine(memory=pods << 30)), sources_ready=True)
    began = time.perf_counter()
    for number in range(pods):
        state, _ = step(state, on.PodsAdded((running(pod(number, 100)),)), now=NOW)
    added, times = 1000 * (time.perf_counter() - began), []
    asked = [pod(number % pods, 101 + number // pods) for number in range(resizes)]
    for desired in asked:
        began = time.perf_counter()
        state, _ = step(state, on.PodsUpdated((desired,)), now=NOW)
        uid = desired.metadata.uid
        state, _ = step(
            state, on.StatusGenerated(uid, settled_status(state.allocated_pod(state.pods[uid].pod))), now=NOW
        )
        times.append(1000 * (time.perf_counter() - began))
    return added, times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--resizes", type=int, default=500)
    resizes = parser.parse_args().resizes
    print(machine())
    rows = [("pods", "all added", "resize p50", "p99", "goal", "")]
    for pods in SIZES:
        added, times = measured(pods, resizes)
        half, most = percentile(times, 50), percentile(times, 99)
        rows.append((str(pods), f"{added:.0f} ms", f"{half:.3f}", f"{most:.3f}", f"{GOAL}", judge(half, GOAL)))
    table(rows)


if __name__ == "__main__":
    main()
