"""/stats/summary: usage of the node and its pods as one JSON document.

The rate of CPU is that between this question and the last one about the same container; there is none for the first.
"""

from collections.abc import Iterable
from typing import Any

from podfit.api.core.v1.pods.types import Pod
from podfit.core.clock import Clock
from podfit.core.times import format_time
from podfit.kubelet.node import machine
from podfit.kubelet.server.usage import NANO, Running, UsageMetrics

LEAST_SECONDS = 1.0  # between two samples that make a rate


class Summary:
    def __init__(self, usage: UsageMetrics, *, node: str, clock: Clock, simulated: bool) -> None:
        self._usage, self._node, self._clock, self._simulated = usage, node, clock, simulated
        self._last: dict[str, tuple[int, int, int]] = {}  # time, CPU and rate, by container id

    async def read(self) -> dict[str, Any]:
        """Raises CRIError."""
        running = await self._usage.running()
        rates = {container.stats.id: self._rate(container) for container in running}
        self._last = {name: known for name, known in self._last.items() if name in rates}
        by_pod: dict[str, list[Running]] = {}
        for container in running:
            by_pod.setdefault(container.pod.metadata.uid, []).append(container)
        pods = [self._of_pod(containers[0].pod, containers, rates) for containers in by_pod.values()]
        return {"node": self._of_node(running), "pods": pods}

    def _of_node(self, running: Iterable[Running]) -> dict[str, Any]:
        now = format_time(self._clock.now())
        if self._simulated:
            cpu = sum(container.stats.cpu_usage or 0 for container in running)
            memory: dict[str, Any] = {
                "workingSetBytes": sum(container.stats.memory_working_set or 0 for container in running)
            }
        else:
            cpu, used, total = int(machine.cpu_seconds() * NANO), machine.working_set_bytes(), machine.memory_bytes()
            memory = {"workingSetBytes": used, "availableBytes": total - used}
        return {
            "nodeName": self._node,
            "cpu": {"time": now, "usageCoreNanoSeconds": cpu},
            "memory": {"time": now, **memory},
        }

    def _of_pod(self, pod: Pod, containers: list[Running], rates: dict[str, int | None]) -> dict[str, Any]:
        meta = pod.metadata
        parts = [self._of_container(container, rates[container.stats.id]) for container in containers]
        return {
            "podRef": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "startTime": pod.status.start_time,
            "containers": parts,
            "cpu": _total([part["cpu"] for part in parts]),
            "memory": _total([part["memory"] for part in parts]),
        }

    def _of_container(self, container: Running, rate: int | None) -> dict[str, Any]:
        stats, now = container.stats, format_time(self._clock.now())
        cpu = {"time": now, "usageNanoCores": rate, "usageCoreNanoSeconds": stats.cpu_usage}
        memory = {
            "time": now,
            "usageBytes": stats.memory_usage,
            "workingSetBytes": stats.memory_working_set,
            "rssBytes": stats.memory_rss,
        }
        return {"name": stats.name, "cpu": _known(cpu), "memory": _known(memory)}

    def _rate(self, container: Running) -> int | None:
        """In billionths of a core. A question too soon after the last one is answered with the last rate."""
        stats = container.stats
        if stats.cpu_usage is None:
            return None
        before = self._last.get(stats.id)
        if before is None:
            self._last[stats.id] = stats.timestamp, stats.cpu_usage, -1
            return None
        at, used, rate = before
        if stats.timestamp - at >= LEAST_SECONDS * NANO:
            rate = (stats.cpu_usage - used) * NANO // (stats.timestamp - at)
            self._last[stats.id] = stats.timestamp, stats.cpu_usage, rate
        return rate if rate >= 0 else None


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _total(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The sum of each figure that every part has."""
    names = [name for name in parts[0] if name != "time" and all(name in part for part in parts)]
    return {"time": parts[0]["time"], **{name: sum(part[name] for part in parts) for name in names}}
