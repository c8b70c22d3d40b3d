"""Metrics of the quality of recommendations, under upstream's names; they are read when they are scraped."""

from collections.abc import Iterator

from podfit.core.resources import CPU, MEMORY
from podfit.decide.autoscaling.quality import Quality
from podfit.net.metrics import Metrics, Series

_USAGE = ("update_mode", "resource", "is_oom")
_MODE, _MISSING, _OOM = "update_mode", "recommendation_missing", "is_oom"


def expose(metrics: Metrics, quality: Quality) -> None:
    def missing() -> Iterator[Series]:
        yield from quality.missing.items()

    metrics.distributed(
        _name("usage_recommendation_relative_diffs"),
        "Usage less what was recommended, as a share of that.",
        _USAGE,
        quality.differences.read,
    )
    metrics.collected(
        _name("usage_sample_missing_recommendation_count"),
        "Samples of containers that nothing was recommended for.",
        _USAGE,
        missing,
        type_="counter",
    )
    metrics.distributed(
        _name("relative_recommendation_changes"),
        "What a recommendation changed by, as a share of the one before.",
        (_MODE, "resource", "vpa_size_log2"),
        quality.changes.read,
    )
    for resource, prefix, unit, more in ((CPU, "cpu", "cores", ()), (MEMORY, "mem", "bytes", (_OOM,))):
        metrics.distributed(
            _name(f"{prefix}_recommendations_{unit}"),
            "What was recommended for each sample of usage.",
            (_MODE, *more),
            quality.recommendations[resource].read,
        )
        labels = (_MODE, _MISSING, *more)
        metrics.distributed(
            _name(f"{prefix}_recommendation_over_usage_diffs_{unit}"),
            "By how much more was recommended than was used.",
            labels,
            quality.over[resource].read,
        )
        metrics.distributed(
            _name(f"{prefix}_recommendation_lower_equal_usage_diffs_{unit}"),
            "By how much more was used than was recommended.",
            labels,
            quality.lower[resource].read,
        )


def _name(of: str) -> str:
    return f"vpa_quality_{of}"
