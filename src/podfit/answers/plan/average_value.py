"""What an HPA that scales on a share of requests would say as an amount: then no VPA changes what it measures."""

from collections.abc import Sequence

import msgspec

from podfit.answers.facts.kinds import HPAS, PODS
from podfit.api.autoscaling.v1.types import Scale
from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler, MetricSpec
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta import codec
from podfit.client.rest import Client
from podfit.client.scales import NoKind, Scales
from podfit.core.clock import Clock
from podfit.core.errors import not_found
from podfit.decide.autoscaling.horizontal.average_value import as_amount
from podfit.decide.autoscaling.horizontal.model import Settings, Unmeasured
from podfit.decide.autoscaling.horizontal.vertical import shares


class Converted(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One metric, by its place in the spec; `request` is the mean of what its pods have been granted."""

    index: int
    resource: str
    container: str = ""
    utilization: int
    request: str = ""
    average_value: str = ""
    why_not: str = ""


class AverageValues(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """`patch` is a JSON patch of the HPA; empty where nothing can be converted."""

    hpa: str
    namespace: str
    metrics: tuple[Converted, ...] = ()
    patch: tuple[dict[str, object], ...] = ()
    notes: tuple[str, ...] = ()


async def read_average_values(client: Client, name: str, namespace: str, clock: Clock) -> AverageValues:
    """Raises ApiError for the HPA itself, and where its target or pods cannot be read."""
    autoscaler = await client.get(HPAS, name, namespace)
    ref, scales = autoscaler.spec.scale_target_ref, Scales(client, clock)
    try:
        path = await scales.path(ref.api_version, ref.kind, namespace, ref.name)
    except NoKind as error:
        raise not_found(ref.kind.lower(), ref.name) from error
    selector = codec.decode(await client.request("GET", path), Scale).status.selector
    pods: Sequence[Pod] = (await client.list(PODS, namespace, labels=selector)).items if selector else ()
    return average_values(autoscaler, pods)


def average_values(autoscaler: HorizontalPodAutoscaler, pods: Sequence[Pod]) -> AverageValues:
    settings = Settings(upstream_compatible=False)
    found = [
        _converted(index, metric, pods, settings)
        for index, metric in enumerate(autoscaler.spec.metrics)
        if shares(metric)
    ]
    patch: list[dict[str, object]] = []
    for told in found:
        if told.average_value:
            source = "containerResource" if told.container else "resource"
            target = {"type": "AverageValue", "averageValue": told.average_value}
            patch.append({"op": "replace", "path": f"/spec/metrics/{told.index}/{source}/target", "value": target})
    notes = () if found else ("no metric of it is a share of requests",)
    meta = autoscaler.metadata
    return AverageValues(hpa=meta.name, namespace=meta.namespace, metrics=tuple(found), patch=tuple(patch), notes=notes)


def _converted(index: int, metric: MetricSpec, pods: Sequence[Pod], settings: Settings) -> Converted:
    source = metric.resource or metric.container_resource
    percent = (source.target.average_utilization if source is not None else None) or 0
    told = Converted(
        index=index,
        resource=shares(metric),
        container=metric.container_resource.container if metric.container_resource is not None else "",
        utilization=percent,
    )
    try:
        amount, request = as_amount(metric, percent, pods, settings)
    except Unmeasured as error:
        return msgspec.structs.replace(told, why_not=str(error))
    return msgspec.structs.replace(told, request=str(request), average_value=str(amount))
