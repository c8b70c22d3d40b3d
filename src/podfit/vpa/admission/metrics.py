"""Metrics of the admission controller, under upstream's names (V-121)."""

from podfit.core.clock import Clock
from podfit.net.metrics import Metrics
from podfit.vpa.step_latency import StepLatency

APPLIED, SKIPPED, FAILED = "applied", "skipped", "error"
_ANSWERS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30)


class AdmissionMetrics:
    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._pods = metrics.counter(
            "vpa_admission_controller_admission_pods_total",
            "Pods reviewed, by whether they were changed.",
            ("applied",),
        )
        self._answers = metrics.histogram(
            "vpa_admission_controller_admission_latency_seconds",
            "Seconds of a review.",
            ("status", "resource"),
            buckets=_ANSWERS,
        )
        self.step = StepLatency(metrics, clock, "admission_controller", "Seconds of a step of a review.")

    def reviewed(self, status: str, resource: str, seconds: float) -> None:
        self._answers.labels(status, resource).observe(seconds)

    def pod(self, *, applied: bool) -> None:
        self._pods.labels(str(applied).lower()).inc()
