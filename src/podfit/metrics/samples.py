"""Parses a kubelet's /metrics/resource into points.

A container counts when the kubelet gives both its CPU and its memory. metrics-server also drops readings of zero, which
some kubelets gave for what they had not measured; here a zero is what was measured, as on a simulated node.
"""

import msgspec

from podfit.metrics.points import Batch, PodKey, Point
from podfit.net.exposition import Sample, samples

NODE_CPU, NODE_MEMORY = "node_cpu_usage_seconds_total", "node_memory_working_set_bytes"
CPU, MEMORY = "container_cpu_usage_seconds_total", "container_memory_working_set_bytes"
STARTED = "container_start_time_seconds"
WANTED = frozenset((NODE_CPU, NODE_MEMORY, CPU, MEMORY, STARTED))
NANO = 1_000_000_000


class _Reading(msgspec.Struct):
    """What was seen of one container or node so far."""

    started: float = 0.0
    time: float = 0.0
    cpu: float | None = None
    memory: float | None = None

    def see(self, sample: Sample, now: float) -> None:
        match sample.name:
            case "container_start_time_seconds":
                self.started = sample.value
            case "container_cpu_usage_seconds_total" | "node_cpu_usage_seconds_total":
                self.cpu, self.time = sample.value, sample.time / 1000 if sample.time else now
            case _:
                self.memory = sample.value

    def point(self) -> Point | None:
        if self.cpu is None or self.memory is None:
            return None
        return Point(self.started, self.time, round(self.cpu * NANO), int(self.memory))


def read(node: str, body: str, now: float) -> Batch:
    """`now` (seconds since 1970) is the time of what tells none. A pod of which a container has no full reading is left
    out."""
    of_node = _Reading()
    pods: dict[PodKey, dict[str, _Reading]] = {}
    for sample in samples(body, WANTED):
        if sample.name in (NODE_CPU, NODE_MEMORY):
            of_node.see(sample, now)
            continue
        labels = sample.labels
        key = labels.get("namespace", ""), labels.get("pod", "")
        pods.setdefault(key, {}).setdefault(labels.get("container", ""), _Reading()).see(sample, now)
    own = of_node.point()
    found = {key: _points(containers) for key, containers in pods.items()}
    return Batch({node: own} if own is not None else {}, {key: points for key, points in found.items() if points})


def _points(containers: dict[str, _Reading]) -> dict[str, Point]:
    points = {name: reading.point() for name, reading in containers.items()}
    whole = {name: point for name, point in points.items() if point is not None}
    return whole if len(whole) == len(points) else {}
