"""The estimator: from histograms to target and bounds, for all containers in one pass, with every step kept for `why`.

    percentile ──× (1 + margin)──▶ ──× confidence──▶ ──at least the minimum──▶

Target, lower and upper bound go the same way with other percentiles; only bounds are moved by confidence, further away
from the target the less is known. Amounts are whole millicores and bytes (in doubles, exact up to 2^53), and every step
cuts fractions off. Confidence comes from CPU samples alone, for memory too.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec
import numpy as np

from podfit.decide.autoscaling.flags import EstimatorFlags, ResourceFlags
from podfit.decide.autoscaling.histograms import Floats, HistogramBank
from podfit.decide.autoscaling.model import LARGEST

Bound = Literal["target", "lower", "upper"]
BOUNDS: tuple[Bound, ...] = ("target", "lower", "upper")
MINUTE = 60.0
MEGABYTE = 1024 * 1024


class Overrides(msgspec.Struct, frozen=True):
    """What policies say of some containers (`policies.Override`), a row each: percentiles of targets, shares of 1, and
    the least that is allowed, in millicores and bytes. NaN where nothing is said.
    """

    target_cpu: Floats
    target_memory: Floats
    least_cpu: Floats
    least_memory: Floats


class Merged(msgspec.Struct, frozen=True):
    """What is known of some containers, a row each: histograms and the times and number of CPU samples.

    `parts` is how many containers of the VPA share the pod's minimum, `own` what their policies say.
    """

    cpu: HistogramBank
    memory: HistogramBank
    first: Floats
    last: Floats
    count: Floats
    parts: Floats
    own: Overrides


class BoundSteps(msgspec.Struct, frozen=True):
    """One bound of one resource, [containers] each: after the percentile (of `share`), the margin, confidence and the
    minimum.
    """

    share: Floats
    percentile: Floats
    margin: Floats
    confidence: Floats
    floor: Floats


class Estimates(msgspec.Struct, frozen=True):
    """Estimates by bound. `confidence_*` is how much is known, 1 after a day of minutes; `minimum_*` the least that
    each gets."""

    flags: EstimatorFlags
    cpu: dict[Bound, BoundSteps]
    memory: dict[Bound, BoundSteps]
    confidence_cpu: Floats
    confidence_memory: Floats
    minimum_cpu: Floats
    minimum_memory: Floats
    count: Floats
    own: Overrides


def estimate(known: Merged, flags: EstimatorFlags) -> Estimates:
    """V-027 to V-031."""
    own = known.own
    least_cpu = np.trunc(np.trunc(flags.min_cpu_millicores * 0.001 * 1000) * (1 / known.parts))
    least_memory = np.trunc(np.trunc(flags.min_memory_mb * MEGABYTE) * (1 / known.parts))
    least_cpu, least_memory = np.fmin(least_cpu, own.least_cpu), np.fmin(least_memory, own.least_memory)
    cpu, memory = _shares(flags.cpu, own.target_cpu), _shares(flags.memory, own.target_memory)
    confidence_cpu = confidence(known, flags.cpu.confidence_interval)
    confidence_memory = confidence(known, flags.memory.confidence_interval)
    return Estimates(
        flags,
        _chains(known.cpu, 1000.0, cpu, flags.margin, confidence_cpu, least_cpu),
        _chains(known.memory, 1.0, memory, flags.margin, confidence_memory, least_memory),
        confidence_cpu,
        confidence_memory,
        least_cpu,
        least_memory,
        known.count,
        own,
    )


def confidence(known: Merged, interval: float) -> Floats:
    """The smaller of the time between samples, in intervals, and of their number beside one each minute."""
    seen = known.count > 0
    lasted = np.subtract(known.last, known.first, out=np.zeros(len(known.count)), where=seen)
    found: Floats = np.minimum(lasted / interval, known.count / (interval / MINUTE))
    return found


def _shares(flags: ResourceFlags, own: Floats) -> tuple[Floats, Floats, Floats]:
    """The shares of BOUNDS; `own` are those of targets, NaN for the flag's. Bounds are around their target."""
    return np.where(np.isnan(own), flags.target, own), np.fmin(flags.lower, own), np.fmax(flags.upper, own)


def _chains(
    bank: HistogramBank, unit: float, shares: tuple[Floats, Floats, Floats], margin: float, known: Floats, least: Floats
) -> dict[Bound, BoundSteps]:
    """`unit`: how many of what is counted make one of the histogram's; `shares` are those of BOUNDS."""
    percentiles = bank.percentiles(shares)
    return {
        bound: _chain(bound, shares[place], whole(percentiles[place] * unit), margin, known, least)
        for place, bound in enumerate(BOUNDS)
    }


