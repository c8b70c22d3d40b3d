"""Metrics of webhook calls. They exist from `declare` on, as those of the whole server do."""

from typing import TYPE_CHECKING

from podfit.net.metrics import Metrics

if TYPE_CHECKING:
    from prometheus_client import Counter, Histogram

_BUCKETS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0)
_LARGEST_CODE = 600  # a webhook may name any code; beyond this they are one series
_LABELS = ("name", "type", "operation")


class WebhookMetrics:
    def __init__(self) -> None:
        self._calls: Counter | None = None
        self._seconds: Histogram | None = None

    def declare(self, metrics: Metrics) -> None:
        self._calls = metrics.counter(
            "apiserver_admission_webhook_request_total",
            "Calls of admission webhooks by outcome.",
            (*_LABELS, "code", "rejected"),
        )
        self._seconds = metrics.histogram(
            "apiserver_admission_webhook_admission_duration_seconds",
            "How long admission webhooks took.",
            (*_LABELS, "rejected"),
            buckets=_BUCKETS,
        )

    def called(self, name: str, sort: str, operation: str, *, code: int, rejected: bool, seconds: float) -> None:
        """One call; `code` is 200 for an answer that lets the write pass, else the refusal's."""
        if self._calls is None or self._seconds is None:
            return
        word = str(rejected).lower()
        self._calls.labels(name, sort, operation, str(min(code, _LARGEST_CODE)), word).inc()
        self._seconds.labels(name, sort, operation, word).observe(seconds)
