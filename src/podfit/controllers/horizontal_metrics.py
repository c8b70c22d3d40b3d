"""Metrics of the horizontal pod autoscaler, under upstream's names."""

from collections.abc import Callable

from podfit.controllers.base import Key
from podfit.decide.autoscaling.horizontal.model import Outcome
from podfit.net.metrics import Metrics

_PREFIX = "horizontal_pod_autoscaler_controller_"
_SECONDS = tuple(0.001 * 2**exponent for exponent in range(15))


class HorizontalMetrics:
    def __init__(self, metrics: Metrics, count: Callable[[], int]) -> None:
        self._passes = metrics.counter(
            f"{_PREFIX}reconciliations_total", "Passes over an autoscaler.", ("action", "error")
        )
        self._seconds = metrics.histogram(
            f"{_PREFIX}reconciliation_duration_seconds",
            "Seconds that a pass took.",
            ("action", "error"),
            buckets=_SECONDS,
        )
        self._computed = metrics.counter(
            f"{_PREFIX}metric_computation_total",
            "Metrics that a count of replicas was computed from.",
            ("action", "error", "metric_type"),
        )
        self._desired = metrics.gauge(
            f"{_PREFIX}desired_replicas", "The replicas that an autoscaler wants.", ("namespace", "hpa_name")
        )
        metrics.gauge(f"{_PREFIX}num_horizontal_pod_autoscalers", "Autoscalers that there are.").set_function(count)

    def observe(self, key: Key, outcome: Outcome, seconds: float) -> None:
        for seen in outcome.observed:
            if seen.type:
                self._computed.labels(seen.action, seen.error, seen.type).inc()
            else:
                self._passes.labels(seen.action, seen.error).inc()
                self._seconds.labels(seen.action, seen.error).observe(seconds)
        if outcome.desired is not None:
            self._desired.labels(*key).set(outcome.desired)
