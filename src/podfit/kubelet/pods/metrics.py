"""Metrics of pods as a whole, under upstream's names."""

from podfit.net.metrics import Metrics

BUCKETS = (0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600)


class PodMetrics:
    def __init__(self, metrics: Metrics) -> None:
        self.start = metrics.histogram(
            "kubelet_pod_start_duration_seconds",
            "Seconds from kubelet seeing a pod for the first time to the pod starting to run",
            buckets=BUCKETS,
        )
        self.turn = metrics.histogram(
            "kubelet_pod_worker_duration_seconds",
            "Seconds that one turn of a pod worker took.",
            ("operation_type",),
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
        )
