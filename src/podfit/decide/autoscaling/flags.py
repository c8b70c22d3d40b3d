"""The recommender's options with upstream's names and defaults. Times are seconds, amounts millicores and bytes."""

from typing import Annotated, TypeAlias

import msgspec

from podfit.core.options import AT_LEAST_0, AT_LEAST_1, DURATION, POSITIVE, SHARE, Option, Part, Unit
from podfit.core.quantity import Quantity

_MI = 1024 * 1024


def _amount(text: str) -> Quantity | None:
    """None for nothing. Raises ValueError."""
    return Quantity.parse(text) if text else None


AMOUNT = Unit(name="quantity", read=_amount)
_MOST = "Where the policy has no maximum."
VpaNamespace: TypeAlias = Annotated[str, Option("Only this namespace.", flag="vpa-object-namespace")]
IgnoredNamespaces: TypeAlias = Annotated[
    frozenset[str],
    Option(
        "All but these, separated by commas.",
        flag="ignored-vpa-object-namespaces",
        unit=Unit(name="list", read=lambda text: frozenset(filter(None, text.split(","))), text=",".join),
        usual="none",
    ),
]


class OomFlags(msgspec.Struct, frozen=True, kw_only=True):
    """How far memory is raised after a container ran out of it: the larger of both."""

    bump_up_ratio: Annotated[
        float, Option("By what memory is raised after an OOM.", flag="oom-bump-up-ratio", bound=AT_LEAST_1)
    ] = 1.2
    min_bump_up_bytes: Annotated[
        int, Option("By how much it is raised at least.", flag="oom-min-bump-up-bytes", bound=AT_LEAST_0)
    ] = 100 * _MI


class MemoryFlags(msgspec.Struct, frozen=True, kw_only=True):
    """One peak is kept for each interval; an aggregate lives for `count` intervals after its last sample."""

    interval: Annotated[
        float, Option("Of which the peak counts.", flag="memory-aggregation-interval", unit=DURATION, bound=POSITIVE)
    ] = 86_400.0
    count: Annotated[
        int, Option("After so many, what is known expires.", flag="memory-aggregation-interval-count", bound=AT_LEAST_1)
    ] = 8


class ResourceFlags(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles as shares of 1, and the interval in which confidence becomes 1."""

    target: Annotated[float, Option("Of usage, for the target.", flag="target-{}-percentile", bound=SHARE)] = 0.9
    lower: Annotated[
        float, Option("Of usage, for the lower bound.", flag="recommendation-lower-bound-{}-percentile", bound=SHARE)
    ] = 0.5
    upper: Annotated[
        float, Option("Of usage, for the upper bound.", flag="recommendation-upper-bound-{}-percentile", bound=SHARE)
    ] = 0.95
    confidence_interval: Annotated[
        float,
        Option(
            "In which confidence becomes 1, and the bounds come near.",
            flag="confidence-interval-{}",
            unit=DURATION,
            bound=POSITIVE,
        ),
    ] = 86_400.0


class EstimatorFlags(msgspec.Struct, frozen=True, kw_only=True):
    cpu: Annotated[ResourceFlags, Part(name="cpu")] = ResourceFlags()
    memory: Annotated[ResourceFlags, Part(name="memory")] = ResourceFlags()
    margin: Annotated[
        float, Option("What is put on top, as a share.", flag="recommendation-margin-fraction", bound=AT_LEAST_0)
    ] = 0.15
    min_cpu_millicores: Annotated[
        float, Option("The least CPU of a pod.", flag="pod-recommendation-min-cpu-millicores", bound=AT_LEAST_0)
    ] = 25.0
    min_memory_mb: Annotated[
        float, Option("The least memory of a pod, in MiB.", flag="pod-recommendation-min-memory-mb", bound=AT_LEAST_0)
    ] = 250.0


class RenderFlags(msgspec.Struct, frozen=True, kw_only=True):
    """How numbers become what is written; `max_allowed_*` bound containers whose policy has no maximum."""

    round_cpu_millicores: Annotated[int, Option("CPU is rounded up to a multiple of it.", bound=AT_LEAST_1)] = 1
    round_memory_bytes: Annotated[int, Option("Memory is rounded up to a multiple of it.", bound=AT_LEAST_1)] = 1
    humanize_memory: Annotated[bool, Option("Memory with two decimals of a unit (deprecated).")] = False
    integer_cpu: Annotated[
        bool, Option("Whole cores where a VPA's annotation asks.", flag="cpu-integer-post-processor-enabled")
    ] = False
    max_allowed_cpu: Annotated[
        Quantity | None, Option(_MOST, flag="container-recommendation-max-allowed-cpu", unit=AMOUNT)
    ] = None
    max_allowed_memory: Annotated[
        Quantity | None, Option(_MOST, flag="container-recommendation-max-allowed-memory", unit=AMOUNT)
    ] = None


class RecommenderFlags(msgspec.Struct, frozen=True, kw_only=True):
    estimator: Annotated[EstimatorFlags, Part()] = EstimatorFlags()
    render: Annotated[RenderFlags, Part()] = RenderFlags()
    oom: Annotated[OomFlags, Part()] = OomFlags()
    memory: Annotated[MemoryFlags, Part()] = MemoryFlags()
    cpu_half_life: Annotated[
        float,
        Option(
            "After which a sample counts half.", flag="cpu-histogram-decay-half-life", unit=DURATION, bound=POSITIVE
        ),
    ] = 86_400.0
    memory_half_life: Annotated[
        float,
        Option(
            "After which a sample counts half.", flag="memory-histogram-decay-half-life", unit=DURATION, bound=POSITIVE
        ),
    ] = 86_400.0
    fine_buckets: Annotated[
        bool, Option("Histograms begin at 1m and 1M, for small workloads; upstream refuses their checkpoints.")
    ] = False
    """Histograms begin at a tenth of upstream's: one millicore, one megabyte."""


DEFAULT_FLAGS = RecommenderFlags()
