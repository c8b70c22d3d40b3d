"""Usage of the last days from Prometheus: two range queries, and the labels of pods that are gone (V-044)."""

import logging
from collections.abc import AsyncIterator, Mapping
from itertools import chain
from math import isfinite

import msgspec

from podfit.decide.autoscaling.cluster_state import PodKey
from podfit.decide.autoscaling.model import LARGEST
from podfit.vpa.history.promql import PromQL, QueryFailed, Series

log = logging.getLogger(__name__)


class HistorySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Upstream's names and defaults; times in seconds. `namespace` is empty for all of them."""

    length: float = 8 * 86_400.0
    resolution: float = 3600.0
    resolution_text: str = "1h"
    cpu_metric: str = "container_cpu_usage_seconds_total"
    memory_metric: str = "container_memory_working_set_bytes"
    job: str = "kubernetes-cadvisor"
    namespace: str = ""
    pod_label: str = "pod_name"
    container_label: str = "name"
    namespace_label: str = "namespace"
    metric_for_pod_labels: str = 'up{job="kubernetes-pods"}'
    pod_label_prefix: str = "pod_label_"
    labels_namespace: str = "kubernetes_namespace"
    labels_pod: str = "kubernetes_pod_name"


class Amount(msgspec.Struct, frozen=True):
    """Of a container at a time, in seconds since 1970: cores or bytes."""

    pod: PodKey
    container: str
    time: float
    amount: float


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Each in the order of time; `labels` of pods as they were last seen."""

    cpu: tuple[Amount, ...] = ()
    memory: tuple[Amount, ...] = ()
    labels: Mapping[PodKey, Mapping[str, str]] = msgspec.field(default_factory=dict)


def queries(settings: HistorySettings) -> tuple[str, str]:
    """Of CPU and of memory."""
    terms = [f'job="{settings.job}"'] if settings.job else []
    terms += [f'{settings.pod_label}=~".+"', f'{settings.container_label}!="POD"', f'{settings.container_label}!=""']
    if settings.namespace:
        terms.append(f'{settings.namespace_label}="{settings.namespace}"')
    selector = ", ".join(terms)
    cpu = f"rate({settings.cpu_metric}{{{selector}}}[{settings.resolution_text}])"
    return cpu, f"{settings.memory_metric}{{{selector}}}"


async def read_history(server: PromQL, settings: HistorySettings, now: float) -> History:
    """Of the time until `now`. Raises QueryFailed; without labels of pods that are gone, those are left out."""
    cpu, memory = queries(settings)
    when = now - settings.length, now, settings.resolution
    return History(
        cpu=await _amounts(server.range(cpu, *when), settings, now),
        memory=await _amounts(server.range(memory, *when), settings, now),
        labels=await _labels(server, settings),
    )


async def _amounts(every: AsyncIterator[Series], settings: HistorySettings, now: float) -> tuple[Amount, ...]:
    """What is no amount, as where a counter began anew, is no sample; nor is what was not asked for."""
    begin = now - settings.length - settings.resolution
    found: dict[float, list[Amount]] = {}  # by time: the times of all series are the same
    async for series in every:
        names = [series.metric.get(name, "") for name in (settings.namespace_label, settings.pod_label)]
        container = series.metric.get(settings.container_label, "")
        if not all(names) or not container:
            continue
        pod = PodKey(*names)
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
    """Of the pod that it is of, as they were last."""
    namespace, pod = (series.metric.get(name, "") for name in (settings.labels_namespace, settings.labels_pod))
    if not namespace or not pod or not series.samples:
        return
    key, time, prefix = PodKey(namespace, pod), series.samples[-1][0], settings.pod_label_prefix
    if key not in found or found[key][0] < time:
        own = {name: value for name, value in series.metric.items() if name.startswith(prefix)}
        found[key] = time, {name.removeprefix(prefix): value for name, value in own.items()}
