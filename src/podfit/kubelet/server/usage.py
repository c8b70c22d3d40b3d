"""/metrics/resource and /metrics/cadvisor: usage of this node's containers.

Usage is asked of the runtime when someone scrapes, so two scrapes a second apart give a rate. Nothing is estimated: a
figure that the runtime does not give has no sample, and a pod is the sum of its containers that have one. Samples
carry the time when they were taken, which a client library's registry does not give. Of cadvisor's
metrics there are usage, limits and those of the CPU quota, which say how a limit is felt; names and labels are as
upstream's.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.core.clock import Clock
from podfit.core.quantity import Quantity
from podfit.core.times import parse_time
from podfit.decide.cgroup.pod_cgroup import tier
from podfit.decide.lifecycle.facts import ContainerState
from podfit.kubelet.cgroup.protocol import QOS, CgroupError, Cgroups, Throttling
from podfit.kubelet.node import machine
from podfit.kubelet.runtime import labels
from podfit.kubelet.runtime.errors import CRIError
from podfit.kubelet.runtime.protocol import Runtime
from podfit.kubelet.runtime.types import ContainerStats

NO_LABELS: Mapping[str, str] = {}


class Sample(msgspec.Struct, frozen=True):
    """`time` in milliseconds since 1970; 0 = none is said."""

    value: float
    labels: Mapping[str, str]
    time: int = 0


class Family(msgspec.Struct, frozen=True):
    name: str
    type: str
    text: str
    samples: tuple[Sample, ...]


def exposition(families: Iterable[Family]) -> bytes:
    """Those that have samples, by name."""
    shown = sorted((family for family in families if family.samples), key=lambda family: family.name)
    return "".join(line for family in shown for line in _lines(family)).encode()


def _lines(family: Family) -> Iterable[str]:
    yield f"# HELP {family.name} {family.text}\n# TYPE {family.name} {family.type}\n"
    for row in sorted(family.samples, key=lambda sample: sorted(sample.labels.items())):
        labels = ",".join(f'{name}="{_escaped(text)}"' for name, text in sorted(row.labels.items()))
        time = f" {row.time}" if row.time else ""
        yield f"{family.name}{f'{{{labels}}}' if labels else ''} {_number(row.value)}{time}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


log = logging.getLogger(__name__)

NANO = 1_000_000_000
PERIOD = 100_000  # microseconds of the CPU quota
QOS_TIERS: dict[str, QOS] = {
    "Guaranteed": "Guaranteed",
    "Burstable": "Burstable",
    "BestEffort": "BestEffort",
    "Spare": "Spare",
}


class Running(msgspec.Struct, frozen=True):
    """A running container of this node, its pod, and what the runtime says of it."""

    pod: Pod
    stats: ContainerStats

    @property
    def labels(self) -> dict[str, str]:
        return {"container": self.stats.name, **self.of_pod}

    @property
    def of_pod(self) -> dict[str, str]:
        return {"namespace": self.pod.metadata.namespace, "pod": self.pod.metadata.name}

    def limit(self, name: str) -> Quantity | None:
        """The limit of a resource, as enforced."""
        status = self.pod.status
        known = (*status.container_statuses, *status.init_container_statuses)
        found = (
            status.resources for status in known if status.name == self.stats.name and status.resources is not None
        )
        return next((resources.limits.get(name) for resources in found), None)

    @property
    def started(self) -> float:
        """Seconds since 1970; 0 when the status does not say yet."""
        status = self.pod.status
        known = (*status.container_statuses, *status.init_container_statuses, *status.ephemeral_container_statuses)
        states = (status.state.running for status in known if status.name == self.stats.name)
        when = next((state.started_at for state in states if state is not None), None)
        return parse_time(when).timestamp() if when else 0.0


class UsageMetrics:
    """`simulated` nodes have no machine: what the node uses is what its containers use."""

    def __init__(
        self, runtime: Runtime, cgroups: Cgroups, *, pods: Callable[[], Iterable[Pod]], clock: Clock, simulated: bool
    ) -> None:
        self._runtime, self._cgroups, self._pods, self._clock = runtime, cgroups, pods, clock
        self._simulated = simulated

    async def resource(self) -> bytes:
        """The kubelet's own resource metrics. A runtime that does not answer shows as `resource_scrape_error 1`."""
        try:
            running, failed = await self.running(), 0
        except CRIError as error:
            log.warning("usage not read error=%s", error)
            running, failed = [], 1
        now = int(self._clock.now().timestamp() * 1000)
        text = "1 if there was an error while getting container metrics, 0 otherwise"
        error_family = Family("resource_scrape_error", "gauge", text, (Sample(failed, NO_LABELS),))
        return exposition((*_containers(running), *_pods(running), *self._node(running, now), error_family))

    async def cadvisor(self) -> bytes:
        """Usage, limits, and how the quota of each container is felt; raises CRIError."""
        running = await self.running()
        counted = ((container, self._throttling(container)) for container in running)
        throttled = [(container, count) for container, count in counted if count is not None]
        return exposition((*_used(running), *_limited(running), *_throttled(throttled)))

    async def running(self) -> list[Running]:
        """The running containers of this node's pods. Raises CRIError."""
        pods = {pod.metadata.uid: pod for pod in self._pods()}
        stats, listed = await asyncio.gather(self._runtime.list_container_stats(), self._runtime.list_containers())
        alive = {container.id for container in listed if container.state is ContainerState.RUNNING}
        owned = ((pods.get(entry.labels.get(labels.POD_UID, "")), entry) for entry in stats if entry.id in alive)
        return [Running(pod, stats_of) for pod, stats_of in owned if pod is not None]

    def _throttling(self, container: Running) -> Throttling | None:
        uid, qos = container.pod.metadata.uid, QOS_TIERS.get(tier(container.pod), "Burstable")
        try:
            return self._cgroups.throttling(self._cgroups.layout.container(uid, qos, container.stats.id))
        except CgroupError as error:
            log.debug("throttling not read container=%s error=%s", container.stats.id, error)
            return None

    def _node(self, running: list[Running], now: int) -> Iterator[Family]:
        if self._simulated:
            cpu = sum(container.stats.cpu_usage or 0 for container in running) / NANO
            memory = sum(container.stats.memory_working_set or 0 for container in running)
        else:
            cpu, memory = machine.cpu_seconds(), machine.working_set_bytes()
        yield Family(
            "node_cpu_usage_seconds_total",
            "counter",
            "Cumulative cpu time consumed by the node in core-seconds",
            (Sample(cpu, NO_LABELS, now),),
        )
        yield Family(
            "node_memory_working_set_bytes",
            "gauge",
            "Current working set of the node in bytes",
            (Sample(memory, NO_LABELS, now),),
        )


