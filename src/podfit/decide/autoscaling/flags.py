"""The recommender's flags with upstream's names and defaults. Times are seconds, amounts millicores and bytes."""

import msgspec

from podfit.core.quantity import Quantity

_MI = 1024 * 1024


class OomFlags(msgspec.Struct, frozen=True, kw_only=True):
    """How far memory is raised after a container ran out of it: the larger of both."""

    bump_up_ratio: float = 1.2
    min_bump_up_bytes: int = 100 * _MI


class MemoryFlags(msgspec.Struct, frozen=True, kw_only=True):
    """One peak is kept for each interval; an aggregate lives for `count` intervals after its last sample."""

    interval: float = 86_400.0
    count: int = 8


class ResourceFlags(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles as shares of 1, and the interval in which confidence becomes 1."""

    target: float = 0.9
    lower: float = 0.5
    upper: float = 0.95
    confidence_interval: float = 86_400.0


class EstimatorFlags(msgspec.Struct, frozen=True, kw_only=True):
    cpu: ResourceFlags = ResourceFlags()
    memory: ResourceFlags = ResourceFlags()
    margin: float = 0.15
    min_cpu_millicores: float = 25.0
    min_memory_mb: float = 250.0


class RenderFlags(msgspec.Struct, frozen=True, kw_only=True):
    """How numbers become what is written; `max_allowed_*` bound containers whose policy has no maximum."""

    round_cpu_millicores: int = 1
    round_memory_bytes: int = 1
    humanize_memory: bool = False
    integer_cpu: bool = False
    max_allowed_cpu: Quantity | None = None
    max_allowed_memory: Quantity | None = None


class RecommenderFlags(msgspec.Struct, frozen=True, kw_only=True):
    estimator: EstimatorFlags = EstimatorFlags()
    render: RenderFlags = RenderFlags()
    oom: OomFlags = OomFlags()
    memory: MemoryFlags = MemoryFlags()
    cpu_half_life: float = 86_400.0
    memory_half_life: float = 86_400.0
    fine_buckets: bool = False
    """Histograms begin at a tenth of upstream's: one millicore, one megabyte."""


DEFAULT_FLAGS = RecommenderFlags()
