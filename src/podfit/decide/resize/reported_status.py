"""Resources in a pod's status: allocated ones, and actual ones where the runtime reports them.

The kernel rounds. A value that is what the allocation comes to is reported as the allocation writes it, so that a
resize is seen to end at the figure that was asked for.
"""

import msgspec

from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import Quantity
from podfit.decide.cgroup import conversion as cgroups
from podfit.decide.cgroup.container_resources import Machine, cpu, memory
from podfit.decide.cgroup.pod_cgroup import PAGE, PodValues, pod_config
from podfit.decide.pod.allocated import NOTHING, PodResources, overlay
from podfit.decide.pod.requests import pod_limits, pod_requests

SMALLEST_REQUEST = 2  # milli-CPUs: what the kernel's least shares come to
SMALLEST_LIMIT = 10  # milli-CPUs: the kernel's least quota


class Enforced(msgspec.Struct, frozen=True, kw_only=True):
    """What a runtime reports of one container: milli-CPUs and bytes, 0 = nothing set."""

    cpu_request: int = 0
    cpu_limit: int = 0
    memory_limit: int = 0


def enforced(*, shares: int, quota: int, period: int, memory_limit: int) -> Enforced:
    return Enforced(
        cpu_request=cgroups.milli_from_shares(shares),
        cpu_limit=cgroups.milli_from_quota(quota, period),
        memory_limit=max(memory_limit, 0),
    )


def container_resources(
    allocated: ResourceRequirements,
    actual: Enforced | None,
    actuated: ResourceRequirements | None,
    previous: ResourceRequirements | None,
) -> ResourceRequirements:
    """The resources of a running container. `actual` is None where the runtime tells nothing, and then the record
    speaks (R-148).

    `previous` is what was last reported of the same instance. Names other than cpu and memory are as allocated (R-149).
    """
    record, before = actuated or NOTHING, previous or NOTHING
    seen = actual or Enforced(
        cpu_request=cpu(record.requests), cpu_limit=cpu(record.limits), memory_limit=memory(record.limits)
    )
    limits, requests = dict(allocated.limits), dict(allocated.requests)
    if limits:
        _correct(limits, "cpu", seen.cpu_limit, before.limits, smallest=SMALLEST_LIMIT)
        _correct(limits, "memory", seen.memory_limit, before.limits)
    if requests:
        if "cpu" in requests:
            _correct(requests, "cpu", seen.cpu_request, before.requests, smallest=SMALLEST_REQUEST)
        _correct(requests, "memory", memory(record.requests), before.requests)
    return ResourceRequirements(claims=allocated.claims, limits=limits, requests=requests)


def _correct(amounts: dict[str, Quantity], name: str, seen: int, before: ResourceList, *, smallest: int = 0) -> None:
    """Put the real amount (0 = unknown) in place of the allocated one, where the two are not the same to the kernel."""
    if not seen:
        if name in before:
            amounts[name] = before[name]
        return
    wanted = cpu(amounts) if name == "cpu" else memory(amounts)
    if seen != wanted and not (wanted <= smallest and seen <= smallest):
        amounts[name] = Quantity.of_milli(seen) if name == "cpu" else Quantity.of_bytes(seen)


def pod_allocated(pod: Pod, machine: Machine) -> ResourceList:
    """`status.allocatedResources`: what the allocated pod counts for, overhead included; readers take it off."""
    return pod_requests(pod, gates=machine.gates)


def pod_resources(
    pod: Pod, actuated: PodResources, values: PodValues | None, machine: Machine, previous: ResourceRequirements | None
) -> ResourceRequirements:
    """`status.resources` of the allocated `pod`; `values` is what its cgroup holds, None unless it runs.

    Built on the effective allocation, so that nothing drops out which the cgroup cannot show; memory requests, which
    are in no cgroup, are those actuated. A weight says its request only roughly: one that is the allocation's
    reads as the allocation, and one that is still the actuated size's reads as that.
    """
    requests, limits = (dict(f(pod, gates=machine.gates)) for f in (pod_requests, pod_limits))
    if values is not None:
        was = previous or NOTHING
        target = pod_config(pod, machine)
        before = overlay(pod, actuated, machine.gates) if actuated.containers else pod
        real = pod_requests(before, gates=machine.gates)
        if "cpu" in requests and values.shares_change(target):
            rough = cpu(real) == 0 or values.shares_change(pod_config(before, machine)) != 0
            seen = cgroups.milli_from_shares(values.shares) if rough else cpu(real)
            _correct(requests, "cpu", seen, was.requests, smallest=SMALLEST_REQUEST)
        if "memory" in requests and actuated.containers:
            _correct(requests, "memory", memory(real), was.requests)
        if target.quota is not None and values.limit_change(target, "cpu"):
            seen = cgroups.milli_from_quota(values.quota or 0, values.period)
            _correct(limits, "cpu", seen, was.limits, smallest=SMALLEST_LIMIT)
        if target.memory is not None and values.limit_change(target, "memory"):
            _correct(limits, "memory", (values.memory or 0) // PAGE * PAGE, was.limits)
    return ResourceRequirements(limits=limits, requests=requests)
