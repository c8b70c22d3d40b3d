"""How much one pod can shrink in place, and the pod afterwards.

Only requests of regular containers count, down to their targets. The QoS class stays: a Guaranteed container shrinks
its limit with its request, a Burstable one its request alone, and a request that is there never becomes zero.
"""

from collections.abc import Iterator, Mapping

import msgspec

from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.static_pods import is_mirror
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.core.features import FeatureGates
from podfit.core.quantity import ZERO, Quantity
from podfit.core.resources import CPU, MEMORY, positive, subtract
from podfit.decide.node.room.minimum import MinimumSize
from podfit.decide.pod.requests import pod_requests
from podfit.decide.resize.restart_policy import restarting

_STEP = {CPU: Quantity.of_milli(1), MEMORY: Quantity.of_bytes(2**20)}
"""Amounts are given in whole steps where the giver has that much: 700m and 249Mi, not 249.3Mi."""


class Shrink(msgspec.Struct, frozen=True):
    """`pod` with these `containers` gives `given`. Only CPU and memory requests, and limits if Guaranteed, differ."""

    pod: Pod
    containers: Mapping[str, ResourceRequirements]
    given: ResourceList


def slack(pod: Pod, targets: Mapping[str, MinimumSize], gates: FeatureGates) -> dict[str, Quantity]:
    """The most that the pod can give, by resource name.

    With `spec.resources` the pod counts as a whole, whatever its containers ask for, so it cannot give. Where init
    containers need more than the regular ones, shrinking these frees less than it takes, or nothing.
    """
    if pod.spec.resources is not None or is_mirror(pod):
        return {}
    reducible = dict(_reducible(pod, targets))
    smallest = _shrunk(pod, {name: _reduced(pod, name, less) for name, less in reducible.items()})
    return positive(subtract(pod_requests(pod, gates=gates), pod_requests(smallest, gates=gates)))


def shrink(pod: Pod, targets: Mapping[str, MinimumSize], wanted: ResourceList, gates: FeatureGates) -> Shrink:
    """Give what is wanted, as far as the slack goes; container after container in the order of the spec."""
    most = slack(pod, targets, gates)
    given = {name: min(_whole(name, wanted[name]), most[name]) for name in wanted if name in most}
    left, containers = dict(given), dict[str, ResourceRequirements]()
    for container, reducible in _reducible(pod, targets):
        less = positive({name: min(amount, left[name]) for name, amount in reducible.items() if name in left})
        if less:
            left |= {name: left[name] - amount for name, amount in less.items()}
            containers[container] = _reduced(pod, container, less)
    return Shrink(pod, containers, given)


def after(change: Shrink) -> Pod:
    return _shrunk(change.pod, change.containers)


def _reducible(pod: Pod, targets: Mapping[str, MinimumSize]) -> Iterator[tuple[str, ResourceList]]:
    for container in pod.spec.containers:
        target = targets.get(container.name)
        if target is not None:
            requests, restart = container.resources.requests, restarting(container)
            yield (
                container.name,
                {
                    name: requests[name] - floor
                    for name, floor in target.floor.items()
                    if floor and requests.get(name, ZERO) > floor and (target.restart or name not in restart)
                },
            )


def _reduced(pod: Pod, name: str, less: ResourceList) -> ResourceRequirements:
    resources = next(container.resources for container in pod.spec.containers if container.name == name)
    requests = {**resources.requests, **{name: resources.requests[name] - less[name] for name in less}}
    limits = resources.limits
    if pod.status.qos_class == "Guaranteed":
        limits = {**limits, **{name: requests[name] for name in less}}
    return msgspec.structs.replace(resources, requests=requests, limits=limits)


def _shrunk(pod: Pod, containers: Mapping[str, ResourceRequirements]) -> Pod:
    changed = tuple(
        msgspec.structs.replace(container, resources=containers.get(container.name, container.resources))
        for container in pod.spec.containers
    )
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=changed))


def _whole(name: str, amount: Quantity) -> Quantity:
    step = _STEP[name]
    return Quantity(-(-amount.nano // step.nano) * step.nano, step.format)
