"""Metrics of the recommender and of the quality of what it recommends, under upstream's names."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.core.clock import Clock
from podfit.core.resources import CPU, MEMORY
from podfit.decide.autoscaling.policies import stored_mode
from podfit.decide.autoscaling.quality import Quality
from podfit.decide.autoscaling.status import NO_PODS, PROVIDED, UNSUPPORTED
from podfit.net.metrics import Metrics, Series
from podfit.vpa.step_latency import StepLatency

_FIRST = (1, 2, 5, 7.5, 10, 20, 30, 40, 50, 60, 90, 120, 150, 180, 240, 300, 600, 900, 1800)
_LABELS = ("update_mode", "has_recommendation", "api", "matches_pods", "unsupported_config")


class RecommenderMetrics:
    """The gauges read what there is when they are scraped."""

    def __init__(
        self,
        metrics: Metrics,
        clock: Clock,
        vpas: Callable[[], Sequence[VerticalPodAutoscaler]],
        aggregates: Callable[[], int],
    ) -> None:
        self._vpas = vpas
        metrics.collected("vpa_recommender_vpa_objects_count", "VPA objects, by what they are.", _LABELS, self._objects)
        metrics.gauge("vpa_recommender_aggregate_container_states_count", "Aggregates of containers.").set_function(
            aggregates
        )
        self._first = metrics.histogram(
            "vpa_recommender_recommendation_latency_seconds",
            "Seconds from a VPA's creation to its first recommendation.",
            buckets=_FIRST,
        )
        self.step = StepLatency(metrics, clock, "recommender", "Seconds of a step of the loop.")
        self._answers = metrics.counter(
            "vpa_recommender_metric_server_responses", "Answers about usage.", ("is_error", "client_name")
        )

    def answered(self, *, error: bool) -> None:
        self._answers.labels(str(error).lower(), "recommender").inc()

    def recommended_first(self, seconds: float) -> None:
        self._first.observe(seconds)

    def _objects(self) -> Iterator[Series]:
        yield from Counter(map(_labels, self._vpas())).items()


def _labels(vpa: VerticalPodAutoscaler) -> tuple[str, ...]:
    said = {condition.type for condition in vpa.status.conditions if condition.status == "True"}
    return stored_mode(vpa), _text(PROVIDED in said), "v1", _text(NO_PODS not in said), _text(UNSUPPORTED in said)


def _text(answer: bool) -> str:
    return str(answer).lower()


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
