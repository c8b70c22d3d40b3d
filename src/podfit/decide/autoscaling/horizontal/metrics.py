"""What each kind of metric proposes, what the status says of it, and in which words it fails."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from podfit.api.autoscaling.v2.types import (
    ContainerResourceMetricSource,
    ContainerResourceMetricStatus,
    ExternalMetricSource,
    ExternalMetricStatus,
    MetricSpec,
    MetricStatus,
    MetricTarget,
    MetricValueStatus,
    ObjectMetricSource,
    ObjectMetricStatus,
    PodsMetricSource,
    PodsMetricStatus,
    ResourceMetricSource,
    ResourceMetricStatus,
)
from podfit.api.meta.v1.types import LabelSelector
from podfit.core.quantity import Format, Quantity
from podfit.core.resources import MEMORY
from podfit.decide.autoscaling.horizontal.model import Reading, Unmeasured, Unread
from podfit.decide.autoscaling.horizontal.replicas import (
    Followed,
    Proposal,
    Target,
    by_average,
    by_share,
    by_utilization,
    by_value,
)

_MILLI = 10**6  # nano units


class Computed(msgspec.Struct, frozen=True):
    """`name` is what events and conditions call the metric. `last_good` is when it was read, if not in this pass;
    `left_out` are pods that request nothing of it."""

    replicas: int
    name: str
    status: MetricStatus
    left_out: tuple[str, ...] = ()
    last_good: float | None = None
    followed: Followed | None = None
    amount: int | None = None
    """In thousandths, of a metric that is one amount."""


class Failure(msgspec.Struct, frozen=True):
    """`reason` and `message` are told of the metric; `error` is what the pass says."""

    reason: str
    message: str
    error: str
    in_spec: bool = False
    """Whether it is the spec that is wrong, and not what was read."""


class _Failed(Exception):
    """`around` is put before the message where the pass tells of it."""

    def __init__(self, message: str, around: str = "") -> None:
        super().__init__(message)
        self.around = around


Compute: TypeAlias = Callable[[MetricSpec, Target, Reading, str], Computed]


def compute(spec: MetricSpec, target: Target, reading: Reading, namespace: str) -> Computed | Failure:
    kind = _KINDS.get(spec.type)
    if kind is None:
        text = f'unknown metric source type "{spec.type}"'
        return Failure("InvalidMetricSourceType", text, text, in_spec=True)
    try:
        computed = kind(spec, target, reading, namespace)
        return replace(computed, amount=reading) if isinstance(reading, int) else computed
    except _Failed as failure:
        message = str(failure)
        return Failure(f"FailedGet{spec.type}Metric", message, f"{_head(spec)}: {failure.around}{message}")


def selector_text(selector: LabelSelector | None) -> str:
    """The selector as Go prints it."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted(selector.match_labels.items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{term.key},Operator:{term.operator},Values:[{' '.join(term.values)}],}},"
        for term in selector.match_expressions
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def _head(spec: MetricSpec) -> str:
    match spec:
        case MetricSpec(type="Resource", resource=ResourceMetricSource(name=name)):
            return f"failed to get {name} resource metric value"
        case MetricSpec(type="ContainerResource", container_resource=ContainerResourceMetricSource(container=name)):
            return f"failed to get {name} container metric value"
        case MetricSpec(type="External", external=ExternalMetricSource(metric=metric)):
            return f"failed to get {metric.name} external metric value"
        case _:
            return f"failed to get {spec.type.lower()} metric value"


def _resource(spec: MetricSpec, target: Target, reading: Reading, _: str) -> Computed:
    source = spec.resource or ResourceMetricSource()
    proposal, name = _of_resource(source.name, "", source.target, target, reading)
    if proposal.utilization is not None:
        name = f"{source.name} resource utilization (percentage of request)"
    current = _current(proposal, source.name)
    status = MetricStatus(type=spec.type, resource=ResourceMetricStatus(name=source.name, current=current))
    return Computed(proposal.replicas, name, status, proposal.left_out, followed=proposal.followed)


def _container_resource(spec: MetricSpec, target: Target, reading: Reading, _: str) -> Computed:
    source = spec.container_resource or ContainerResourceMetricSource()
    proposal, name = _of_resource(source.name, source.container, source.target, target, reading)
    if proposal.utilization is not None:
        name = f"{source.name} container resource utilization (percentage of request)"
    told = ContainerResourceMetricStatus(
        name=source.name, container=source.container, current=_current(proposal, source.name)
    )
    status = MetricStatus(type=spec.type, container_resource=told)
    return Computed(proposal.replicas, name, status, proposal.left_out, followed=proposal.followed)


