"""Metrics of resizes, under upstream's names (spec section 8)."""

from collections.abc import Mapping
from functools import partial

from podfit.api.core.pods import Pod
from podfit.core.features import FeatureGates
from podfit.core.quantity import ZERO, Quantity
from podfit.decide.overlay import resizable
from podfit.kubelet.allocation.conditions import DEFERRED, IN_PROGRESS, INFEASIBLE, PENDING, Conditions
from podfit.net.metrics import Metrics


class ResizeMetrics:
    """The gauges read the conditions when they are scraped, so they cannot drift from them (R-187)."""

    def __init__(self, metrics: Metrics, conditions: Conditions) -> None:
        self._requested = metrics.counter(
            "kubelet_container_requested_resizes_total", "Requested resizes, counted by container.",
            ("resource", "requirement", "operation"))  # fmt: skip
        self.infeasible = metrics.counter(
            "kubelet_pod_infeasible_resizes_total", "Resizes found infeasible.", ("reason_detail",))
        self.deferred_accepted = metrics.counter(
            "kubelet_pod_deferred_accepted_resizes_total", "Resizes accepted after a deferral.", ("retry_trigger",))
        self.preemptions = metrics.gauge(  # a gauge, for the library would add `_total` to a counter's name
            "kubelet_preemptions", "Pods ended for a critical pod, by the resource that was short first.",
            ("preemption_signal",))
        pending = metrics.gauge("kubelet_pod_pending_resizes", "Pods with a pending resize.", ("reason",))
        for reason in (DEFERRED, INFEASIBLE):
            pending.labels(reason.lower()).set_function(partial(conditions.count, PENDING, reason))
        in_progress = metrics.gauge("kubelet_pod_in_progress_resizes", "Pods with a resize in progress.")
        in_progress.set_function(partial(conditions.count, IN_PROGRESS))

    def requested(self, old: Pod, new: Pod, gates: FeatureGates) -> None:
        """Count each change of a container's request or limit; zero is absent (R-186)."""
        before = {each.name: each.resources for each in resizable(old, gates)}
        for container in resizable(new, gates):
            was, now = before.get(container.name, container.resources), container.resources
            for requirement, ours, theirs in (
                ("requests", now.requests, was.requests), ("limits", now.limits, was.limits)):  # fmt: skip
                for resource in ("cpu", "memory"):
                    operation = _operation(theirs, ours, resource)
                    if operation:
                        self._requested.labels(resource, requirement, operation).inc()


def _operation(old: Mapping[str, Quantity], new: Mapping[str, Quantity], name: str) -> str:
    before, after = old.get(name, ZERO), new.get(name, ZERO)
    if before == after:
        return ""
    if not before or not after:
        return "remove" if before else "add"
    return "increase" if after > before else "decrease"
