"""Metrics of the cluster autoscaler, under upstream's names."""

from podfit.decide.capacity.look import DeleteInstances, Effect, Look, LowerTarget, MovePod, Removed, Report, ScaledUp
from podfit.decide.capacity.status import HEALTHY, AutoscalerStatus
from podfit.net.metrics import Metrics

PREFIX = "cluster_autoscaler_"
STATES = ("ready", "unready", "notStarted", "longUnregistered", "unregistered")
BUCKETS = (0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class AutoscalerMetrics:
    def __init__(self, metrics: Metrics) -> None:
        self._safe = metrics.gauge(f"{PREFIX}cluster_safe_to_autoscale", "Whether the cluster is well enough.")
        self._nodes = metrics.gauge(f"{PREFIX}nodes_count", "Nodes, by state.", ("state",))
        self._groups = metrics.gauge(f"{PREFIX}node_groups_count", "Node groups.", ("node_group_type",))
        self._waiting = metrics.gauge(
            f"{PREFIX}unschedulable_pods_count", "Pods for which nodes are wanted.", ("type",)
        )
        self._unneeded = metrics.gauge(f"{PREFIX}unneeded_nodes_count", "Nodes that are not needed.")
        self._up = metrics.counter(f"{PREFIX}scaled_up_nodes_total", "Nodes asked for.")
        self._failed = metrics.counter(f"{PREFIX}failed_scale_ups_total", "Scale-ups that failed.", ("reason",))
        self._down = metrics.counter(f"{PREFIX}scaled_down_nodes_total", "Nodes removed.", ("reason",))
        self._errors = metrics.counter(f"{PREFIX}errors_total", "Looks that ended in an error.", ("type",))
        self._moves = metrics.counter(f"{PREFIX}moved_pods_total", "Pods evicted for waiting resizes.")
        self._seconds = metrics.histogram(
            f"{PREFIX}function_duration_seconds", "Seconds of a step of a look.", ("function",), buckets=BUCKETS
        )

    def looked(self, look: Look, seconds: float) -> None:
        self._groups.labels("autoprovisioned").set(0)
        self._groups.labels("notAutoprovisioned").set(len(look.groups))
        self._seconds.labels("main").observe(seconds)
        if look.problem:
            self._errors.labels("cloudProviderError").inc()

    def did(self, effect: Effect) -> None:
        match effect:
            case Report():
                self._reported(effect)
            case DeleteInstances():
                self._down.labels("unready").inc(len(effect.ids))
            case LowerTarget():
                self._failed.labels("timeout").inc()
            case MovePod():
                self._moves.inc()
            case _:
                pass

    def _reported(self, report: Report) -> None:
        status: AutoscalerStatus = report.status
        if status.cluster_wide is None:
            return
        wide = status.cluster_wide
        counts = wide.health.node_counts
        self._safe.set(wide.health.status == HEALTHY)
        registered = counts.registered
        numbers = (
            *(registered.ready, registered.unready.total, registered.not_started),
            *(counts.long_unregistered, counts.unregistered),
        )
        for state, number in zip(STATES, numbers, strict=True):
            self._nodes.labels(state).set(number)
        self._unneeded.set(wide.scale_down.candidates or 0)
        pending = [pod for pod in report.outlook.pods if not pod.resize]
        self._waiting.labels("unschedulable").set(len(pending))
        self._waiting.labels("resize").set(len(report.outlook.pods) - len(pending))

    def scaled_up(self, outcome: ScaledUp) -> None:
        for increase in outcome.scale_up.increases:
            if increase.group.id in outcome.errors:
                self._failed.labels("cloudProviderError").inc()
            else:
                self._up.inc(increase.by)

    def removed(self, outcome: Removed, *, drained: bool) -> None:
        if not outcome.error:
            self._down.labels("underutilized" if drained else "empty").inc()