def _of_resource(
    resource: str, container: str, wanted: MetricTarget, target: Target, reading: Reading
) -> tuple[Proposal, str]:
    what = "usage" if wanted.average_value is not None else "utilization"
    try:
        if isinstance(reading, Unread):
            raise Unmeasured(f"unable to get metrics for resource {resource}: {reading.why}")
        if isinstance(reading, int):
            raise Unmeasured(f"unable to get metrics for resource {resource}: no samples of pods")
        if wanted.average_value is not None:
            proposal = by_average(target, reading, wanted.average_value.milli(), resource)
        elif wanted.average_utilization is not None:
            proposal = by_utilization(target, reading, resource, wanted.average_utilization, container)
        else:
            raise _Failed("invalid resource metric source: neither an average utilization nor an average value was set")
    except Unmeasured as error:
        raise _Failed(f"failed to get {resource} {what}: {error}") from None
    return proposal, f"{resource} resource"


def _current(proposal: Proposal, resource: str) -> MetricValueStatus:
    return MetricValueStatus(average_utilization=proposal.utilization, average_value=_amount(proposal.usage, resource))


def _amount(milli: int, resource: str = "") -> Quantity:
    return Quantity(milli * _MILLI, Format.BINARY_SI if resource == MEMORY else Format.DECIMAL_SI)


def _pods(spec: MetricSpec, target: Target, reading: Reading, _: str) -> Computed:
    source = spec.pods or PodsMetricSource()
    name = source.metric.name
    try:
        if isinstance(reading, Unread | int):
            why = reading.why if isinstance(reading, Unread) else "no samples of pods"
            raise Unmeasured(f"unable to get metric {name}: {why}")
        proposal = by_average(target, reading, _milli(source.target.average_value))
    except Unmeasured as error:
        raise _Failed(str(error)) from None
    told = PodsMetricStatus(metric=source.metric, current=_current(proposal, ""))
    return Computed(proposal.replicas, f"pods metric {name}", MetricStatus(type=spec.type, pods=told))


def _object(spec: MetricSpec, target: Target, reading: Reading, namespace: str) -> Computed:
    source = spec.object or ObjectMetricSource()
    name, wanted, kind = source.metric.name, source.target, source.described_object.kind
    whole = wanted.type == "Value" and wanted.value is not None
    if not isinstance(reading, int):
        why = reading.why if isinstance(reading, Unread) else "not one amount"
        text = f"unable to get metric {name}: {kind} on {namespace} {source.described_object.name}/{why}"
        raise _Failed(text, "" if whole else f"failed to get {name} object metric: ")
    proposal = _of_amount(target, reading, wanted, whole=whole)
    told = ObjectMetricStatus(
        metric=source.metric, described_object=source.described_object, current=_of_all(proposal, whole=whole)
    )
    named = f"{kind} metric {name}" if whole else f"external metric {name}({selector_text(source.metric.selector)})"
    return Computed(proposal.replicas, named, MetricStatus(type=spec.type, object=told))


def _external(spec: MetricSpec, target: Target, reading: Reading, namespace: str) -> Computed:
    source = spec.external or ExternalMetricSource()
    name, wanted = source.metric.name, source.target
    whole = wanted.average_value is None
    selector = selector_text(source.metric.selector)
    around = f"failed to get external metric {name}: " if whole else f"failed to get {name} external metric: "
    if not isinstance(reading, int):
        why = reading.why if isinstance(reading, Unread) else "not one amount"
        raise _Failed(f"unable to get external metric {namespace}/{name}/{selector}: {why}", around)
    try:
        proposal = _of_amount(target, reading, wanted, whole=whole)
    except _Failed as failure:
        raise _Failed(str(failure), around) from None
    told = ExternalMetricStatus(metric=source.metric, current=_of_all(proposal, whole=whole))
    return Computed(
        proposal.replicas, f"external metric {name}({selector})", MetricStatus(type=spec.type, external=told)
    )


def _of_amount(target: Target, usage: int, wanted: MetricTarget, *, whole: bool) -> Proposal:
    if not whole:
        return by_share(target, usage, _milli(wanted.average_value))
    try:
        return by_value(target, usage, _milli(wanted.value))
    except Unmeasured as error:
        raise _Failed(str(error)) from None


def _of_all(proposal: Proposal, *, whole: bool) -> MetricValueStatus:
    amount = _amount(proposal.usage)
    return MetricValueStatus(value=amount) if whole else MetricValueStatus(average_value=amount)


def _milli(amount: Quantity | None) -> int:
    """Validation lets nothing through that is not positive."""
    milli = amount.milli() if amount is not None else 0
    if milli <= 0:
        raise _Failed("invalid metric source: the target is no positive amount")
    return milli


_KINDS: Mapping[str, Compute] = MappingProxyType(
    {
        "Resource": _resource,
        "ContainerResource": _container_resource,
        "Pods": _pods,
        "Object": _object,
        "External": _external,
    }
)
