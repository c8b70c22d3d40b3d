"""Parses a kubelet's /metrics/resource into points, as much of it at once as a turn of the event loop allows.

A container counts when the kubelet gives both its CPU and its memory. metrics-server also drops readings of zero, which
some kubelets gave for what they had not measured; here a zero is what was measured, as on a simulated node.
"""

import asyncio
from math import isfinite

import msgspec

from podfit.metrics.points import Batch, PodKey, Point
from podfit.net.exposition import Sample, pieces, samples

NODE_CPU, NODE_MEMORY = "node_cpu_usage_seconds_total", "node_memory_working_set_bytes"
CPU, MEMORY = "container_cpu_usage_seconds_total", "container_memory_working_set_bytes"
STARTED = "container_start_time_seconds"
WANTED = frozenset((NODE_CPU, NODE_MEMORY, CPU, MEMORY, STARTED))
NANO = 1_000_000_000
MOST_SAMPLES = 20_000
"""Of one kubelet; 500 pods of four containers tell 6,000."""
_LARGEST = 2.0**63
_LATEST = 253_402_300_799.0  # the last second of the year 9999


class TooManySamples(ConnectionError):
    """A kubelet tells more than a node of any size has."""


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
        """None without both, or where a number is none that a container or node can have."""
        if self.cpu is None or self.memory is None:
            return None
        if not (_is_below(self.cpu * NANO, _LARGEST) and _is_below(self.memory, _LARGEST)):
            return None
        if not (_is_below(self.started, _LATEST) and _is_below(self.time, _LATEST)):
            return None
        return Point(self.started, self.time, round(self.cpu * NANO), int(self.memory))


def _is_below(number: float, limit: float) -> bool:
    return isfinite(number) and 0 <= number < limit


async def read(node: str, body: str, now: float) -> Batch:
    """`now` (seconds since 1970) is the time of what tells none. A pod of which a container has no full reading is left
    out. Raises TooManySamples."""
    of_node = _Reading()
    pods: dict[PodKey, dict[str, _Reading]] = {}
    number = 0
    for piece in pieces(body):
        for sample in samples(piece, WANTED):
            number += 1
            if sample.name in (NODE_CPU, NODE_MEMORY):
                of_node.see(sample, now)
                continue
            labels = sample.labels
            key = labels.get("namespace", ""), labels.get("pod", "")
            pods.setdefault(key, {}).setdefault(labels.get("container", ""), _Reading()).see(sample, now)
        if number > MOST_SAMPLES:
            raise TooManySamples(f"it tells more than {MOST_SAMPLES} samples")
        await asyncio.sleep(0)  # others have their turn
    own = of_node.point()
    found = {key: _points(containers) for key, containers in pods.items()}
    return Batch({node: own} if own is not None else {}, {key: points for key, points in found.items() if points})


def _points(containers: dict[str, _Reading]) -> dict[str, Point]:
    points = {name: reading.point() for name, reading in containers.items()}
    whole = {name: point for name, point in points.items() if point is not None}
    return whole if len(whole) == len(points) else {}
