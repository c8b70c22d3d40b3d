"""Usage from metrics.k8s.io (V-041, V-047)."""

from collections.abc import Iterator

import msgspec

from podfit.api.meta import codec
from podfit.api.meta.base import ResourceList, Time
from podfit.client.rest import Client
from podfit.core.resources import CPU, MEMORY
from podfit.core.times import parse_time
from podfit.decide.autoscaling.cluster_state import PodKey


class _Container(msgspec.Struct, frozen=True):
    name: str = ""
    usage: ResourceList = msgspec.field(default_factory=dict)


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    timestamp: Time | None = None
    containers: tuple[_Container, ...] = ()


class _Pods(msgspec.Struct, frozen=True):
    items: tuple[_Pod, ...] = ()


class Sample(msgspec.Struct, frozen=True):
    """CPU in millicores, memory in bytes, both rounded up; None where it is not told. `time` in seconds since 1970."""

    pod: PodKey
    container: str
    time: float
    cpu: int | None
    memory: int | None


async def samples(client: Client, namespace: str = "") -> list[Sample]:
    """Of a namespace, or of all. ApiError, ConnectionError: nobody tells; ValueError: what is told cannot be read."""
    where = f"namespaces/{namespace}/" if namespace else ""
    body = await client.request("GET", f"/apis/metrics.k8s.io/v1beta1/{where}pods")
    return [sample for pod in codec.decode(body, _Pods).items for sample in _samples(pod)]


def _samples(pod: _Pod) -> Iterator[Sample]:
    if pod.timestamp is None:
        return
    time = parse_time(pod.timestamp).timestamp()
    key = PodKey(pod.metadata.namespace, pod.metadata.name)
    for container in pod.containers:
        cpu, memory = container.usage.get(CPU), container.usage.get(MEMORY)
        yield Sample(
            key, container.name, time, None if cpu is None else cpu.milli(), None if memory is None else memory.value()
        )
