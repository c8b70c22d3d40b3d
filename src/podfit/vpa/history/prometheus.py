"""Usage of the last days from Prometheus: two range queries, and the labels of pods that are gone (V-044)."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from itertools import chain, islice
from math import isfinite
from typing import Annotated, TypeAlias

import msgspec
import numpy as np

from podfit.core.durations import parse_duration, short_duration
from podfit.core.options import POSITIVE, Option, Unit
from podfit.decide.autoscaling.model import LARGEST
from podfit.decide.autoscaling.tracked import PodKey
from podfit.vpa.history.past_usage import Block, Container, PastPod, Samples
from podfit.vpa.history.promql import PromQL, QueryFailed, Series

log = logging.getLogger(__name__)
LIVE_SECONDS = 60.0
"""Between two samples of a recommender that runs."""
AT_ONCE = 5000
"""Samples that are made arrays in one turn of the event loop, some milliseconds."""


def _with_days(text: str) -> float:
    """Seconds, of what may be in days, as Prometheus writes it."""
    days = text.removesuffix("d")
    return parse_duration(f"{int(days) * 24}h" if text.endswith("d") and days.isdigit() else text)


def _in_days(seconds: float) -> str:
    return short_duration(seconds) if seconds % 86_400 else f"{seconds / 86_400:g}d"


_DAYS = Unit(name="duration", read=_with_days, text=_in_days)
ContainerLabel: TypeAlias = Annotated[str, Option("Label of usage: its container.", flag="container-name-label")]


class HistorySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Upstream's names and defaults; times in seconds. `namespace` is empty for all of them."""

    length: Annotated[float, Option("How far back.", flag="history-length", unit=_DAYS, bound=POSITIVE)] = 8 * 86_400.0
    resolution: Annotated[
        float, Option("From one sample to the next.", flag="history-resolution", unit=_DAYS, bound=POSITIVE)
    ] = 3600.0
    cpu_metric: Annotated[str, Option("Seconds of CPU.", flag="history-cpu-metric")] = (
        "container_cpu_usage_seconds_total"
    )
    memory_metric: Annotated[str, Option("Bytes of memory.", flag="history-memory-metric")] = (
        "container_memory_working_set_bytes"
    )
    job: Annotated[str, Option("The job that scrapes kubelets.", flag="prometheus-cadvisor-job-name")] = (
        "kubernetes-cadvisor"
    )
    namespace: str = ""
    pod_label: Annotated[str, Option("Label of usage: its pod.", flag="container-pod-name-label")] = "pod_name"
    container_label: ContainerLabel = "name"
    namespace_label: Annotated[str, Option("Label of usage: its namespace.", flag="container-namespace-label")] = (
        "namespace"
    )
    metric_for_pod_labels: Annotated[str, Option("Bears the labels of pods that are gone.")] = (
        'up{job="kubernetes-pods"}'
    )
    pod_label_prefix: Annotated[str, Option("How labels of pods begin there.")] = "pod_label_"
    labels_namespace: Annotated[str, Option("Label there: the pod's namespace.", flag="pod-namespace-label")] = (
        "kubernetes_namespace"
    )
    labels_pod: Annotated[str, Option("Label there: the pod's name.", flag="pod-name-label")] = "kubernetes_pod_name"

    @property
    def resolution_text(self) -> str:
        """The resolution as Prometheus reads it."""
        return short_duration(self.resolution)


class Amount(msgspec.Struct, frozen=True):
    """The amount of a container at a time, in seconds since 1970: cores or bytes."""

    pod: PodKey
    container: str
    time: float
    amount: float


class History(msgspec.Struct, frozen=True, kw_only=True):
    """A `Past` of amounts, each resource's in the order of time, `resolution` seconds apart; `labels` of pods as they
    were last seen, `containers` of those that have usage.

    A sample that stands for an hour counts as sixty of a minute: upstream counts it once, so that eight days of history
    are outweighed by three hours of living.
    """

    cpu: tuple[Amount, ...] = ()
    memory: tuple[Amount, ...] = ()
    labels: Mapping[PodKey, Mapping[str, str]] = msgspec.field(default_factory=dict)
    containers: frozenset[Container] = frozenset()
    resolution: float = 3600.0

    @property
    def pods(self) -> dict[PodKey, PastPod]:
        names: dict[PodKey, list[str]] = {}
        for key, container in sorted(self.containers):
            names.setdefault(key, []).append(container)
        return {key: PastPod(tuple(own), self.labels.get(key)) for key, own in names.items()}

    async def blocks(self) -> AsyncGenerator[Block, None]:
        for block in self.each_block():
            yield block
            await asyncio.sleep(0)

    def each_block(self) -> Iterator[Block]:
        """The same at once."""
        weight = max(1, round(self.resolution / LIVE_SECONDS))
        for part in _parts(self.cpu):
            containers, samples = _samples(part, 1000, weight)
            yield Block(containers=containers, cpu=samples)
        for part in _parts(self.memory):
            containers, samples = _samples(part, 1, 1)
            yield Block(containers=containers, memory=samples)


