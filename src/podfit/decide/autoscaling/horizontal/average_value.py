"""A utilization as an amount for each pod: what it is a share of, at today's requests."""

from collections.abc import Sequence

from podfit.api.autoscaling.v2.types import MetricSpec
from podfit.api.core.v1.pods.types import Pod
from podfit.core.quantity import Format, Quantity
from podfit.core.resources import MEMORY
from podfit.decide.autoscaling.horizontal.model import Settings, Unmeasured
from podfit.decide.autoscaling.horizontal.pods import NO_PODS, as_granted, is_over, requests_of
from podfit.decide.autoscaling.horizontal.vertical import shares

_MILLI = 10**6  # nano units


def mean_request(metric: MetricSpec, pods: Sequence[Pod], settings: Settings) -> int:
    """Thousandths of what a pod has been granted of the metric's resource. Raises Unmeasured."""
    resource, container = shares(metric), ""
    if metric.container_resource is not None:
        container = metric.container_resource.container
    there = [as_granted(pod) for pod in pods if not is_over(pod, settings)]
    requests, lacking = requests_of(there, resource, container, settings.gates)
    if not requests:
        raise next(iter(lacking.values()), Unmeasured(NO_PODS))
    return sum(requests.values()) // len(requests)


def as_amount(metric: MetricSpec, percent: int, pods: Sequence[Pod], settings: Settings) -> tuple[Quantity, Quantity]:
    """The amount that `percent` is, and the request that it is of. Raises Unmeasured."""
    request = mean_request(metric, pods, settings)
    form = Format.BINARY_SI if shares(metric) == MEMORY else Format.DECIMAL_SI
    amount = max(request * percent // 100, 1)
    if form is Format.BINARY_SI:
        amount = -(-amount // 1000) * 1000  # whole bytes
    return Quantity(amount * _MILLI, form), Quantity(request * _MILLI, form)
