"""What the three metrics APIs answer, as samples of pods or as one amount."""

from collections.abc import Iterable, Iterator

import msgspec

from podfit.api.meta.base import ResourceList, Time
from podfit.core.quantity import Quantity
from podfit.core.times import parse_time
from podfit.decide.autoscaling.horizontal.model import Reading, Sample, Samples, Unread
from podfit.decide.autoscaling.horizontal.replicas import total

CUSTOM_WINDOW = 60.0
"""Seconds that a custom metric is taken to be measured over when it does not say."""
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


class ContainerUsage(msgspec.Struct, frozen=True):
    name: str = ""
    usage: ResourceList = msgspec.field(default_factory=dict)


class Named(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class PodUsage(msgspec.Struct, frozen=True):
    """The usage of a pod in metrics.k8s.io; `window` as Go writes a duration."""

    metadata: Named = Named()
    timestamp: Time | None = None
    window: str = ""
    containers: tuple[ContainerUsage, ...] | None = ()


class MetricValue(msgspec.Struct, frozen=True, rename="camel"):
    """A value of custom.metrics.k8s.io; one without an amount cannot be read."""

    value: Quantity
    described_object: Named = Named()
    timestamp: Time | None = None
    window_seconds: int | None = None


class ExternalValue(msgspec.Struct, frozen=True):
    """One without an amount cannot be read."""

    value: Quantity


def of_resource(pods: Iterable[PodUsage], resource: str, container: str = "") -> Reading:
    """A pod of which one container is not measured, or the named one is not, has no sample."""
    pods = tuple(pods)
    if not pods:
        return Unread("no metrics returned from resource metrics API")
    return dict(_measured(pods, resource, container))


def _measured(pods: Iterable[PodUsage], resource: str, container: str) -> Iterator[tuple[str, Sample]]:
    for pod in pods:
        counted = [one for one in pod.containers or () if container in ("", one.name)]
        amounts = [one.usage[resource].milli() for one in counted if resource in one.usage]
        if counted and len(amounts) == len(counted):
            yield pod.metadata.name, Sample(sum(amounts), _seconds(pod.timestamp), go_seconds(pod.window))


def of_pods(values: Iterable[MetricValue]) -> Reading:
    """Samples of a metric that pods are described by."""
    samples: Samples = {
        value.described_object.name: Sample(
            value.value.milli(),
            _seconds(value.timestamp),
            CUSTOM_WINDOW if value.window_seconds is None else value.window_seconds,
        )
        for value in values
    }
    return samples or Unread("no metrics returned from custom metrics API")


def of_object(values: Iterable[MetricValue]) -> Reading:
    values = tuple(values)
    if len(values) != 1:
        return Unread(
            f"unable to fetch metrics from custom metrics API: the custom metrics API server returned {len(values)} "
            "results when we asked for exactly one"
        )
    return values[0].value.milli()


def of_external(values: Iterable[ExternalValue]) -> Reading:
    """The sum of all series."""
    values = tuple(values)
    if not values:
        return Unread("no metrics returned from external metrics API")
    return total([value.value.milli() for value in values])


def _seconds(time: str | None) -> float:
    return parse_time(time).timestamp() if time else 0.0


def go_seconds(text: str) -> float:
    """Seconds of `15s`, `1m0.5s`; ValueError for what is no duration."""
    seconds, digits, unit = 0.0, "", ""
    for letter in f"{text}0" if text else "":
        if unit and (letter.isdigit() or letter == "."):
            seconds += float(digits) * _UNITS.get(unit, float("nan"))
            digits, unit = letter, ""
        elif letter.isdigit() or letter == ".":
            digits += letter
        else:
            unit += letter
    if seconds != seconds:
        raise ValueError(f"{text!r} is no duration")
    return seconds