def _chain(bound: Bound, share: Floats, base: Floats, margin: float, known: Floats, least: Floats) -> BoundSteps:
    wider = base + np.trunc(base * margin)
    with np.errstate(invalid="ignore"):
        moved = wider if bound == "target" else whole(wider * multiplier(bound, known))
    return BoundSteps(share, base, wider, moved, np.maximum(moved, least))


def multiplier(bound: Bound, known: Floats) -> Floats:
    """The factor by which confidence moves a bound: 0 and infinity when nothing is known."""
    with np.errstate(divide="ignore"):
        factor, power = (0.001, -2.0) if bound == "lower" else (1.0, 1.0)
        found: Floats = np.power(1 + factor / known, power)
    return found


def whole(amounts: Floats) -> Floats:
    """Without fractions, at most LARGEST; what is no number (nothing times infinity) is nothing."""
    found: Floats = np.minimum(np.fmax(np.trunc(amounts), 0.0), LARGEST)
    return found


class EstimationStep(msgspec.Struct, frozen=True):
    """What one step made of a number, and why: whole millicores or bytes."""

    name: str
    value: int
    reason: str


Resource = Literal["cpu", "memory"]
LATER = (
    "with samples that are in no checkpoint yet, such as the peak of the interval under way: worked out from the number"
)
OTHER_FLAGS = "by a recommender whose flags are not these"


def steps(
    estimates: Estimates, resource: Resource, bound: Bound, row: int, shown: int | None = None
) -> Iterator[EstimationStep]:
    """How one number came about, in order.

    `shown` is the target that a recommender wrote. It has samples that no checkpoint has yet, so where its number is
    another one, the percentile is worked out from it. Where none leads to it, one step says that its flags are others.
    """
    chain, place = (estimates.cpu if resource == "cpu" else estimates.memory)[bound], row
    later = shown is not None and int(chain.floor[row]) != shown
    if shown is not None and later:
        found = _chain_to(shown, estimates, resource, row)
        if found is None:
            yield EstimationStep("estimate", shown, OTHER_FLAGS)
            return
        chain, place = found, 0
    yield from _told(estimates, resource, bound, row, _Place(chain, place, later=later))


def _chain_to(target: int, estimates: Estimates, resource: Resource, row: int) -> BoundSteps | None:
    """The chain of another percentile that ends there; None when there is none."""
    margin, here = estimates.flags.margin, slice(row, row + 1)
    least = (estimates.minimum_cpu if resource == "cpu" else estimates.minimum_memory)[here]
    share = (estimates.cpu if resource == "cpu" else estimates.memory)["target"].share[here]
    near = int(target / (1 + margin))
    tried = (_chain("target", share, np.array([float(base)]), margin, np.ones(1), least) for base in (near, near + 1))
    return next((chain for chain in tried if chain.percentile[0] and chain.margin[0] == target == chain.floor[0]), None)


class _Place(msgspec.Struct, frozen=True):
    """The row of a chain. `later`: its percentile was worked out from its end."""

    chain: BoundSteps
    row: int
    later: bool


def _told(estimates: Estimates, resource: Resource, bound: Bound, row: int, where: _Place) -> Iterator[EstimationStep]:
    cpu, chain, place = resource == "cpu", where.chain, where.row
    known = estimates.confidence_cpu if cpu else estimates.confidence_memory
    least = (estimates.minimum_cpu if cpu else estimates.minimum_memory)[row]
    own = (estimates.own.least_cpu if cpu else estimates.own.least_memory)[row]
    share = float(chain.share[place]) * 100
    samples = f"{int(estimates.count[row]):,} CPU samples" if cpu else "the peaks of each interval"
    if not chain.percentile[place]:
        yield EstimationStep("percentile", 0, f"no samples of {resource}")
    else:
        said = LATER if where.later else f"{share:g} % of {samples} were not above it"
        yield EstimationStep("percentile", int(chain.percentile[place]), said)
    yield EstimationStep("margin", int(chain.margin[place]), f"{estimates.flags.margin * 100:g} % on top")
    if bound != "target":
        factor = float(multiplier(bound, known[row : row + 1])[0])
        yield EstimationStep(
            "confidence", int(chain.confidence[place]), f"times {factor:.3g} at a confidence of {known[row]:.3g}"
        )
    raised = chain.floor[place] > chain.confidence[place]
    which = (
        "minAllowed, which is below its share of the pod's minimum"
        if least == own
        else "its share of the pod's minimum"
    )
    reason = f"raised to {which}" if raised else f"{which} is {int(least)}"
    yield EstimationStep("minimum", int(chain.floor[place]), reason)
