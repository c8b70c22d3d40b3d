"""Renders the estimator's numbers as a VPA's recommendation.

numbers ─▶ controlled resources ─▶ rounding ─▶ whole cores ─▶ policy and the recommender's maximum
"""

from collections.abc import Mapping

import msgspec

from podfit.api.autoscaling_k8s.v1 import PodResourcePolicy, RecommendedContainerResources, RecommendedPodResources
from podfit.core.quantity import Quantity
from podfit.core.resources import CPU, MEMORY
from podfit.decide.autoscaling.capping import cap_to_policy, whole_cores
from podfit.decide.autoscaling.flags import RenderFlags
from podfit.decide.autoscaling.policies import RESOURCES, controlled_resources, policy_of

_UNITS = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


class Amounts(msgspec.Struct, frozen=True):
    """Whole millicores and bytes."""

    cpu: int
    memory: int


class Numbers(msgspec.Struct, frozen=True):
    """What is estimated for one container."""

    container: str
    target: Amounts
    lower: Amounts
    upper: Amounts


def recommendation(
    every: list[Numbers], policy: PodResourcePolicy | None, flags: RenderFlags, annotations: Mapping[str, str]
) -> RecommendedPodResources:
    """The recommendation of one VPA, sorted by container; `annotations` are the VPA's."""
    found = RecommendedPodResources(
        container_recommendations=tuple(
            _rendered(numbers, controlled_resources(policy_of(policy, numbers.container)), flags)
            for numbers in sorted(every, key=lambda candidate: candidate.container)
        )
    )
    if flags.integer_cpu:
        found = whole_cores(found, annotations)
    maxima = {CPU: flags.max_allowed_cpu, MEMORY: flags.max_allowed_memory}
    return cap_to_policy(found, policy, {name: most for name, most in maxima.items() if most is not None})


def _rendered(numbers: Numbers, names: tuple[str, ...], flags: RenderFlags) -> RecommendedContainerResources:
    target = _quantities(numbers.target, names, flags)
    return RecommendedContainerResources(
        container_name=numbers.container,
        target=target,
        lower_bound=_quantities(numbers.lower, names, flags),
        upper_bound=_quantities(numbers.upper, names, flags),
        uncapped_target=target,
    )


def _quantities(amounts: Amounts, names: tuple[str, ...], flags: RenderFlags) -> dict[str, Quantity]:
    cpu = Quantity.of_milli(_multiple(amounts.cpu, flags.round_cpu_millicores))
    memory = _multiple(amounts.memory, flags.round_memory_bytes)
    both = {CPU: cpu, MEMORY: humanized(memory) if flags.humanize_memory else Quantity.of_bytes(memory)}
    return both if names == RESOURCES else {name: amount for name, amount in both.items() if name in names}


def _multiple(amount: int, of: int) -> int:
    """Rounded up."""
    return -(-amount // of) * of


def humanized(amount: int) -> Quantity:
    """The amount with two decimals of the largest unit that it reaches, so that it may become smaller."""
    unit, size = next(((unit, size) for unit, size in _UNITS if amount >= size), ("", 1))
    return Quantity.parse(f"{amount / size:.2f}{unit}" if unit else str(amount))
