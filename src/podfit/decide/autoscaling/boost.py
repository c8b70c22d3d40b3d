"""CPU startup boost: more CPU while a container starts, and its end (V-107 to V-109)."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec

from podfit.api.autoscaling_k8s.v1 import GenericStartupBoost, VerticalPodAutoscaler
from podfit.api.core.v1.pods.containers import ResourceRequirements
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.base import ResourceList
from podfit.api.meta.codec import encode
from podfit.core.quantity import Quantity
from podfit.core.resources import CPU, only
from podfit.core.times import parse_time
from podfit.decide.autoscaling.limit_ranges import proportional_limit
from podfit.decide.autoscaling.policies import RESOURCES, boost_of
from podfit.decide.autoscaling.validation import FACTOR, QUANTITY

ANNOTATION = "vpaCpuStartupBoost/"
"""Before the container's name; the value has the resources to go back to."""

_MOMENT = timedelta(milliseconds=100)
_SOON = timedelta(seconds=5)
"""A node tells of an end and of the start after it together, and in whole seconds."""


class BoostError(ValueError):
    """A boost that cannot be computed; the pod is left as it is."""


class Boosted(msgspec.Struct, frozen=True):
    """`limit` is None where the container has no CPU limit to scale, or limits are not scaled."""

    request: Quantity
    limit: Quantity | None


def boosted(
    boost: GenericStartupBoost,
    own: ResourceRequirements,
    recommended: Quantity | None,
    *,
    limits: bool,
    most: Quantity | None,
) -> Boosted:
    """The CPU of a container that starts; `most` bounds it, `limits` says whether its limit follows."""
    base = (recommended or own.requests.get(CPU) or Quantity(0)).milli()
    if boost.type in (FACTOR, ""):
        if boost.factor is None or boost.factor < 1:
            raise BoostError(f"startupBoost.cpu.factor must be at least 1, not {boost.factor}")
        amount = Quantity.of_milli(base * boost.factor)
    elif boost.type == QUANTITY:
        if boost.quantity is None:
            raise BoostError("startupBoost.cpu.quantity is required when type is Quantity")
        amount = Quantity.of_milli(base + boost.quantity.milli())
    else:
        raise BoostError(f"startupBoost.cpu.type must be {FACTOR} or {QUANTITY}, not {boost.type!r}")
    if most is not None and amount > most:
        amount = most
    if limits:
        return Boosted(amount, proportional_limit(CPU, own, amount, None))
    limit = own.limits.get(CPU)
    if limit and amount > limit:
        below = Quantity.of_milli(limit.milli() - 1)
        amount = below or limit
    return Boosted(amount, None)


def annotation(own: ResourceRequirements) -> str:
    """What the container had, as JSON."""
    kept = {"requests": only(own.requests, RESOURCES), "limits": only(own.limits, RESOURCES)}
    return encode(kept).decode()


def original(text: str) -> tuple[ResourceList, ResourceList]:
    """Requests and limits of an annotation. ValueError when it is not readable."""
    found = msgspec.json.decode(text)
    requests, limits = (
        {name: Quantity.parse(str(amount)) for name, amount in (found.get(field) or {}).items()}
        for field in ("requests", "limits")
    )
    return requests, limits


def boosted_containers(pod: Pod) -> Iterator[str]:
    """The containers that bear the annotation."""
    names = {container.name for container in pod.spec.containers}
    for key in pod.metadata.annotations:
        if key.startswith(ANNOTATION) and (name := key.removeprefix(ANNOTATION)) in names:
            yield name


def expired(pod: Pod, vpa: VerticalPodAutoscaler, container: str, now: datetime) -> bool:
    """Whether the pod has been ready for longer than the boost lasts."""
    left = _left(pod, vpa, container, now)
    return left is not None and left <= timedelta(0)


def _left(pod: Pod, vpa: VerticalPodAutoscaler, container: str, now: datetime) -> timedelta | None:
    """How long the boost of a container goes on; nothing or less: it is over. None while the pod is not ready."""
    ready = next((condition for condition in pod.status.conditions if condition.type == "Ready"), None)
    if ready is None or ready.status != "True":
        return None
    boost = boost_of(vpa, container)
    seconds = (boost.duration_seconds or 0) if boost else 0
    if not seconds or ready.last_transition_time is None:
        return timedelta(0)
    over = now - parse_time(ready.last_transition_time) - timedelta(seconds=seconds)
    return timedelta(0) if over > timedelta(0) else max(-over, _MOMENT)


def left(pod: Pod, vpa: VerticalPodAutoscaler, now: datetime) -> float | None:
    """Seconds after which the first boost of a pod that is ready ends; None where none is to be waited for."""
    every = (_left(pod, vpa, container, now) for container in boosted_containers(pod))
    return min((one.total_seconds() for one in every if one is not None and one > timedelta(0)), default=None)


def starts_again(pod: Pod, vpa: VerticalPodAutoscaler, container: str) -> bool:
    """Whether a container that is to be boosted was started again, or is about to be, and has not been ready since.

    The pod has to have stopped being ready before that start: one that only fails its probe later is not starting.
    """
    if boost_of(vpa, container) is None or pod.spec.restart_policy == "Never":
        return False
    ready = next((condition for condition in pod.status.conditions if condition.type == "Ready"), None)
    status = next((status for status in pod.status.container_statuses if status.name == container), None)
    if ready is None or ready.status == "True" or status is None or not status.restart_count or status.ready:
        return False
    running = status.state.running
    if running is None or running.started_at is None:
        return status.state.waiting is not None
    if ready.last_transition_time is None:
        return False
    return parse_time(ready.last_transition_time) <= parse_time(running.started_at) + _SOON