def _parts(amounts: Sequence[Amount]) -> Iterator[list[Amount]]:
    left = iter(amounts)
    while part := list(islice(left, AT_ONCE)):
        yield part


def _samples(amounts: Sequence[Amount], unit: int, weight: int) -> tuple[list[Container], Samples]:
    """Whole units, as living samples are."""
    places: dict[Container, int] = {}
    series = [places.setdefault((amount.pod, amount.container), len(places)) for amount in amounts]
    whole = np.array([int(amount.amount * unit) for amount in amounts], dtype=np.float64)
    times = np.array([amount.time for amount in amounts], dtype=np.float64)
    return list(places), Samples(np.array(series, dtype=np.intp), times, whole, weight)


def queries(settings: HistorySettings) -> tuple[str, str]:
    """The queries of CPU and of memory."""
    terms = [f'job="{settings.job}"'] if settings.job else []
    terms += [f'{settings.pod_label}=~".+"', f'{settings.container_label}!="POD"', f'{settings.container_label}!=""']
    if settings.namespace:
        terms.append(f'{settings.namespace_label}="{settings.namespace}"')
    selector = ", ".join(terms)
    cpu = f"rate({settings.cpu_metric}{{{selector}}}[{settings.resolution_text}])"
    return cpu, f"{settings.memory_metric}{{{selector}}}"


async def read_history(server: PromQL, settings: HistorySettings, now: float) -> History:
    """The history of the time until `now`. Raises QueryFailed; without labels of pods that are gone, those are left
    out."""
    cpu, memory = queries(settings)
    when = now - settings.length, now, settings.resolution
    containers = set[Container]()
    return History(
        cpu=await _amounts(server.range(cpu, *when), settings, now, containers),
        memory=await _amounts(server.range(memory, *when), settings, now, containers),
        labels=await _labels(server, settings),
        containers=frozenset(containers),
        resolution=settings.resolution,
    )


async def _amounts(
    every: AsyncIterator[Series], settings: HistorySettings, now: float, containers: set[Container]
) -> tuple[Amount, ...]:
    """What is no amount, as where a counter began anew, is no sample; nor is what was not asked for. Whose they are is
    added to `containers`.
    """
    begin = now - settings.length - settings.resolution
    found: dict[float, list[Amount]] = {}  # by time: the times of all series are the same
    async for series in every:
        names = [series.metric.get(name, "") for name in (settings.namespace_label, settings.pod_label)]
        container = series.metric.get(settings.container_label, "")
        if not all(names) or not container:
            continue
        pod = PodKey(*names)
        containers.add((pod, container))
        for time, text in series.samples:
            amount = _number(text)
            if amount is not None and begin <= time <= now:
                found.setdefault(time, []).append(Amount(pod, container, time, amount))
    return tuple(chain.from_iterable(found[time] for time in sorted(found)))


def _number(text: str) -> float | None:
    """None for what is not finite and at least 0; the rest at most as much as is counted."""
    try:
        amount = float(text)
    except ValueError:
        return None
    return min(amount, LARGEST) if isfinite(amount) and amount >= 0 else None


async def _labels(server: PromQL, settings: HistorySettings) -> dict[PodKey, dict[str, str]]:
    found: dict[PodKey, tuple[float, dict[str, str]]] = {}
    try:
        async for series in server.instant(settings.metric_for_pod_labels):
            _see_labels(series, settings, found)
    except QueryFailed as error:
        log.warning("labels of pods that are gone are not known error=%s", error)
        return {}
    return {key: labels for key, (_, labels) in found.items()}


def _see_labels(series: Series, settings: HistorySettings, found: dict[PodKey, tuple[float, dict[str, str]]]) -> None:
    """Notes the labels of its pod, as they were last."""
    namespace, pod = (series.metric.get(name, "") for name in (settings.labels_namespace, settings.labels_pod))
    if not namespace or not pod or not series.samples:
        return
    key, time, prefix = PodKey(namespace, pod), series.samples[-1][0], settings.pod_label_prefix
    if key not in found or found[key][0] < time:
        own = {name: value for name, value in series.metric.items() if name.startswith(prefix)}
        found[key] = time, {name.removeprefix(prefix): value for name, value in own.items()}
