"""The size that an HPA of `podfit.dev/scale: vertical-first` asks for, and what it is for each container.

vertical_first ──▶ annotation of the HPA ──asked──▶ split by the VPA's own estimates ──▶ its recommendation
"""

from collections.abc import Iterable, Mapping

import msgspec

from podfit.api.autoscaling.v2.types import HorizontalPodAutoscaler
from podfit.api.autoscaling_k8s.v1 import PodResourcePolicy
from podfit.api.meta.base import ResourceList
from podfit.core.quantity import Quantity
from podfit.decide.autoscaling.capping import NO_AMOUNTS, capped
from podfit.decide.autoscaling.horizontal.keep_point import SCALE
from podfit.decide.autoscaling.horizontal.vertical import shares
from podfit.decide.autoscaling.policies import policy_of

VERTICAL_FIRST = "vertical-first"
ASKED = "podfit.dev/scale-size"
"""The annotation with the sizes that are asked for."""
CONDITION = "podfit.dev/VerticalFirst"
"""Of the HPA: whether replicas wait. The VPA's is `conditions.ASKED_FOR`."""
_MOST_BYTES = 4096
_MILLI = 10**6  # nano units


class Ask(msgspec.Struct, frozen=True):
    """Thousandths that the containers of a pod which a VPA sizes are to request together. While they request less,
    `since` is when they last grew, and `granted` what they had then; 0 where nothing is waited for."""

    size: int
    granted: int = 0
    since: float = 0.0


def is_vertical_first(autoscaler: HorizontalPodAutoscaler) -> bool:
    return autoscaler.metadata.annotations.get(SCALE) == VERTICAL_FIRST


def sized_first(autoscaler: HorizontalPodAutoscaler) -> tuple[str, ...]:
    """The resources of which a pod is to have more before replicas are added."""
    if not is_vertical_first(autoscaler):
        return ()
    return tuple(
        dict.fromkeys(
            shares(metric) for metric in autoscaler.spec.metrics if metric.resource is not None and shares(metric)
        )
    )


def asks(autoscaler: HorizontalPodAutoscaler) -> dict[str, Ask]:
    """What it asks for, by resource; nothing where nobody wrote it, or it cannot be read."""
    text = autoscaler.metadata.annotations.get(ASKED, "")
    if len(text) > _MOST_BYTES:
        return {}
    try:
        written = msgspec.json.decode(text or "{}", type=dict[str, Ask])
    except (msgspec.DecodeError, UnicodeError):
        return {}
    return {name: ask for name, ask in written.items() if ask.size > 0}


def encoded(sizes: Mapping[str, Ask]) -> str:
    """Empty where it would be too long to be read again."""
    text = msgspec.json.encode(sizes).decode()
    return text if len(text) <= _MOST_BYTES else ""


def asked(autoscalers: Iterable[HorizontalPodAutoscaler]) -> dict[str, tuple[int, str]]:
    """The size, by resource, that these HPAs, which have one target, ask for, and which of them does. Only of resources
    that all of them which scale on it size first, and that podfit's controller acts on: upstream's writes no
    generation."""
    found: dict[str, tuple[int, str]] = {}
    free: set[str] = set()
    for autoscaler in autoscalers:
        ours = is_vertical_first(autoscaler) and autoscaler.status.observed_generation is not None
        written = asks(autoscaler) if ours else {}
        first = sized_first(autoscaler)
        for resource in filter(None, map(shares, autoscaler.spec.metrics)):
            if resource in written and resource in first:
                found[resource] = max(found.get(resource, (0, "")), (written[resource].size, autoscaler.metadata.name))
            else:
                free.add(resource)
    return {resource: size for resource, size in found.items() if resource not in free}


def split(
    total: int,
    weights: Mapping[str, int],
    resource: str,
    policy: PodResourcePolicy | None,
    most: ResourceList = NO_AMOUNTS,
) -> dict[str, int]:
    """Thousandths of each container: in proportion to the weights, within its policy. What one may not have goes to the
    others."""
    shares_of: dict[str, int] = {}
    free = {name: max(weight, 1) for name, weight in weights.items()}
    while free:
        whole = sum(free.values())
        wanted = {name: max(total * weight // whole, 1) for name, weight in free.items()}
        allowed = {name: _within(name, amount, resource, policy, most) for name, amount in wanted.items()}
        beyond = [name for name in free if allowed[name] < wanted[name]]
        for name in beyond or allowed:
            shares_of[name] = allowed[name]
            total -= allowed[name]
            del free[name]
    return shares_of


def _within(name: str, milli: int, resource: str, policy: PodResourcePolicy | None, most: ResourceList) -> int:
    own = policy_of(policy, name)
    least = own.min_allowed if own else NO_AMOUNTS
    return capped(
        resource, Quantity(milli * _MILLI), least, {**most, **own.max_allowed} if own else most
    ).amount.milli()
