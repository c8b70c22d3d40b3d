"""How many replicas a metric asks for.

Amounts are whole thousandths, divided towards zero; ratios are doubles, in upstream's order of operations, since the
ends of the tolerance belong to it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import msgspec
from msgspec.structs import replace

from podfit.api.core.v1.pods.types import Pod
from podfit.decide.autoscaling.horizontal.model import MOST, MOST_LONG, Anchor, Samples, Settings, Tolerance, Unmeasured
from podfit.decide.autoscaling.horizontal.pods import (
    NO_PODS,
    Sorted,
    as_granted,
    requests_of,
    running_and_ready,
    sort_pods,
)

UNREADY = "did not receive metrics for targeted pods (pods might be unready)"
NO_SHARE = -(2**63)
UNKNOWN = "no metrics returned matched known pods"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What a metric is measured against: the pods that are selected, and how many the scale says there are."""

    pods: Sequence[Pod]
    current: int
    reported: int = 0
    """The replicas in the scale's status."""
    tolerance: Tolerance
    settings: Settings
    now: float
    beside: int = 0
    """Replicas that there are beside the pods: the metric says nothing of them, and they stay."""
    anchor: Anchor | None = None
    """Of a utilization whose target follows the request."""


class Followed(msgspec.Struct, frozen=True):
    """A target that follows the request: what it was, in percent, and what usage is to it."""

    percent: float
    ratio: float


class Proposal(msgspec.Struct, frozen=True):
    """`usage` in thousandths: of a pod, or of all for a metric with a whole value; `utilization` in percent. `left_out`
    are pods that request nothing of the resource."""

    replicas: int
    usage: int
    utilization: int | None = None
    left_out: tuple[str, ...] = ()
    followed: Followed | None = None


class _Ratio(msgspec.Struct, frozen=True):
    """`percent` is a target that followed the request; above the ratio `whole` pods use more than they request."""

    ratio: float
    usage: int
    utilization: int | None = None
    percent: float | None = None
    whole: float = math.inf

    def within(self, tolerance: Tolerance) -> bool:
        return tolerance.holds(self.ratio) and self.ratio <= self.whole


def by_utilization(target: Target, samples: Samples, resource: str, percent: int, container: str = "") -> Proposal:
    """Raises Unmeasured."""
    groups, counted = _counted(target, samples, resource)
    compatible = target.settings.upstream_compatible
    pods = target.pods if compatible else map(as_granted, target.pods)
    requests, lacking = requests_of(pods, resource, container, target.settings.gates)
    if lacking and (compatible or not requests):
        raise next(iter(lacking.values()))
    left_out: tuple[str, ...] = ()
    if lacking:
        left_out = tuple(sorted(lacking.keys() - groups.ignored))
        rest = [pod for pod in target.pods if pod.metadata.name not in lacking]
        target = replace(target, pods=rest, beside=len(left_out))
        measured = {name: sample for name, sample in samples.items() if name not in lacking}
        groups, counted = _counted(target, measured, resource)
    fallback = max(100, percent)
    proposal = _proposed(
        target,
        groups,
        counted,
        lambda counted: _utilization(counted, requests, percent, target.anchor),
        lambda name: requests[name] * fallback // 100,
    )
    return replace(proposal, left_out=left_out) if left_out else proposal


def by_average(target: Target, samples: Samples, amount: int, resource: str = "") -> Proposal:
    """Replicas by a resource, or by a metric of pods. Raises Unmeasured."""
    groups, counted = _counted(target, samples, resource)
    return _proposed(target, groups, counted, lambda counted: _average(counted, amount), lambda _: amount)


def by_value(target: Target, usage: int, amount: int) -> Proposal:
    """Replicas by an object or an external metric as a whole. Raises Unmeasured."""
    ratio = usage / amount
    if target.current == 0:
        return Proposal(_whole(ratio), usage)
    if target.tolerance.holds(ratio):
        return Proposal(target.current, usage)
    return Proposal(_whole(ratio * running_and_ready(target.pods)), usage)


