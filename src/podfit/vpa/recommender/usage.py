"""Usage of containers as the recommender counts it (V-041, V-047)."""

from collections.abc import Iterable, Iterator

import msgspec

from podfit.core.resources import CPU, MEMORY
from podfit.core.times import parse_time
from podfit.decide.autoscaling.horizontal.samples import PodUsage
from podfit.decide.autoscaling.tracked import PodKey


class Sample(msgspec.Struct, frozen=True):
    """CPU in millicores, memory in bytes, both rounded up; None where it is not told. `time` in seconds since 1970."""

    pod: PodKey
    container: str
    time: float
    cpu: int | None
    memory: int | None


def samples(pods: Iterable[PodUsage]) -> Iterator[Sample]:
    """Samples of those that say when they were measured."""
    for pod in pods:
        if pod.timestamp is None:
            continue
        time = parse_time(pod.timestamp).timestamp()
        key = PodKey(pod.metadata.namespace, pod.metadata.name)
        for container in pod.containers or ():
            cpu, memory = container.usage.get(CPU), container.usage.get(MEMORY)
            millicores = None if cpu is None else cpu.milli()
            yield Sample(key, container.name, time, millicores, None if memory is None else memory.value())
