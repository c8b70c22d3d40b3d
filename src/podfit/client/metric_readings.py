"""What the three metrics APIs say of the metrics of an autoscaler; what they do not say is said in upstream's words."""

from collections.abc import Sequence
from typing import TypeVar
from urllib.parse import quote

import msgspec

from podfit.api.autoscaling.v2.types import MetricIdentifier, MetricSpec, ObjectMetricSource
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.api.meta.selectors import requirements
from podfit.client.pod_usage import GROUP as RESOURCE
from podfit.client.pod_usage import PodUsages
from podfit.client.rest import Client
from podfit.client.scales import Scales
from podfit.core.clock import Clock
from podfit.core.errors import ApiError
from podfit.core.selectors import Selector, as_text
from podfit.decide.autoscaling.horizontal import samples
from podfit.decide.autoscaling.horizontal.model import Reading, Unread

T = TypeVar("T")
CUSTOM, EXTERNAL = "custom.metrics.k8s.io", "external.metrics.k8s.io"
_SAID = {
    401: "the server has asked for the client to provide credentials",
    403: "the server does not allow access to the requested resource",
    404: "the server could not find the requested resource",
    503: "the server is currently unable to handle the request",
}


class _Items(msgspec.Struct, frozen=True):
    items: tuple[msgspec.Raw, ...] | None = ()


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    version: str = ""


class _Group(msgspec.Struct, frozen=True, rename="camel"):
    preferred_version: _Version = _Version()


class MetricReadings:
    """`scales` knows where the kinds of described objects are; `period` is how long the version of custom metrics is
    believed. Usage is what `usages` read for all; without it the server is asked for each selector, as upstream asks.
    """

    def __init__(
        self, client: Client, scales: Scales, clock: Clock, period: float, usages: PodUsages | None = None
    ) -> None:
        self._client, self._scales, self._clock, self._period = client, scales, clock, period
        self._usages = usages
        self._custom: tuple[float, str] = (float("-inf"), "")

    async def read(
        self, metrics: Sequence[MetricSpec], namespace: str, selector: str, pods: Sequence[Pod]
    ) -> list[Reading]:
        """In the order of the metrics; usage, of the `pods` that `selector` selects, is asked for once."""
        usage: tuple[samples.PodUsage, ...] | Unread | None = None
        readings: list[Reading] = []
        for metric in metrics:
            resource = metric.resource if metric.type == "Resource" else metric.container_resource
            if metric.type in ("Resource", "ContainerResource") and resource is not None:
                if usage is None:
                    usage = await self._usage(namespace, selector, pods)
                container = metric.container_resource.container if metric.container_resource is not None else ""
                readings.append(
                    usage
                    if isinstance(usage, Unread)
                    else samples.of_resource(usage, resource.name, container if metric.type != "Resource" else "")
                )
            else:
                readings.append(await self._other(metric, namespace, selector))
        return readings

    async def _other(self, metric: MetricSpec, namespace: str, selector: str) -> Reading:
        match metric:
            case MetricSpec(type="Pods", pods=source) if source is not None:
                query = {"labelSelector": selector} | _selected(source.metric, "metricLabelSelector")
                values = await self._described(namespace, "pods/*", source.metric.name, query)
                return values if isinstance(values, Unread) else samples.of_pods(values)
            case MetricSpec(type="Object", object=source) if source is not None:
                values = await self._of_object(source, namespace)
                return values if isinstance(values, Unread) else samples.of_object(values)
            case MetricSpec(type="External", external=source) if source is not None:
                path = f"/apis/{EXTERNAL}/v1beta1/namespaces/{namespace}/{_part(source.metric.name)}"
                query = _selected(source.metric, "labelSelector")
                series = await self._items(
                    path, query, samples.ExternalValue, "external", f"{source.metric.name}.{EXTERNAL}"
                )
                return series if isinstance(series, Unread) else samples.of_external(series)
            case _:
                return Unread("the metric names no source")

    async def _usage(self, namespace: str, selector: str, pods: Sequence[Pod]) -> tuple[samples.PodUsage, ...] | Unread:
        if self._usages is None:
            path, query = f"/apis/{RESOURCE}/v1beta1/namespaces/{namespace}/pods", {"labelSelector": selector}
            return await self._items(path, query, samples.PodUsage, "resource", f"pods.{RESOURCE}")
        try:
            found = await self._usages.of(namespace)
        except (ApiError, ConnectionError, ValueError) as error:
            return _unread("resource", _message(error, f"pods.{RESOURCE}"))
        return tuple(found[pod.metadata.name] for pod in pods if pod.metadata.name in found)

    async def _of_object(self, source: ObjectMetricSource, namespace: str) -> tuple[samples.MetricValue, ...] | Unread:
        """A namespace is described by its own metrics, whatever its name says."""
        described, query = source.described_object, _selected(source.metric, "metricLabelSelector")
        group = described.api_version.rpartition("/")[0]
        if described.kind == "Namespace" and not group:
            return await self._described(namespace, "metrics", source.metric.name, query)
        try:
            place = await self._scales.place(group, described.kind)
        except (ApiError, ConnectionError, ValueError) as error:
            return _unread("custom", str(error))
        if place is None:
            return _unread("custom", f'no matches for kind "{described.kind}" in group "{group}"')
        resource = f"{place.resource}.{group}" if group else place.resource
        return await self._described(namespace, f"{resource}/{_part(described.name)}", source.metric.name, query)

    async def _described(
        self, namespace: str, what: str, metric: str, query: dict[str, str]
    ) -> tuple[samples.MetricValue, ...] | Unread:
        try:
            version = await self._custom_version()
        except (ApiError, ConnectionError, ValueError) as error:
            return _unread("custom", _message(error, CUSTOM))
        path = f"/apis/{CUSTOM}/{version}/namespaces/{namespace}/{what}/{_part(metric)}"
        return await self._items(path, query, samples.MetricValue, "custom", f"{what.partition('/')[0]}.{CUSTOM}")

    async def _custom_version(self) -> str:
        until, version = self._custom
        now = self._clock.monotonic()
        if until <= now:
            group = codec.decode(await self._client.request("GET", f"/apis/{CUSTOM}"), _Group)
            version = group.preferred_version.version
            self._custom = now + self._period, version
        return version

    async def _items(
        self, path: str, query: dict[str, str], kind: type[T], api: str, asked: str
    ) -> tuple[T, ...] | Unread:
        try:
            found = codec.decode(await self._client.request("GET", path, query=query), _Items)
            return tuple(codec.decode(bytes(item), kind) for item in found.items or ())
        except (ApiError, ConnectionError, ValueError) as error:
            return _unread(api, _message(error, asked))


def _unread(api: str, why: str) -> Unread:
    return Unread(f"unable to fetch metrics from {api} metrics API: {why}")


def _message(error: Exception, asked: str) -> str:
    """A server that says no more than its code is quoted as upstream's client does."""
    if not isinstance(error, ApiError):
        return str(error)
    said = _SAID.get(error.code) if not error.reason else None
    return f"{said} (get {asked})" if said else error.message


def _selected(metric: MetricIdentifier, parameter: str) -> dict[str, str]:
    wanted = requirements(metric.selector)
    return {parameter: as_text(Selector(wanted))} if wanted else {}


def _part(name: str) -> str:
    """A part of a path; validation lets no slash through."""
    return quote(name, safe="") if name not in (".", "..") else quote(name, safe="").replace(".", "%2E")