def by_share(target: Target, usage: int, amount: int) -> Proposal:
    """Replicas by an object or an external metric for each replica. Without any replica there is no share, and what is
    told of it is what upstream makes of a division by zero."""
    if target.reported == 0:
        return Proposal(_whole(usage / amount), NO_SHARE)
    share = math.ceil(usage / target.reported)
    if target.tolerance.holds(usage / (amount * target.reported)):
        return Proposal(target.reported, share)
    return Proposal(_whole(usage / amount), share)


def total(values: Sequence[int]) -> int:
    """What an external metric amounts to; it ends at the largest number of 64 bits."""
    return min(sum(values), MOST_LONG)


def _counted(target: Target, samples: Samples, resource: str) -> tuple[Sorted, dict[str, int]]:
    """The pods in groups, and what was measured of those that count."""
    if not target.pods:
        raise Unmeasured(NO_PODS)
    groups = sort_pods(target.pods, samples, resource, target.settings, target.now)
    left_out = groups.ignored | groups.unready
    counted = {name: sample.value for name, sample in samples.items() if name not in left_out}
    if not counted:
        raise Unmeasured(UNREADY)
    return groups, counted


def _proposed(
    target: Target,
    groups: Sorted,
    counted: Mapping[str, int],
    measure: Callable[[Mapping[str, int]], _Ratio],
    assumed: Callable[[str], int],
) -> Proposal:
    """`assumed` is what a pod without a sample is taken for when it may be one too many."""
    first = measure(counted)
    followed = Followed(first.percent, first.ratio) if first.percent is not None else None

    def propose(replicas: int) -> Proposal:
        return Proposal(replicas, first.usage, first.utilization, followed=followed)

    counts_unready = bool(groups.unready) and first.ratio > 1.0
    if not counts_unready and not groups.missing:
        within = first.within(target.tolerance)
        return propose(target.current if within else _whole(first.ratio * groups.ready) + target.beside)
    counted = dict(counted)
    if first.ratio < 1.0:
        counted |= {name: assumed(name) for name in groups.missing}
    elif first.ratio > 1.0:
        counted |= dict.fromkeys(groups.missing, 0)
    if counts_unready:
        counted |= dict.fromkeys(groups.unready, 0)
    again = measure(counted)
    ratio = again.ratio
    turned = ratio > 1.0 if first.ratio < 1.0 else first.ratio > 1.0 and ratio < 1.0
    if turned or again.within(target.tolerance):
        return propose(target.current)
    replicas = _whole(ratio * len(counted)) + target.beside
    backwards = replicas > target.current if ratio < 1.0 else ratio > 1.0 and replicas < target.current
    return propose(target.current if backwards else replicas)


def _utilization(
    counted: Mapping[str, int], requests: Mapping[str, int], percent: int, anchor: Anchor | None
) -> _Ratio:
    known = [name for name in counted if name in requests]
    used, requested = sum(counted[name] for name in known), sum(requests[name] for name in known)
    if requested == 0:
        raise Unmeasured(UNKNOWN)
    utilization, usage = min(_divided(used * 100, requested), MOST), _divided(used, len(known))
    if anchor is None:
        return _Ratio(utilization / percent, usage, utilization)
    share = anchor.at(requested, len(known))
    ratio, whole = Fraction(used * 100, requested) / share, 100 / share
    return _Ratio(float(ratio), usage, utilization, percent=float(share), whole=float(whole))


def _average(counted: Mapping[str, int], amount: int) -> _Ratio:
    usage = _divided(sum(counted.values()), len(counted))
    return _Ratio(usage / amount, usage)


def _divided(dividend: int, divisor: int) -> int:
    """Towards zero."""
    quotient = abs(dividend) // divisor
    return quotient if dividend >= 0 else -quotient


def _whole(replicas: float) -> int:
    return max(min(math.ceil(replicas), MOST), -MOST)
