"""CPU throttling of containers, from the kubelets' /metrics/cadvisor.

throttled periods ÷ periods     since the container started, or since the reading before
"""

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from podfit.api.core.v1.pods.types import Pod
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.net.exposition import samples

PERIODS, THROTTLED = "container_cpu_cfs_periods_total", "container_cpu_cfs_throttled_periods_total"
_CONTAINER_ID = re.compile(r"[0-9a-f]{64}")
ContainerKey: TypeAlias = tuple[str, str, str]
"""Namespace, pod, container."""


class Throttling(msgspec.Struct, frozen=True):
    """`share` of the periods by container; `problems` by node where it is not available."""

    share: Mapping[ContainerKey, float] = msgspec.field(default_factory=dict)
    problems: Mapping[str, str] = msgspec.field(default_factory=dict)


class ThrottlingReader:
    """May be asked again: then a share counts what happened in between."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._before: dict[ContainerKey, tuple[float, float]] = {}

    async def read(self, pods: Iterable[Pod]) -> Throttling:
        pods = tuple(pods)
        names, keys = _keys(pods)
        nodes = sorted({pod.spec.node_name for pod in pods if pod.spec.node_name})
        told = await asyncio.gather(*(self._node(node, names, keys) for node in nodes))
        share: dict[ContainerKey, float] = {}
        for counters in told:
            for key, (periods, throttled) in (counters if isinstance(counters, dict) else {}).items():
                before = self._before.get(key, (0.0, 0.0))
                began = before if before[0] <= periods and before[1] <= throttled else (0.0, 0.0)
                moved = periods - began[0]  # an idle container has none, and is not held back
                share[key] = (throttled - began[1]) / moved if moved else 0.0
                self._before[key] = (periods, throttled)
        problems = {node: usage for node, usage in zip(nodes, told, strict=True) if isinstance(usage, str)}
        return Throttling(share, problems)

    async def _node(
        self, node: str, names: set[ContainerKey], keys: Mapping[str, ContainerKey]
    ) -> dict[ContainerKey, tuple[float, float]] | str:
        """Periods and throttled periods by container, or why they are not known."""
        try:
            body = await self._client.request("GET", f"/api/v1/nodes/{node}/proxy/metrics/cadvisor")
        except ApiError as error:
            return "its kubelet serves no /metrics/cadvisor" if error.code == 404 else error.message
        found: dict[str, dict[ContainerKey, float]] = {PERIODS: {}, THROTTLED: {}}
        for sample in samples(body.decode(errors="replace"), found.keys()):
            labels = sample.labels
            key = (labels.get("namespace", ""), labels.get("pod", ""), labels.get("container", ""))
            cgroup = _CONTAINER_ID.search(labels.get("id", ""))
            if key not in names and cgroup:  # cadvisor could not ask the runtime: only the cgroup says whose it is
                key = keys.get(cgroup[0], key)
            if key in names:
                found[sample.name][key] = sample.value
        return {key: (periods, found[THROTTLED].get(key, 0.0)) for key, periods in found[PERIODS].items()}


def _keys(pods: Iterable[Pod]) -> tuple[set[ContainerKey], dict[str, ContainerKey]]:
    """The containers in question, and the same by their runtime's id."""
    names, ids = set(), {}
    for pod in pods:
        for status in (*pod.status.container_statuses, *pod.status.init_container_statuses):
            key = (pod.metadata.namespace, pod.metadata.name, status.name)
            names.add(key)
            if status.container_id:
                ids[status.container_id.rpartition("//")[2]] = key
    return names, ids
