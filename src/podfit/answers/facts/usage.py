"""Current usage of containers: from metrics.k8s.io, else from the kubelets.

    metrics.k8s.io                   an aggregated API, mostly metrics-server's; the others are asked where it is silent
    nodes/proxy .../stats/summary    the kubelet itself; the rate of CPU comes with its second measurement
    nodes/proxy .../metrics/resource the kubelet's counters: two readings give the rate

Which one it was, and why not the one before, is part of the answer. A figure that nobody gives is None.
"""

import asyncio
from collections.abc import Container, Iterable, Mapping
from typing import Any

import msgspec

from podfit.client.rest import Client
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.quantity import Quantity
from podfit.net.exposition import samples

ContainerKey = tuple[str, str, str]
"""Namespace, pod, container."""
PodKey = tuple[str, str]
"""Namespace and pod."""
METRICS_API, SUMMARY, RESOURCE = "metrics.k8s.io", "stats/summary", "metrics/resource"
INSTALL = "kubectl apply -f https://github.com/kubernetes-sigs/metrics-server/releases/latest/download/components.yaml"
NOT_YET = "metrics.k8s.io has nothing yet of pods that are new"
NOT_SERVED = "metrics.k8s.io is not served here"
CPU_SECONDS, WORKING_SET = "container_cpu_usage_seconds_total", "container_memory_working_set_bytes"
BETWEEN = 1.0
"""Seconds between two readings of a counter."""


class Used(msgspec.Struct, frozen=True):
    """CPU in billionths of a core, memory (the working set) in bytes."""

    cpu: int | None = None
    memory: int | None = None


class UsageFacts(msgspec.Struct, frozen=True, kw_only=True):
    """`source` is empty when nobody tells. `notes` say why it was not a better one; `fix` is a command that helps."""

    source: str = ""
    used: Mapping[ContainerKey, Used] = msgspec.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    fix: str = ""


class _Counter(msgspec.Struct, frozen=True):
    """CPU seconds at a time in milliseconds."""

    seconds: float
    time: int


class _Node(msgspec.Struct):
    """What one kubelet said; `problem` when it said nothing."""

    source: str = ""
    used: dict[ContainerKey, Used] = msgspec.field(default_factory=dict)
    problem: str = ""


