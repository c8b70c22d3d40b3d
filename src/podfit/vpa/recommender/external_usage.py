"""Usage from external.metrics.k8s.io, asked for each pod of a VPA and for each metric."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Annotated
from urllib.parse import quote

import msgspec

from podfit.api.meta import codec
from podfit.api.meta.base import Time
from podfit.client.rest import Client
from podfit.core.errors import ApiError
from podfit.core.options import Option
from podfit.core.quantity import ZERO, Quantity
from podfit.core.resources import CPU, MEMORY
from podfit.core.selectors import Selector, as_text
from podfit.core.times import parse_time
from podfit.decide.autoscaling.tracked import PodKey
from podfit.vpa.history.prometheus import ContainerLabel
from podfit.vpa.recommender.usage import Sample
from podfit.vpa.recommender.workers import each_by_workers


class ExternalMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """Names of the metrics, empty for one that there is not, and the label of a series that names its container."""

    cpu: Annotated[str, Option("Cores that a container uses.", flag="external-metrics-cpu-metric")] = ""
    memory: Annotated[str, Option("Bytes that it uses.", flag="external-metrics-memory-metric")] = ""
    container_label: ContainerLabel = "name"

    @property
    def named(self) -> tuple[tuple[str, str], ...]:
        return tuple((resource, name) for resource, name in ((CPU, self.cpu), (MEMORY, self.memory)) if name)


class _Value(msgspec.Struct, frozen=True, rename="camel"):
    metric_labels: Mapping[str, str] = {}
    timestamp: Time | None = None
    value: Quantity = ZERO


class _Values(msgspec.Struct, frozen=True):
    items: tuple[_Value, ...] = ()


class Answers(msgspec.Struct):
    """`problems` are why some of it is not known."""

    samples: list[Sample] = msgspec.field(default_factory=list)
    problems: list[str] = msgspec.field(default_factory=list)


async def external_samples(
    client: Client, metrics: ExternalMetrics, pods: Iterable[tuple[PodKey, Selector]], workers: int
) -> Answers:
    """Samples of these pods, each with the selector of its VPA."""
    found = Answers()
    await each_by_workers(workers, pods, partial(_ask, client, metrics, found))
    return found


async def _ask(client: Client, metrics: ExternalMetrics, found: Answers, asked: tuple[PodKey, Selector]) -> None:
    pod, selector = asked
    terms = ",".join(filter(None, (as_text(selector), f"pod={pod.name}")))
    for resource, metric in metrics.named:
        path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{pod.namespace}/{quote(metric, safe='')}"
        try:
            body = await client.request("GET", path, query={"labelSelector": terms})
            found.samples += _samples(pod, resource, codec.decode(body, _Values).items, metrics.container_label)
        except (ApiError, ConnectionError, ValueError) as error:
            found.problems.append(f"{metric} of {pod.namespace}/{pod.name}: {error}")


def _samples(pod: PodKey, resource: str, items: tuple[_Value, ...], label: str) -> Iterator[Sample]:
    """At the time of the first item; one that does not name its container is left out."""
    if not items or items[0].timestamp is None:
        return
    time = parse_time(items[0].timestamp).timestamp()
    for item in items:
        if name := item.metric_labels.get(label):
            cpu, memory = (item.value.milli(), None) if resource == CPU else (None, item.value.value())
            yield Sample(pod, name, time, cpu, memory)
