"""Metrics of the updater, under upstream's names (V-121)."""

from podfit.api.autoscaling_k8s.v1 import VerticalPodAutoscaler
from podfit.core.clock import Clock
from podfit.decide.autoscaling.policies import size_log2, stored_mode
from podfit.net.metrics import Metrics
from podfit.vpa.step_latency import StepLatency

_SIZE, _SIZE_MODE = ("vpa_size_log2",), ("vpa_size_log2", "update_mode")
_OF_VPA = ("vpa_name", "vpa_namespace")
EVICTION, EVICTION_WAIT = "EvictionError", "EvictionRateLimiterWaitFailed"
IN_PLACE, IN_PLACE_WAIT = "InPlaceUpdateError", "InPlaceUpdateRateLimiterWaitFailed"
INFEASIBLE, UNBOOST = "InPlaceUpdateInfeasible", "UnboostError"
_EVICTION_REASONS, _IN_PLACE_REASONS = (EVICTION, EVICTION_WAIT), (IN_PLACE, IN_PLACE_WAIT, INFEASIBLE, UNBOOST)


class UpdaterMetrics:
    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        def name(of: str) -> str:
            return f"vpa_updater_{of}"

        self.controlled = metrics.gauge(name("controlled_pods_total"), "Pods that VPAs control.", _SIZE_MODE)
        self.evictable = metrics.gauge(name("evictable_pods_total"), "Pods that are to be evicted.", _SIZE_MODE)
        self.with_evictable = metrics.gauge(
            name("vpas_with_evictable_pods_total"), "VPAs with pods that are to be evicted.", _SIZE_MODE
        )
        self.with_evicted = metrics.gauge(
            name("vpas_with_evicted_pods_total"), "VPAs with pods that were evicted.", _SIZE_MODE
        )
        self.resizable = metrics.gauge(name("in_place_updatable_pods_total"), "Pods that are to be resized.", _SIZE)
        self.with_resizable = metrics.gauge(
            name("vpas_with_in_place_updatable_pods_total"), "VPAs with pods that are to be resized.", _SIZE
        )
        self.with_resized = metrics.gauge(
            name("vpas_with_in_place_updated_pods_total"), "VPAs with pods that were resized.", _SIZE
        )
        self.evicted = metrics.counter(name("evicted_pods_total"), "Pods evicted.", (*_SIZE_MODE, *_OF_VPA))
        self.eviction_failed = metrics.counter(
            name("failed_eviction_attempts_total"), "Evictions that failed.", (*_SIZE_MODE, *_OF_VPA, "reason")
        )
        self.resized = metrics.counter(
            name("in_place_updated_pods_total"), "Pods resized in place.", (*_SIZE, *_OF_VPA)
        )
        self.resize_failed = metrics.counter(
            name("failed_in_place_update_attempts_total"), "Resizes that failed.", (*_SIZE, *_OF_VPA, "reason")
        )
        self.skipped = metrics.counter(
            name("in_place_infeasible_skip_pods_total"),
            "Resizes left out since the node could never give as much.",
            (*_SIZE, *_OF_VPA),
        )
        self.step = StepLatency(metrics, clock, "updater", "Seconds of a step of the loop.")

    def new_pass(self) -> None:
        """Gauges tell of the pass that runs."""
        for gauge in (
            self.controlled,
            self.evictable,
            self.with_evictable,
            self.with_evicted,
            self.resizable,
            self.with_resizable,
            self.with_resized,
        ):
            gauge.clear()

    def begin(self, vpa: VerticalPodAutoscaler, pods: int, *, looks: bool = False) -> "VpaMetrics":
        """Counters of a VPA with pods are there from its first pass, at 0. `looks`: between two passes, of which gauges
        do not tell.
        """
        found = VpaMetrics(self, vpa, pods, looks=looks)
        if pods:
            found.exist()
        if not looks:
            self.controlled.labels(found.size, found.mode).inc(pods)
        return found


class VpaMetrics:
    """Those of one VPA in one pass, or in a look between two."""

    def __init__(self, metrics: UpdaterMetrics, vpa: VerticalPodAutoscaler, pods: int, *, looks: bool) -> None:
        self._all, self.size, self.mode = metrics, str(size_log2(pods)), stored_mode(vpa)
        self._vpa = vpa.metadata.name, vpa.metadata.namespace
        self._evicted = self._resized = False
        self._looks = looks
        self.moved = False
        """Whether a pod was resized to what is recommended."""

    def exist(self) -> None:
        self._all.evicted.labels(self.size, self.mode, *self._vpa)
        self._all.resized.labels(self.size, *self._vpa)
        self._all.skipped.labels(self.size, *self._vpa)
        for reason in _EVICTION_REASONS:
            self._all.eviction_failed.labels(self.size, self.mode, *self._vpa, reason)
        for reason in _IN_PLACE_REASONS:
            self._all.resize_failed.labels(self.size, *self._vpa, reason)

    def evicted(self) -> None:
        self._all.evicted.labels(self.size, self.mode, *self._vpa).inc()
        self._evicted = True

    def resized(self, *, unboosted: bool) -> None:
        self._all.resized.labels(self.size, *self._vpa).inc()
        self._resized = True
        self.moved = self.moved or not unboosted

    def eviction_failed(self, reason: str) -> None:
        self._all.eviction_failed.labels(self.size, self.mode, *self._vpa, reason).inc()

    def resize_failed(self, reason: str) -> None:
        self._all.resize_failed.labels(self.size, *self._vpa, reason).inc()

    def skipped(self) -> None:
        self._all.skipped.labels(self.size, *self._vpa).inc()

    def end(self, evictable: int, resizable: int) -> None:
        if self._looks:
            return
        metrics, size, mode = self._all, self.size, self.mode
        metrics.evictable.labels(size, mode).inc(evictable)
        metrics.resizable.labels(size).inc(resizable)
        metrics.with_evictable.labels(size, mode).inc(bool(evictable))
        metrics.with_resizable.labels(size).inc(bool(resizable))
        metrics.with_evicted.labels(size, mode).inc(self._evicted)
        metrics.with_resized.labels(size).inc(self._resized)
