"""Metrics of scheduling, under upstream's names."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import product

from podfit.decide.placement.view import FILTERS
from podfit.net.metrics import Metrics

_SECONDS = tuple(0.001 * 2**exponent for exponent in range(15))
_SLI = tuple(0.01 * 2**exponent for exponent in range(20))
_COUNTS = (1.0, 2.0, 4.0, 8.0, 16.0)
_VICTIMS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


class SchedulerMetrics:
    """The gauges read the queue when they are scraped, so they cannot drift from it."""

    def __init__(
        self,
        metrics: Metrics,
        pending: Callable[[], dict[str, int]],
        refused: Callable[[str, str], int],
        profiles: Iterable[str],
    ) -> None:
        queues = metrics.gauge("scheduler_pending_pods", "Pods without a node, by where they wait.", ("queue",))
        for name in pending():
            queues.labels(name).set_function(partial(_one, pending, name))
        self._attempts = metrics.counter(
            "scheduler_schedule_attempts_total", "Attempts to place a pod, by result.", ("result", "profile")
        )
        self._attempt_seconds = metrics.histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Seconds that one attempt took, binding included.",
            ("result", "profile"),
            buckets=_SECONDS,
        )
        self._placed_after = metrics.histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Seconds from a pod's arrival until it was placed.",
            ("attempts",),
            buckets=_SLI,
        )
        self._tries = metrics.histogram(
            "scheduler_pod_scheduling_attempts", "Attempts that it took to place a pod.", buckets=_COUNTS
        )
        self.preemptions = metrics.counter(
            "scheduler_preemption_attempts_total", "Attempts to make room by preemption."
        )
        self.victims = metrics.histogram(
            "scheduler_preemption_victims", "Pods that one preemption chose to end.", buckets=_VICTIMS
        )
        refusing = metrics.gauge(
            "scheduler_unschedulable_pods",
            "Pods that wait, by the filter that refused them somewhere.",
            ("plugin", "profile"),
        )
        for name, profile in product(FILTERS, profiles):
            refusing.labels(name, profile).set_function(partial(refused, name, profile))

    def attempt(self, result: str, profile: str, seconds: float) -> None:
        """`result` is scheduled, unschedulable or error."""
        self._attempts.labels(result, profile).inc()
        self._attempt_seconds.labels(result, profile).observe(seconds)

    def placed(self, seconds: float, tries: int) -> None:
        self._placed_after.labels(str(min(tries, 16))).observe(seconds)
        self._tries.observe(tries)


def _one(pending: Callable[[], dict[str, int]], name: str) -> int:
    return pending()[name]