def _containers(running: list[Running]) -> Iterator[Family]:
    yield Family(
        "container_cpu_usage_seconds_total",
        "counter",
        "Cumulative cpu time consumed by the container in core-seconds",
        tuple(
            Sample(container.stats.cpu_usage / NANO, container.labels, container.stats.timestamp // 1_000_000)
            for container in running
            if container.stats.cpu_usage is not None
        ),
    )
    yield Family(
        "container_memory_working_set_bytes",
        "gauge",
        "Current working set of the container in bytes",
        tuple(
            Sample(container.stats.memory_working_set, container.labels, container.stats.timestamp // 1_000_000)
            for container in running
            if container.stats.memory_working_set is not None
        ),
    )
    yield Family(
        "container_start_time_seconds",
        "gauge",
        "Start time of the container since unix epoch in seconds",
        tuple(Sample(container.started, container.labels) for container in running if container.started),
    )


def _pods(running: list[Running]) -> Iterator[Family]:
    by_pod: dict[str, list[Running]] = {}
    for container in running:
        by_pod.setdefault(container.pod.metadata.uid, []).append(container)
    cpu = [(containers, sum(one.stats.cpu_usage or 0 for one in containers) / NANO) for containers in by_pod.values()]
    memory = [
        (containers, sum(one.stats.memory_working_set or 0 for one in containers)) for containers in by_pod.values()
    ]
    yield Family(
        "pod_cpu_usage_seconds_total",
        "counter",
        "Cumulative cpu time consumed by the pod in core-seconds",
        tuple(
            Sample(total, containers[0].of_pod, containers[0].stats.timestamp // 1_000_000) for containers, total in cpu
        ),
    )
    yield Family(
        "pod_memory_working_set_bytes",
        "gauge",
        "Current working set of the pod in bytes",
        tuple(
            Sample(total, containers[0].of_pod, containers[0].stats.timestamp // 1_000_000)
            for containers, total in memory
        ),
    )


def _throttled(throttled: list[tuple[Running, Throttling]]) -> Iterator[Family]:
    yield Family(
        "container_cpu_cfs_periods_total",
        "counter",
        "Number of elapsed enforcement period intervals.",
        tuple(Sample(counted.periods, _cadvisor_labels(container)) for container, counted in throttled),
    )
    yield Family(
        "container_cpu_cfs_throttled_periods_total",
        "counter",
        "Number of throttled period intervals.",
        tuple(Sample(counted.throttled, _cadvisor_labels(container)) for container, counted in throttled),
    )
    yield Family(
        "container_cpu_cfs_throttled_seconds_total",
        "counter",
        "Total time duration the container has been throttled.",
        tuple(Sample(counted.seconds, _cadvisor_labels(container)) for container, counted in throttled),
    )


def _used(running: list[Running]) -> Iterator[Family]:
    figures: tuple[tuple[str, str, str, Callable[[ContainerStats], float | None]], ...] = (
        (
            "container_cpu_usage_seconds_total",
            "counter",
            "Cumulative cpu time consumed in seconds.",
            lambda stats: None if stats.cpu_usage is None else stats.cpu_usage / NANO,
        ),
        ("container_memory_usage_bytes", "gauge", "Current memory usage in bytes.", lambda stats: stats.memory_usage),
        (
            "container_memory_working_set_bytes",
            "gauge",
            "Current working set in bytes.",
            lambda stats: stats.memory_working_set,
        ),
        ("container_memory_rss", "gauge", "Size of RSS in bytes.", lambda stats: stats.memory_rss),
    )
    for name, kind, text, read in figures:
        found = ((container, read(container.stats)) for container in running)
        samples = (Sample(value, _cadvisor_labels(container)) for container, value in found if value is not None)
        yield Family(name, kind, text, tuple(samples))


def _limited(running: list[Running]) -> Iterator[Family]:
    """What is enforced, as the status tells; 0 is no limit, as cadvisor has it."""
    memory = [(container, container.limit("memory")) for container in running]
    yield Family(
        "container_spec_memory_limit_bytes",
        "gauge",
        "Memory limit for the container.",
        tuple(Sample(limit.value() if limit else 0, _cadvisor_labels(container)) for container, limit in memory),
    )
    cpu = [(container, container.limit("cpu")) for container in running]
    yield Family(
        "container_spec_cpu_quota",
        "gauge",
        "CPU quota of the container.",
        tuple(Sample(limit.milli() * PERIOD // 1000, _cadvisor_labels(container)) for container, limit in cpu if limit),
    )
    yield Family(
        "container_spec_cpu_period",
        "gauge",
        "CPU period of the container.",
        tuple(Sample(PERIOD, _cadvisor_labels(container)) for container in running),
    )


def _cadvisor_labels(container: Running) -> dict[str, str]:
    statuses = (*container.pod.status.container_statuses, *container.pod.status.init_container_statuses)
    image = next((status.image for status in statuses if status.name == container.stats.name), "")
    return {**container.labels, "id": container.stats.id, "image": image, "name": container.stats.id}