class UsageReader:
    """May be asked again, as by `--watch`: then the counters of the last time are the first reading."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._before: dict[str, dict[ContainerKey, _Counter]] = {}

    async def read(self, namespace: str, pods: Mapping[PodKey, str], *, rates: bool = True) -> UsageFacts:
        """The usage of one namespace, or of all when it is empty. The nodes of `pods` are asked when the metrics API is
        no help, or has nothing yet of a pod of theirs. Without `rates` only memory is wanted: counters need no second
        reading."""
        where = f"namespaces/{namespace}/pods" if namespace else "pods"
        try:
            body = await self._client.request("GET", f"/apis/metrics.k8s.io/v1beta1/{where}")
        except ApiError as error:
            return await self._from_kubelets(pods, _why_not(error), rates=rates)
        told = dict(_of_the_api(msgspec.json.decode(body)))
        known = {key[:2] for key in told}
        new = {key: node for key, node in pods.items() if key not in known}
        return await self._with_new(told, new, rates=rates) if new else UsageFacts(source=METRICS_API, used=told)

    async def _with_new(self, told: dict[ContainerKey, Used], new: Mapping[PodKey, str], *, rates: bool) -> UsageFacts:
        """A metrics-server has nothing of a pod before it has read it twice; its kubelet has."""
        asked = await self._from_kubelets(new, NOT_YET, rates=rates)
        added = {key: used for key, used in asked.used.items() if key[:2] in new}
        notes = asked.notes if added else ()
        return UsageFacts(source=METRICS_API, used=added | told, notes=notes)

    async def _from_kubelets(self, pods: Mapping[PodKey, str], why: str, *, rates: bool) -> UsageFacts:
        nodes = sorted(set(pods.values()))
        asked = await asyncio.gather(*(self._kubelet(node, pods, rates=rates) for node in nodes))
        used = {key: one for node in asked for key, one in node.used.items()}
        sources = sorted({node.source for node in asked if node.source})
        notes = [f"usage is read from the kubelets ({', '.join(sources)}): {why}" if sources else why]
        problems: dict[str, list[str]] = {}
        for node, usage in zip(nodes, asked, strict=True):
            if usage.problem:
                problems.setdefault(usage.problem, []).append(node)
        notes += [f"no usage from {_named(names)}: {problem}" for problem, names in problems.items()]
        fix = INSTALL if why == NOT_SERVED and not sources else ""
        return UsageFacts(source=", ".join(sources), used=used, notes=tuple(notes), fix=fix)

    async def _kubelet(self, node: str, pods: Container[PodKey], *, rates: bool) -> _Node:
        proxy = f"/api/v1/nodes/{node}/proxy"
        summary = None
        try:
            body = await self._client.request("GET", f"{proxy}/{SUMMARY}", query={"only_cpu_and_memory": "true"})
            summary = dict(_of_the_summary(msgspec.json.decode(body)))
        except ApiError as error:
            if error.code != 404:
                return _Node(problem=error.message)
        except msgspec.DecodeError as error:
            return _Node(problem=f"its /{SUMMARY} cannot be read: {error}")
        if summary is not None and not (rates and _lacks_rates(summary, pods)):
            return _Node(SUMMARY, summary)
        try:
            counted = await self._counted(node, f"{proxy}/{RESOURCE}", rates=rates)
        except ApiError as error:
            if summary is not None:
                return _Node(SUMMARY, summary)
            told = "its kubelet serves neither /stats/summary nor /metrics/resource"
            return _Node(problem=told if error.code == 404 else error.message)
        return counted

    async def _counted(self, node: str, path: str, *, rates: bool) -> _Node:
        first = self._before.get(node)
        if first is None and not rates:
            first = {}
        if first is None:
            first, _ = await self._counters(path)
            await self._clock.sleep(BETWEEN)
        now, memory = await self._counters(path)
        self._before[node] = now
        used = {key: Used(_rate(first.get(key), now.get(key)), memory.get(key)) for key in now.keys() | memory.keys()}
        return _Node(RESOURCE, used)

    async def _counters(self, path: str) -> tuple[dict[ContainerKey, _Counter], dict[ContainerKey, int]]:
        text = (await self._client.request("GET", path)).decode(errors="replace")
        read = int(self._clock.now().timestamp() * 1000)
        counters, memory = {}, {}
        for sample in samples(text, (CPU_SECONDS, WORKING_SET)):
            key = (sample.labels.get("namespace", ""), sample.labels.get("pod", ""), sample.labels.get("container", ""))
            if sample.name == CPU_SECONDS:
                counters[key] = _Counter(sample.value, sample.time or read)
            else:
                memory[key] = int(sample.value)
        return counters, memory


def _why_not(error: ApiError) -> str:
    match error.code:
        case 404:
            return NOT_SERVED
        case 503:
            return "metrics.k8s.io does not answer: its metrics-server is down"
        case _:
            return f"metrics.k8s.io was not read: {error.message}"


def _of_the_api(body: Any) -> Iterable[tuple[ContainerKey, Used]]:
    for item in body.get("items") or ():
        meta = item["metadata"]
        for container in item.get("containers") or ():
            usage = container.get("usage", {})
            cpu, memory = (Quantity.parse(usage[name]) if name in usage else None for name in ("cpu", "memory"))
            yield (
                (meta["namespace"], meta["name"], container["name"]),
                Used(cpu.nano if cpu is not None else None, memory.value() if memory is not None else None),
            )


def _of_the_summary(body: Any) -> Iterable[tuple[ContainerKey, Used]]:
    for pod in body.get("pods") or ():
        ref = pod["podRef"]
        for container in pod.get("containers") or ():
            cpu, memory = container.get("cpu") or {}, container.get("memory") or {}
            yield (
                (ref["namespace"], ref["name"], container["name"]),
                Used(cpu.get("usageNanoCores"), memory.get("workingSetBytes")),
            )


def _lacks_rates(summary: Mapping[ContainerKey, Used], pods: Container[PodKey]) -> bool:
    return any(used.cpu is None for key, used in summary.items() if key[:2] in pods)


def _rate(before: _Counter | None, now: _Counter | None) -> int | None:
    """None when the counter is new, began anew with its container, or was not measured again in between."""
    if before is None or now is None or now.time <= before.time or now.seconds < before.seconds:
        return None
    return int((now.seconds - before.seconds) / (now.time - before.time) * 1000 * 1e9)


def _named(nodes: list[str]) -> str:
    return f"node {nodes[0]}" if len(nodes) == 1 else f"nodes {', '.join(nodes)}"
